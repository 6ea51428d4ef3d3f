"""Results of ``vllm bench serve`` (benchmark_serving.py), 2024 to today: JSON, JSON Lines, the sweep's list and CSV.

Keys ending in ``_ms`` are milliseconds, ``duration`` and per-request arrays seconds. Prompts and answers are dropped.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from typing import Any

from calc.messages import msg
from calc.units import MILLI
from data.formats.csv_rows import lines_of
from data.formats.document import Document
from data.formats.json_fields import MAX_TEXT, count, fact, number, text
from data.formats.json_objects import any_object
from data.formats.result import finish
from data.formats.row_checks import RefusedRow, check_row
from data.formats.vllm_details import Details, from_details
from data.records import BenchmarkRun, LatencyStats, ReadResult, RowProblem

SIGNATURE = ("request_throughput", "duration", "completed")
SHORTENED = ("num_prompts", "request_rate", "median_ttft_ms", "median_tpot_ms")
LATENCY_SIGNS = ("mean_ttft_ms", "mean_e2el_ms")
"""Keys every version writes, or those that collections of results keep, with one of these latencies (embeddings have
no TTFT) and ``model_id`` or ``tokenizer_id``; no other tool writes all of them."""

ITL_WITHOUT_TTFT_SINCE = "202408"
"""Dates are written 20240731-120000. Before August 2024 the gaps of completions began with the TTFT
(github.com/vllm-project/vllm/issues/6531)."""
TTFT_REACH = 1.2
"""So far beyond the TTFTs the P99 of ITL may lie and still be one of them."""

_STATS = {
    "mean": "mean_s",
    "median": "p50_s",
    "p50": "p50_s",
    "std": "std_s",
    "p90": "p90_s",
    "p95": "p95_s",
    "p99": "p99_s",
}
_LATENCY_KEYS = {"ttft": ("ttft",), "tpot": ("tpot",), "itl": ("itl",), "e2e": ("e2el", "latency")}
"""Our name and theirs; 2024 versions wrote ``latency`` for what is now ``e2el``."""
_FURTHER_LATENCIES = {"client_queue_time": "client_queue", "e2el_including_client_queue": "e2e_with_client_queue"}
"""Times since 2026: waiting in the client for a free place under the cap, and the request with it."""
_FURTHER = {"spec_decode_acceptance_length": "spec_accept_len"}
_READ_ELSEWHERE = frozenset(
    {
        "date",
        "backend",
        "model_id",
        "num_prompts",
        "request_rate",
        "burstiness",
        "max_concurrency",
        "duration",
        "completed",
        "failed",
        "total_input_tokens",
        "total_output_tokens",
        "request_throughput",
        "input_throughput",
        "output_throughput",
        "total_token_throughput",
        "max_concurrent_requests",
        *(f"{their}_{key}_ms" for keys in _LATENCY_KEYS.values() for key in keys for their in _STATS),
    }
)


def looks_like(document: Document) -> bool:
    """True when the file holds at least one object with the tool's keys."""
    if document.values:
        return any_object(document, _has_signature)
    return next(_csv_runs(document.text), None) is not None


def read(document: Document) -> ReadResult:
    """Every run of the file, one load point each."""
    runs: list[BenchmarkRun] = []
    problems: list[RowProblem] = []
    code, tool = _kind(document)
    for line, raw in _raw_runs(document):
        try:
            runs.append(_run(raw, tool, line))
        except RefusedRow as refused:
            problems.append(RowProblem(line=line, reason=refused.reason))
    return finish(document, code, runs, (*document.problems, *problems))


def _kind(document: Document) -> tuple[str, str]:
    """Format code and tool name."""
    if not document.values:
        return "vllm_sweep_summary_csv", "vllm bench sweep"
    first = document.values[0]
    if first.in_list or isinstance(first.value, list):
        return "vllm_sweep_summary_json", "vllm bench sweep"
    return "vllm_bench_serve_json", "vllm bench serve"


def _raw_runs(document: Document) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for value in document.values:
        for item in value.value if isinstance(value.value, list) else (value.value,):
            if _has_signature(item):
                yield value.line, {str(key).rstrip(":"): entry for key, entry in item.items()}
    if not document.values:
        yield from _csv_runs(document.text)


def _has_signature(item: Any) -> bool:
    if not isinstance(item, dict) or not any(all(key in item for key in keys) for keys in (SIGNATURE, SHORTENED)):
        return False
    return any(key in item for key in LATENCY_SIGNS) and ("model_id" in item or "tokenizer_id" in item)


def _csv_runs(table_text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    header = table_text[: table_text.find("\n") + 1 or None]
    if not all(key in header for key in SIGNATURE):
        return
    table = csv.DictReader(lines_of(table_text))
    try:
        for row in table:
            filled = {k: v for k, v in row.items() if k and isinstance(v, str) and v.strip()}
            if _has_signature(filled):
                yield table.line_num, filled
    except csv.Error:
        return


def _run(raw: Mapping[str, Any], tool: str, line: int) -> BenchmarkRun:
    completed, sent = count(raw, "completed"), count(raw, "num_prompts")
    if completed is None and "completed" in raw:
        raise RefusedRow(msg("the number of completed requests is missing: run the benchmark to its end."))
    duration = number(raw, "duration")
    tokens_in, tokens_out = count(raw, "total_input_tokens"), count(raw, "total_output_tokens")
    rate, infinite = _rate(raw)
    details = from_details(raw)
    latencies = {} if completed == 0 else _latencies(raw, details)
    run = BenchmarkRun(
        tool=tool,
        model=text(raw, "model_id"),
        backend=text(raw, "backend"),
        date=text(raw, "date"),
        request_rate_per_s=rate,
        request_rate_is_infinite=infinite,
        max_concurrency=count(raw, "max_concurrency"),
        burstiness=number(raw, "burstiness"),
        num_prompts=sent,
        completed=completed,
        failed=_failed(count(raw, "failed"), sent, completed),
        duration_s=duration,
        input_tokens_total=tokens_in,
        output_tokens_total=tokens_out,
        input_tokens_mean=_per(tokens_in, completed),
        output_tokens_mean=_per(tokens_out, completed),
        request_throughput_per_s=number(raw, "request_throughput"),
        input_token_throughput_per_s=number(raw, "input_throughput"),
        output_token_throughput_per_s=number(raw, "output_throughput"),
        total_token_throughput_per_s=_total_throughput(raw, tokens_in, tokens_out, duration),
        peak_concurrency=count(raw, "max_concurrent_requests"),
        extra=_extra(raw, details),
        line=line,
        flags=_flags(raw, completed, latencies),
        ttft=latencies.get("ttft"),
        tpot=latencies.get("tpot"),
        itl=latencies.get("itl"),
        e2e=latencies.get("e2e"),
    )
    check_row(run)
    return run


def _failed(failed: int | None, sent: int | None, completed: int | None) -> int | None:
    """As written, else what was sent and did not complete (versions before mid-2025 do not write it)."""
    if failed is not None or sent is None or completed is None:
        return failed
    return sent - completed if sent >= completed else None


def _per(total: int | None, completed: int | None) -> float | None:
    return None if total is None or not completed else total / completed


def _total_throughput(
    raw: Mapping[str, Any], tokens_in: int | None, tokens_out: int | None, duration: float | None
) -> float | None:
    """As written, else (prompt + output tokens) / duration, which is its definition."""
    written = number(raw, "total_token_throughput")
    if written is not None or tokens_in is None or tokens_out is None or not duration:
        return written
    return (tokens_in + tokens_out) / duration


def _rate(raw: Mapping[str, Any]) -> tuple[float | None, bool]:
    value = raw.get("request_rate")
    if value in ("inf", "Infinity", math.inf):
        return None, True
    return number(raw, "request_rate"), False


def _latencies(raw: Mapping[str, Any], details: Details) -> dict[str, LatencyStats]:
    """Latency statistics in seconds; a mean of 0 stands for "not measured" and leaves the latency out."""
    found: dict[str, LatencyStats] = {}
    for name, keys in _LATENCY_KEYS.items():
        stats = _stats(raw, keys)
        complete = details.complete(name, {} if stats.get("mean_s") == 0 else stats)
        if complete:
            found[name] = LatencyStats(**complete)
    return found


def _flags(raw: Mapping[str, Any], completed: int | None, latencies: Mapping[str, LatencyStats]) -> tuple[str, ...]:
    """Latencies of 0, an ITL that holds TTFT, and an embedding run: it answers with no tokens."""
    flags = ["zero_may_be_missing"] if completed != 0 and _zero_latency(raw) else []
    if (text(raw, "date") or "9") < ITL_WITHOUT_TTFT_SINCE and _tail_is_ttft(latencies):
        flags.append("itl_includes_ttft")
    if "total_output_tokens" not in raw and "mean_ttft_ms" not in raw:
        flags.append("no_token_metrics")
    return tuple(flags)


def _tail_is_ttft(latencies: Mapping[str, LatencyStats]) -> bool:
    """ITL P99 lies where TTFT does: one gap of each answer is its TTFT."""
    itl, ttft = latencies.get("itl"), latencies.get("ttft")
    if itl is None or ttft is None or not itl.p99_s or not ttft.p50_s:
        return False
    return ttft.p50_s / TTFT_REACH <= itl.p99_s <= (ttft.p99_s or ttft.p50_s) * TTFT_REACH


def _zero_latency(raw: Mapping[str, Any]) -> bool:
    return any(_stats(raw, keys).get("mean_s") == 0 for keys in _LATENCY_KEYS.values())


def _stats(raw: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, float]:
    stats: dict[str, float] = {}
    for key in keys:
        for their, our in _STATS.items():
            value = number(raw, f"{their}_{key}_ms")
            if value is not None and our not in stats:
                stats[our] = value * MILLI
    return stats


def _extra(raw: Mapping[str, Any], details: Details) -> dict[str, float | str]:
    """Single facts the record has no field for: further percentiles, goodput, settings the user attached."""
    extra: dict[str, float | str] = {}
    for key, value in raw.items():
        kept = None if key in _READ_ELSEWHERE else fact(value)
        if kept is None:
            continue
        if key.endswith("_ms") and isinstance(kept, float):
            extra[_time_name(key)] = kept * MILLI
        else:
            extra[_FURTHER.get(key, key)[:MAX_TEXT]] = kept
    return extra | details.further()


def _time_name(key: str) -> str:
    """``p99_client_queue_time_ms`` is the latency ``client_queue``; any other time keeps its name, in seconds."""
    statistic, _, name = key.removesuffix("_ms").partition("_")
    if name in _FURTHER_LATENCIES and statistic in _STATS:
        return f"{_FURTHER_LATENCIES[name]}.{_STATS[statistic]}"
    return f"{key.removesuffix('_ms')}_s"[:MAX_TEXT]
