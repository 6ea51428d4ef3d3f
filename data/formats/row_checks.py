"""What a load point can never be. A row that breaks one of these is listed with its line, not stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import pairwise

from calc.messages import Message, msg
from calc.workload import MAX_CONCURRENCY
from data.records import BenchmarkRun, LatencyStats

LATENCIES = ("ttft", "tpot", "itl", "e2e")
LABELS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E"}
_RISING = (("p50_s", "P50"), ("p90_s", "P90"), ("p95_s", "P95"), ("p99_s", "P99"))
MAX_NUMBER = 1e15
"""Larger than any count a benchmark can reach."""
_NAMES = tuple(field.name for field in fields(BenchmarkRun))
_STATISTICS = tuple(field.name for field in fields(LatencyStats))
_ROUNDING = 1.001
"""Two columns rounded differently may disagree by this factor before they count as swapped."""


class RefusedRow(Exception):
    """A row that cannot be taken; carries the reason."""

    def __init__(self, reason: Message) -> None:
        super().__init__(str(reason))
        self.reason = reason


def check_row(run: BenchmarkRun) -> None:
    """Raise :class:`RefusedRow` when the numbers of one load point contradict each other or cannot exist."""
    for check in _CHECKS:
        reason = next(check(run), None)
        if reason is not None:
            raise RefusedRow(reason)


def _negative(run: BenchmarkRun) -> Iterator[Message]:
    for name in _NAMES:
        value = getattr(run, name)
        if isinstance(value, int | float) and not 0 <= value <= MAX_NUMBER:
            yield msg(
                "{field} is {value:.6g}: a number from 0 to {limit:.0e} was expected.",
                field=name,
                value=value,
                limit=MAX_NUMBER,
            )


def _negative_latency(run: BenchmarkRun) -> Iterator[Message]:
    for name, stats in _latencies(run):
        for key in _STATISTICS:
            value = getattr(stats, key)
            if value is not None and not (value >= 0 and math.isfinite(value)):
                yield msg(
                    "{latency} is {value:ms}: a latency cannot be negative, check the column.",
                    latency=LABELS[name],
                    value=value,
                )


def _falling_percentiles(run: BenchmarkRun) -> Iterator[Message]:
    for name, stats in _latencies(run):
        known = [(label, getattr(stats, key)) for key, label in _RISING if getattr(stats, key) is not None]
        for (low_label, low), (high_label, high) in pairwise(known):
            if low > high * _ROUNDING:
                yield msg(
                    "{latency} {low_label} ({low:ms}) is above {high_label} ({high:ms}): the columns look swapped.",
                    latency=LABELS[name],
                    low_label=low_label,
                    low=low,
                    high_label=high_label,
                    high=high,
                )


def _ttft_above_e2e(run: BenchmarkRun) -> Iterator[Message]:
    if run.ttft is None or run.e2e is None:
        return
    for key, label in (("mean_s", msg("mean")), *_RISING):
        ttft, e2e = getattr(run.ttft, key), getattr(run.e2e, key)
        if ttft is not None and e2e is not None and ttft > e2e * _ROUNDING:
            yield msg(
                "TTFT {stat} ({ttft:ms}) is above E2E {stat} ({e2e:ms}): the columns or units look mixed up.",
                stat=label,
                ttft=ttft,
                e2e=e2e,
            )


def _counts(run: BenchmarkRun) -> Iterator[Message]:
    if run.max_concurrency is not None and run.max_concurrency > MAX_CONCURRENCY:
        yield msg(
            "concurrency is {value:count}: at most {limit:count} is accepted, check the column.",
            value=run.max_concurrency,
            limit=MAX_CONCURRENCY,
        )
    if run.failed is not None and run.num_prompts is not None and run.failed > run.num_prompts:
        yield msg(
            "{failed:count} of {sent:count} requests failed: failures cannot exceed the requests sent.",
            failed=run.failed,
            sent=run.num_prompts,
        )
    for field in ("success_share", "prefix_hit_share", "kv_usage_share"):
        value = getattr(run, field)
        if value is not None and value > 1:
            yield msg("{field} is {value:pct}: at most 100 % was expected.", field=field, value=value)


_CHECKS: tuple[Callable[[BenchmarkRun], Iterator[Message]], ...] = (
    _negative,
    _negative_latency,
    _falling_percentiles,
    _ttft_above_e2e,
    _counts,
)


def _latencies(run: BenchmarkRun) -> Iterator[tuple[str, LatencyStats]]:
    for name in LATENCIES:
        stats = getattr(run, name)
        if stats is not None:
            yield name, stats
