"""Metrics of AIPerf and genai-perf, whatever file they stand in: each names its unit, and the names never change sense.

Their inter-token latency is (E2E - TTFT) / (output tokens - 1) of a request, which is TPOT; the gap between chunks is
the inter-chunk latency. Output sequence length counts reasoning tokens, output token count only visible ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from calc.messages import msg
from calc.units import MICRO, MILLI, NANO
from data.formats.json_fields import MAX_TEXT, number
from data.formats.json_objects import latency
from data.formats.row_checks import RefusedRow
from data.records import BenchmarkRun, LatencyStats

SECONDS = {
    "s": 1.0,
    "sec": 1.0,
    "seconds": 1.0,
    "ms": MILLI,
    "milliseconds": MILLI,
    "us": MICRO,
    "µs": MICRO,
    "microseconds": MICRO,
    "ns": NANO,
    "nanoseconds": NANO,
}
"""Seconds of one unit of time, as both tools spell it."""
STATISTICS = {"mean_s": "avg", "p50_s": "p50", "p90_s": "p90", "p95_s": "p95", "p99_s": "p99", "std_s": "std"}

_LATENCIES = {
    "ttft": ("time_to_first_token", "ttft"),
    "tpot": ("inter_token_latency",),
    "itl": ("inter_chunk_latency",),
    "e2e": ("request_latency",),
}
_INPUT = ("input_sequence_length", "num_input_token", "num_input_tokens")
_OUTPUT = ("output_sequence_length", "num_output_token", "num_output_tokens", "output_token_count")
_SENT = ("completed_request_count", "completed_requests")
"""Answered and failed requests together."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Statistics of one metric and their unit."""

    unit: str | None
    statistics: Mapping[str, Any] = field(default_factory=dict)


Metrics = Mapping[str, Metric]


def filled(run: BenchmarkRun, metrics: Metrics) -> BenchmarkRun:
    """``run`` with everything its metrics say."""
    completed, failed = _count(metrics, "request_count"), _failed(metrics, run.failed)
    stats = {name: _latency(metrics, names) for name, names in _LATENCIES.items()} if completed != 0 else {}
    return replace(
        run,
        completed=completed,
        failed=failed,
        num_prompts=completed + failed if completed is not None and failed is not None else None,
        duration_s=_seconds(metrics, "benchmark_duration"),
        input_tokens_mean=_first(metrics, _INPUT),
        output_tokens_mean=_first(metrics, _OUTPUT),
        input_tokens_total=_count(metrics, "total_isl", "total_input_sequence_length"),
        output_tokens_total=_count(metrics, "total_osl", "total_output_sequence_length"),
        request_throughput_per_s=_first(metrics, ("request_throughput",)),
        input_token_throughput_per_s=_first(metrics, ("input_token_throughput",)),
        output_token_throughput_per_s=_first(metrics, ("output_token_throughput",)),
        total_token_throughput_per_s=_first(metrics, ("total_token_throughput",)),
        ttft=stats.get("ttft"),
        tpot=stats.get("tpot"),
        itl=stats.get("itl"),
        e2e=stats.get("e2e"),
        extra={**run.extra, **_median_prompt(metrics)},
    )


def seconds_of(metric: Metric, name: str) -> float:
    """Seconds of the metric's unit; a time without one cannot be read."""
    unit = (metric.unit or "").strip().lower()
    if unit not in SECONDS:
        raise RefusedRow(
            msg(
                "{name} has the unit {unit!r}: ms, s, us or ns was expected, write the result again.",
                name=name,
                unit=unit[:MAX_TEXT],
            )
        )
    return SECONDS[unit]


def has_reasoning(metrics: Metrics) -> bool:
    """True when reasoning tokens are counted beside the visible ones."""
    return any(name in metrics for name in ("reasoning_token_count", "total_reasoning_tokens"))


def _latency(metrics: Metrics, names: tuple[str, ...]) -> LatencyStats | None:
    for name in names:
        if name in metrics and any(number(metrics[name].statistics, key) is not None for key in STATISTICS.values()):
            return latency(metrics[name].statistics, STATISTICS, seconds_of(metrics[name], name))
    return None


def _seconds(metrics: Metrics, name: str) -> float | None:
    if name not in metrics:
        return None
    value = number(metrics[name].statistics, "avg")
    return None if value is None else value * seconds_of(metrics[name], name)


def _first(metrics: Metrics, names: tuple[str, ...]) -> float | None:
    found = (number(metrics[name].statistics, "avg") for name in names if name in metrics)
    return next((value for value in found if value is not None), None)


def _median_prompt(metrics: Metrics) -> dict[str, float]:
    found = (number(metrics[name].statistics, "p50") for name in _INPUT if name in metrics)
    median = next((value for value in found if value is not None), None)
    return {} if median is None else {"input_tokens_p50": median}


def _count(metrics: Metrics, *names: str) -> int | None:
    value = _first(metrics, names)
    return None if value is None else round(value)


def _failed(metrics: Metrics, otherwise: int | None) -> int | None:
    """Counted only when there are failures, so a file without that count has none, unless it says otherwise."""
    counted, sent, completed = (
        _count(metrics, "error_request_count"),
        _count(metrics, *_SENT),
        _count(metrics, "request_count"),
    )
    if counted is not None:
        return counted
    if sent is not None and completed is not None and sent >= completed:
        return sent - completed
    return otherwise
