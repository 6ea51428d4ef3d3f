"""A start-up log in words: what was read, and the table of the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from calc.memory import MemoryReport
from calc.messages import Message, msg
from calc.startup.comparison import ComparedPart, LogComparison
from calc.startup.log import Seen, StartupLog
from calc.startup.measured import MeasuredMemory
from calc.startup.memory import ID_SHOWN
from calc.units import GIB
from data.store import StoredStartupLog
from ui import format as show
from ui.text import t

Rows: TypeAlias = Sequence[Mapping[str, str]]

ENGINE_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}
NAMES: Mapping[str, Message] = {
    "version": msg("Engine version"),
    "model": msg("Model"),
    "gpu_memory_bytes": msg("GPU memory"),
    "budget_bytes": msg("Budget of the engine"),
    "memory_fraction": msg("Memory fraction"),
    "max_model_len_tokens": msg("Max model length"),
    "tp": msg("TP"),
    "pp": msg("PP"),
    "dp": msg("DP"),
    "ep": msg("Expert parallel"),
    "dtype": msg("Dtype"),
    "quantization": msg("Quantisation"),
    "kv_dtype": msg("KV dtype"),
    "max_num_batched_tokens": msg("Batched tokens"),
    "max_num_seqs": msg("Sequences at most"),
    "block_size_tokens": msg("Block size"),
    "padding_layers": msg("Padding layers"),
    "prefix_caching": msg("Prefix caching"),
    "eager": msg("No CUDA graphs"),
    "spec_method": msg("Speculative decoding"),
    "weights_bytes": msg("Weights"),
    "consumed_bytes": msg("Weights and libraries"),
    "activation_bytes": msg("Activations at the peak"),
    "non_torch_bytes": msg("Libraries and buffers"),
    "graph_bytes": msg("CUDA graphs"),
    "graph_estimate_bytes": msg("CUDA graphs, set aside"),
    "graphs_in_budget": msg("Graphs inside the budget"),
    "kv_pool_bytes": msg("KV pool"),
    "num_blocks": msg("KV blocks"),
    "kv_tokens": msg("KV tokens"),
    "max_concurrency": msg("Sequences at the length below"),
    "concurrency_tokens": msg("Length it was counted for"),
    "free_bytes": msg("Free memory"),
}
"""What each figure of a log is called."""


def size(value_bytes: float | None) -> str:
    """GiB to a hundredth, as engines log them."""
    return show.missing() if value_bytes is None else f"{value_bytes / GIB:,.2f}"


def headline(log: StartupLog, comparison: LogComparison | None) -> str:
    """What this log is, and how far the estimate is off."""
    name = ENGINE_NAMES[log.engine]
    if log.refusals:
        return t(log.refusals[0].text)
    if log.kv_pool_bytes is not None and comparison is None:
        return t("{engine} log: {logged} GiB of KV pool per GPU.", engine=name, logged=size(log.kv_pool_bytes.value))
    if comparison is None or comparison.pool.difference_bytes is None:
        return t("{engine} log; it does not say how large the KV pool became.", engine=name)
    pool = comparison.pool
    estimated, logged = size(pool.estimated_bytes), size(pool.logged_bytes)
    return t(
        "{engine} log: {logged} GiB of KV pool per GPU, {estimated} GiB were estimated.",
        engine=name,
        logged=logged,
        estimated=estimated,
    )


def several(log: StartupLog) -> str:
    """Said when the text holds more than one start."""
    return t("The text holds {number:count} starts; the last one is read.", number=log.starts) if log.starts > 1 else ""


def table(comparison: LogComparison) -> Rows:
    """Estimated, logged and difference; the effects of the parts add up to the pool's difference."""
    rows = [_row(part, _signed(part.effect_bytes)) for part in comparison.parts]
    total = sum(part.effect_bytes for part in comparison.parts)
    last = _row(comparison.pool, _signed(total) if comparison.pool.difference_bytes is not None else "")
    return [*rows, last, _tokens(comparison)]


def _row(part: ComparedPart, effect: str) -> Mapping[str, str]:
    rest = part.part == "rest"
    return {
        t("Part, GiB per GPU"): t(part.label),
        t("Estimated"): "" if rest else size(part.estimated_bytes),
        t("Logged"): "" if rest else size(part.logged_bytes),
        t("Difference"): "" if rest or part.difference_bytes is None else _signed(part.difference_bytes),
        t("Effect on the pool"): effect,
    }


def _tokens(comparison: LogComparison) -> Mapping[str, str]:
    logged, estimated = comparison.logged_tokens, comparison.estimated_tokens
    return {
        t("Part, GiB per GPU"): t("KV tokens of a replica"),
        t("Estimated"): f"{estimated:,}",
        t("Logged"): show.missing() if logged is None else f"{logged:,}",
        t("Difference"): "" if logged is None else f"{logged - estimated:+,}",
        t("Effect on the pool"): "",
    }


def reasons(comparison: LogComparison) -> Mapping[str, str]:
    """Why a part differs, by its name; parts that need no reason are left out."""
    parts = [(t(part.label), part.why) for part in (*comparison.parts, comparison.pool)]
    every = [*parts, (t("KV tokens of a replica"), comparison.tokens_why)]
    return {name: " ".join(t(why) for why in whys) for name, whys in every if whys}


def _signed(value_bytes: float) -> str:
    value = round(value_bytes / GIB, 2)
    return f"{value:+,.2f}" if value else "0.00"


def other_settings(comparison: LogComparison) -> str:
    """Where the log's start is not the scenario."""
    if not comparison.other_settings:
        return t("The log's start is the scenario at the side.")
    return t(
        "The log was started differently: {what}.", what=t(", ").join(t(away) for away in comparison.other_settings)
    )


def lines(log: StartupLog) -> Rows:
    """Every figure with the words it was read from."""
    rows = [
        {
            t("Figure"): t(NAMES[name]),
            t("Value"): _value(name, seen),
            t("Words"): _words(seen.line_number, seen.line),
        }
        for name, seen in log.seen().items()
    ]
    refused = [
        {
            t("Figure"): t("Refusal"),
            t("Value"): t(refusal.text),
            t("Words"): _words(refusal.line_number, refusal.line),
        }
        for refusal in log.refusals
    ]
    return rows + refused


def _words(line_number: int, line: str) -> str:
    return t("line {number}: {words}", number=show.count(line_number), words=line)


def _value(name: str, seen: Seen[float] | Seen[str] | Seen[bool]) -> str:
    shown = _one(name, seen.value)
    return f"{shown} ({_one(name, seen.low)} – {_one(name, seen.high)})" if seen.differs else shown


def _one(name: str, value: float | str | bool) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return t("yes") if value else t("no")
    if name.endswith("_bytes"):
        return f"{value / GIB:,.2f} GiB"
    if name == "memory_fraction":
        return show.percent(value)
    return f"{value:,.2f}" if value % 1 else f"{value:,.0f}"


def in_force(memory: MemoryReport, carried: MeasuredMemory | None) -> str:
    """Which memory the pages show now."""
    if memory.log_id:
        return t(
            "Measured memory is in use: start-up log {log} of {date}.",
            log=memory.log_id[:ID_SHOWN],
            date=memory.log_date,
        )
    if carried is not None and not carried.used:
        return t("The estimate is in use, because you asked for it.")
    return t("The estimate is in use: no stored log matches this scenario.")


def stored_rows(logs: Sequence[StoredStartupLog], used_id: str) -> Rows:
    """Stored logs, newest first."""
    return [
        {
            t("Log"): f"{row.log_id[:ID_SHOWN]} · {row.stored_at[:10]}",
            t("Engine"): f"{row.engine} {row.engine_version}".strip(),
            t("Model"): row.model or show.missing(),
            t("KV pool, GiB"): size(row.measured.get("kv_pool_bytes")),
            t("In use here"): t("yes") if row.log_id == used_id else t("no"),
        }
        for row in logs
    ]


def stored_names(logs: Sequence[StoredStartupLog]) -> dict[str, str]:
    """Ids and names for choosing."""
    return {row.log_id: f"{row.log_id[:ID_SHOWN]} · {row.model} · {row.name}" for row in logs}
