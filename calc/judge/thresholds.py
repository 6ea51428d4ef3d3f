"""The lines the conditions are judged against, each with where it was published. A team may set its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from calc.errors import UnknownName
from calc.messages import Message, msg
from calc.units import GB


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """One line: value in the base unit of its metric, and its source."""

    name: str
    value: float
    unit: str
    source: Message


OWN = msg("our own line; set your own")
"""No published figure was found: stated as such on the page and on the sheet."""

_ROWS: tuple[tuple[str, float, str, Message], ...] = (
    # KV cache
    (
        "kv_full_share",
        0.90,
        "share",
        msg("GIE alert.yaml: critical above 0.9 for 5 min; vllm-ascend#5859: TPOT 114 ms at 92 %, 440 ms at 98.9 %"),
    ),
    (
        "kv_idle_share",
        0.50,
        "share",
        msg("vllm#1018, #42058, #6206: below 0.5 with nothing waiting, more KV space cannot help"),
    ),
    ("preempted_warn_share", 0.005, "share", OWN),
    (
        "preempted_share",
        0.02,
        "share",
        msg("dev.to ji_ai: requests preempted 2 %, mean 1.9 s, P99 11.4 s"),
    ),
    (
        "reuse_low_share",
        0.20,
        "share",
        msg(
            "reuse below a fifth cannot carry a decision (sglang#21199: routing for 26 % made TTFT worse); "
            "public alert: hit rate under 0.2 for 15 min"
        ),
    ),
    (
        "waste_share",
        0.20,
        "share",
        msg("vLLM launch, 2023: paging wastes under 4 %, preallocation 60-80 %; the line between them is our own"),
    ),
    ("one_off_share", 0.50, "share", OWN),
    (
        "short_prompt_tokens",
        256.0,
        "tokens",
        msg("public report: at 130 prompt tokens identical prompts were no faster; the line is our own"),
    ),
    ("local_layers_share", 0.50, "share", OWN),
    (
        "gpu_holds_share",
        0.90,
        "share",
        msg("LMCache#1109: at a hit rate of 0.99 the GPU's own cache held the prompts; the line is our own"),
    ),
    # memory
    (
        "weights_share",
        1 / 1.2,
        "share",
        msg("sizing guide (opswat): plan 1.2-1.5 times the weights, so weights above 1/1.2 leave too little"),
    ),
    (
        "margin_warn_bytes",
        1.2 * GB,
        "bytes",
        msg("talos#2018, club-3090#717: 1.2-1.5 GB free still booted; OOM seen at 0.5-0.7 GB (vllm#7553)"),
    ),
    (
        "rejected_share",
        0.05,
        "share",
        msg("GIE alert.yaml: errors above 5 % are critical"),
    ),
    # service
    (
        "waiting_count",
        5.0,
        "count",
        msg("GIE, llm-d WVA and Dynamo planner: more than 5 waiting per replica is saturated"),
    ),
    ("queue_share", 0.20, "share", OWN),
    ("prefill_share", 0.50, "share", OWN),
    (
        "load_ratio",
        0.80,
        "ratio",
        msg("GIE and llm-d WVA act at 0.8 of saturation; M/M/c tails explode beyond"),
    ),
    (
        "full_ratio",
        1.0,
        "ratio",
        msg("queueing theory: at an offered load of 1 the queue grows without bound"),
    ),
    ("seqs_full_share", 0.95, "share", OWN),
    (
        "itl_rise_ratio",
        1.5,
        "ratio",
        msg("vllm-ascend#5859: TPOT 1.07-fold at a usage of 92 %, 4-fold at 98.9 %; the line between them is our own"),
    ),
    (
        "itl_tail_ratio",
        5.0,
        "ratio",
        msg("unchunked prefill made P99 eight times worse (dev.to); the line is our own"),
    ),
    (
        "mixed_step_share",
        0.01,
        "share",
        msg("theory: once a token in 100 falls in a mixed step, P99 ITL is the length of a mixed step"),
    ),
    (
        "ttft_tail_ratio",
        10.0,
        "ratio",
        msg("sglang#34554: one tenant's long prompts, TTFT P50 1.3 s and P99 46 s; the line is our own"),
    ),
    ("prompt_tail_ratio", 10.0, "ratio", OWN),
    ("host_busy_share", 0.95, "share", OWN),
    ("gpu_idle_share", 0.70, "share", OWN),
    (
        "gpu_power_idle_share",
        0.30,
        "share",
        msg("arXiv 2601.19910: power / its limit 28 % while transfer / latency was 99 %"),
    ),
    ("transfer_share", 0.50, "share", OWN),
    ("target_tight_ratio", 0.80, "ratio", OWN),
    (
        "oversharded_tp",
        8.0,
        "count",
        msg("vllm#6131 (maintainer): TP 8 for an 8B model ran at a utilisation under 50 %"),
    ),
)


def _table() -> Iterator[Threshold]:
    for name, value, unit, source in _ROWS:
        yield Threshold(name=name, value=value, unit=unit, source=source)


THRESHOLDS: Mapping[str, Threshold] = MappingProxyType({line.name: line for line in _table()})
"""Every line by name, with its published value."""

SET_BY_USER = msg("set for this review")
"""Source printed for a line the team set itself."""


def thresholds(own: Mapping[str, float] | None = None) -> Mapping[str, Threshold]:
    """The published lines with the team's own values in their place; an unknown name is refused."""
    lines = dict(THRESHOLDS)
    for name, value in (own or {}).items():
        if name not in lines:
            raise UnknownName(
                msg("no threshold is called {name}: use one of {names}.", name=name, names=", ".join(sorted(lines)))
            )
        lines[name] = replace(lines[name], value=float(value), source=SET_BY_USER)
    return MappingProxyType(lines)
