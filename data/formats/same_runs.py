"""The same run written twice: tools leave a JSON, a CSV and a list of requests of one run, or a summary of all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from data.records import BenchmarkRun, LatencyStats

TOLERANCE = 0.003
"""A table rounds to some three or four digits; two repetitions of a run differ by more in at least one figure."""
MIN_SHARED = 4
"""Figures that two runs must share, so that an empty run is not everybody's twin."""
_COUNTS = ("completed", "failed", "max_concurrency")
_FIGURES = ("duration_s", "request_throughput_per_s", "output_token_throughput_per_s", "total_token_throughput_per_s")
_LATENCIES = ("ttft", "tpot", "e2e")
_STATISTICS = ("mean_s", "p50_s", "p90_s", "p95_s", "p99_s")


def copies(files: Mapping[str, Sequence[BenchmarkRun]]) -> dict[str, str]:
    """Files all of whose runs stand in another file, and that other file: the one that says the most is kept."""
    kept: list[str] = []
    found: dict[str, str] = {}
    for path in sorted(files, key=lambda path: (-len(files[path]), -_said(files[path]))):
        runs = files[path]
        origin = next((other for other in kept if runs and _covers(files[other], runs)), None)
        if origin is None:
            kept.append(path)
        else:
            found[path] = origin
    return found


def same_run(one: BenchmarkRun, two: BenchmarkRun) -> bool:
    """True when every figure that both state is equal within rounding, and there are enough of them."""
    if any(_differ(getattr(one, name), getattr(two, name), 0.0) for name in _COUNTS):
        return False
    pairs = [(a, b) for a, b in zip(_figures(one), _figures(two), strict=True) if a is not None and b is not None]
    return len(pairs) >= MIN_SHARED and not any(_differ(a, b, TOLERANCE) for a, b in pairs)


def _covers(runs: Sequence[BenchmarkRun], others: Sequence[BenchmarkRun]) -> bool:
    return all(any(same_run(run, other) for run in runs) for other in others)


def _figures(run: BenchmarkRun) -> list[float | None]:
    """Standard deviations are left out: tools divide by n or by n - 1."""
    latencies = [getattr(run, name) or LatencyStats() for name in _LATENCIES]
    return [
        *(getattr(run, name) for name in _FIGURES),
        *(getattr(stats, statistic) for stats in latencies for statistic in _STATISTICS),
    ]


def _differ(one: float | None, two: float | None, tolerance: float) -> bool:
    return one is not None and two is not None and abs(one - two) > tolerance * max(abs(one), abs(two))


def _said(runs: Sequence[BenchmarkRun]) -> int:
    """How many figures are stated."""
    return sum(
        sum(value is not None for value in (*_figures(run), *(getattr(run, field.name) for field in fields(run))))
        + len(run.extra)
        for run in runs
    )
