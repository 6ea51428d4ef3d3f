"""How much distinct content a trace touches as time goes on: what a cache would have to hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.errors import InputError
from calc.messages import msg
from calc.reuse.trace import BlockTrace, FloatArray
from calc.units import SECONDS_PER_HOUR

POINTS = 60
"""Points of the course over time."""
LATE_SHARE = 0.5
"""The part of the trace, from its end, whose growth is taken for that of the hours to come."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Growth:
    """Distinct blocks so far over time, in tokens of full blocks."""

    times_s: FloatArray
    """Rising from the first request, `POINTS` of them."""
    distinct_tokens: FloatArray
    """All seen so far."""
    recent_tokens: FloatArray
    """Those used within the last `window_s`: the working set (Denning, 1968)."""
    window_s: float
    new_tokens_per_hour: float | None
    """Over the later half of the trace; None where the trace has no length."""


def growth(trace: BlockTrace, window_s: float) -> Growth:
    """Working set of a trace over time."""
    if trace.arrival_s is None or not trace.requests:
        raise InputError(msg("the growth of the working set needs the time of each request: this trace has none."))
    begin, end = float(trace.arrival_s[0]), float(trace.arrival_s.max())
    times = np.linspace(begin, max(begin, end), POINTS)
    used_s = np.repeat(trace.arrival_s, np.diff(trace.offsets))
    first_s = np.full(trace.unique_blocks, np.inf)
    np.minimum.at(first_s, trace.block_ids, used_s)
    distinct = np.searchsorted(np.sort(first_s), times, side="right").astype(np.float64)
    recent = np.array([_recent(trace, used_s, now - window_s, now) for now in times], dtype=np.float64)
    late = times[-1] - LATE_SHARE * (times[-1] - times[0])
    new = distinct[-1] - np.interp(late, times, distinct)
    hours = (times[-1] - late) / SECONDS_PER_HOUR
    return Growth(
        times_s=times - begin,
        distinct_tokens=distinct * trace.block_size_tokens,
        recent_tokens=recent * trace.block_size_tokens,
        window_s=window_s,
        new_tokens_per_hour=float(new * trace.block_size_tokens / hours) if hours > 0 else None,
    )


def _recent(trace: BlockTrace, used_s: FloatArray, after_s: float, until_s: float) -> int:
    """Distinct blocks used in a stretch of time; times of a trace rise."""
    begin, end = np.searchsorted(used_s, [after_s, until_s], side="right")
    return len(np.unique(trace.block_ids[begin:end]))
