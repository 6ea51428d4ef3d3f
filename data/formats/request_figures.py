"""Figures of single requests summed up into the one load point they are: the same way whatever tool wrote them.

Percentiles are numpy's linear ones over answered requests. A figure that no request gives stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calc.checks.growth import latency_growth_ratio
from data.formats.row_checks import MAX_NUMBER
from data.records import BenchmarkRun, LatencyStats

Column = NDArray[np.float64]
"""One figure of every answered request; NaN where a request does not give it."""
_NUMBERS = frozenset({int, float})
_PERCENTILES = (50, 90, 95, 99)
_LENGTH_PERCENTILES = (50, 95, 99)


def _none() -> Column:
    return np.empty(0)


@dataclass(frozen=True, kw_only=True)
class RequestFigures:
    """Columns over the answered requests, aligned by request; an empty column is a figure the file does not have."""

    ttft_s: Column = field(default_factory=_none)
    e2e_s: Column = field(default_factory=_none)
    tpot_s: Column = field(default_factory=_none)
    """As written; when no request gives it, it is derived as (E2E - TTFT) / (output tokens - 1)."""
    gaps_s: Column = field(default_factory=_none)
    """Every gap between two chunks of every request, pooled: the only column that is not aligned."""
    input_tokens: Column = field(default_factory=_none)
    output_tokens: Column = field(default_factory=_none)
    started_s: Column = field(default_factory=_none)
    ended_s: Column = field(default_factory=_none)
    """Start and end on any one clock."""
    failed: int | None = None
    """Requests without an answer; ``None`` when the file cannot say."""

    @property
    def completed(self) -> int:
        """Answered requests: the length of the columns."""
        columns = (self.ttft_s, self.e2e_s, self.tpot_s, self.input_tokens, self.output_tokens, self.started_s)
        return max(values.size for values in columns)


def summed_up(figures: RequestFigures, run: BenchmarkRun) -> BenchmarkRun:
    """``run`` with everything the single requests say; what ``run`` already knows stays as it is."""
    duration = run.duration_s if run.duration_s is not None else duration_s(figures)
    completed = figures.completed
    found = {
        "num_prompts": None if figures.failed is None else completed + figures.failed,
        "completed": completed,
        "failed": figures.failed,
        "duration_s": duration,
        "input_tokens_total": _total(figures.input_tokens),
        "output_tokens_total": _total(figures.output_tokens),
        "input_tokens_mean": _mean(figures.input_tokens),
        "output_tokens_mean": _mean(figures.output_tokens),
        "request_throughput_per_s": completed / duration if duration else None,
        "input_token_throughput_per_s": _per_s(figures.input_tokens, duration),
        "output_token_throughput_per_s": _per_s(figures.output_tokens, duration),
        "ttft": stats_of(figures.ttft_s),
        "tpot": stats_of(figures.tpot_s) or stats_of(derived_tpot_s(figures)),
        "itl": stats_of(figures.gaps_s),
        "e2e": stats_of(figures.e2e_s),
    }
    kept = {name: value for name, value in found.items() if value is not None and getattr(run, name) is None}
    return replace(run, extra=_further(figures) | dict(run.extra), **kept)  # type: ignore[arg-type]  # the names are fields of the record, each with its own type


def column(values: Iterable[object]) -> Column:
    """Numbers, or texts that are numbers, as a column; anything else, negative or beyond any benchmark is unknown.

    Nanoseconds since 1970 are beyond it: turn them into seconds first.
    """
    listed = list(values)
    if set(map(type, listed)) <= _NUMBERS:
        try:
            numbers = np.array(listed, dtype=np.float64)
        except OverflowError:
            pass
        else:
            return np.where((numbers >= 0) & (numbers <= MAX_NUMBER), numbers, np.nan)
    return np.array([figure(value) for value in listed], dtype=np.float64)


def stats_of(values: Column) -> LatencyStats | None:
    """Mean, percentiles and standard deviation of the known values; ``None`` when there are none."""
    finite = np.isfinite(values)
    known = values if finite.all() else values[finite]
    if not known.size:
        return None
    p50, p90, p95, p99 = (float(value) for value in np.percentile(known, _PERCENTILES))
    return LatencyStats(
        mean_s=float(known.mean()), p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99, std_s=float(known.std())
    )


def derived_tpot_s(figures: RequestFigures) -> Column:
    """(E2E - TTFT) / (output tokens - 1) of each request with more than one output token."""
    if not figures.ttft_s.size == figures.e2e_s.size == figures.output_tokens.size:
        return _none()
    several = figures.output_tokens > 1
    decode_s = figures.e2e_s[several] - figures.ttft_s[several]
    tpot_s = decode_s / (figures.output_tokens[several] - 1)
    return tpot_s[tpot_s >= 0]


def duration_s(figures: RequestFigures) -> float | None:
    """From the first start to the last end, when every answered request has both."""
    started, ended = figures.started_s, figures.ended_s
    if not started.size or started.size != ended.size or not np.isfinite(started + ended).all():
        return None
    span = float(ended.max() - started.min())
    return span if span > 0 else None


def length_percentiles(name: str, tokens: Column) -> dict[str, float]:
    """``input_tokens_p50`` and so on over the requests that say their tokens."""
    known = tokens[np.isfinite(tokens)]
    if not known.size:
        return {}
    return {f"{name}_tokens_p{share}": float(np.percentile(known, share)) for share in _LENGTH_PERCENTILES}


def _further(figures: RequestFigures) -> dict[str, float | str]:
    """Spread of the lengths, and whether latency grew over the run."""
    further: dict[str, float | str] = {
        **length_percentiles("input", figures.input_tokens),
        **length_percentiles("output", figures.output_tokens),
    }
    growth = latency_growth_ratio(figures.e2e_s, figures.started_s)
    return further if growth is None else further | {"latency_growth_ratio": growth}


def figure(value: object) -> float:
    """One entry of a column; NaN for anything that is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if 0 <= number <= MAX_NUMBER else math.nan


def _mean(values: Column) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None


def _total(tokens: Column) -> int | None:
    """Only when every answered request says its tokens; a sum over some would be too small."""
    return round(float(tokens.sum())) if tokens.size and np.isfinite(tokens).all() else None


def _per_s(tokens: Column, duration: float | None) -> float | None:
    total = _total(tokens)
    return None if total is None or not duration else total / duration
