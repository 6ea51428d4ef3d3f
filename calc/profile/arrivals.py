"""When the requests of a log came: rates, peaks, bursts, gaps, and whether its clock ticks too coarsely to tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.lengths import FloatArray, IntArray
from calc.profile.spread import Spread, spread
from calc.units import SECONDS_PER_MINUTE

TICKED_SHARE = 0.2
"""From this share of zero gaps on the clock of the log ticks: gaps say nothing then, counts do."""
GRID_MIN_REQUESTS, GRID_LOOKED_AT = 100, 5000
GRIDS_S = (60.0, 30.0, 10.0, 5.0, 3.0, 1.0)
"""Ticks of clocks looked for; 3 s is that of a public trace, 1 s that of logs without fractions."""
GRID_SHARE = 0.99
"""Share of the gaps that must lie on a grid."""
GRID_TOLERANCE_S = 0.005
BURST_INDEX = 2.0
"""Index of dispersion of the minute counts from which the load comes in bursts; Poisson has 1."""


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """Seconds between one arrival and the next, in order of time."""

    mean_s: float
    cv_samp: float | None
    cv_pop: float | None
    p50_s: float
    p99_s: float
    max_s: float
    zero_share: float


@dataclass(frozen=True, kw_only=True)
class ArrivalProfile:
    """Minutes and seconds are counted from the first request; empty ones and the last, partial one included."""

    duration_s: float
    rate_per_s: float | None
    """Requests over duration; ``None`` where all came at once."""
    per_minute: IntArray
    """Requests in each minute."""
    peak_minute_requests: int
    peak_second_requests: int
    minute_index_of_dispersion: float | None
    """Variance (n - 1) over mean of the minute counts; Poisson = 1."""
    empty_minutes: int
    gaps: Gaps | None
    tick_s: float | None
    """The clock's tick, if the arrivals sit on a grid."""
    sorted_by_time: bool

    @property
    def minutes(self) -> int:
        """Minutes that the log spans."""
        return len(self.per_minute)

    @property
    def mean_per_minute(self) -> float:
        """Requests in a minute on average over all minutes, the partial one counted as a whole."""
        return float(self.per_minute.mean())

    @property
    def peak_to_mean(self) -> float | None:
        """Requests of the fullest minute over those of a mean one."""
        return None if self.rate_per_s is None else self.peak_minute_requests / (self.rate_per_s * SECONDS_PER_MINUTE)

    @property
    def ticked(self) -> bool:
        """Whether the gaps are those of the clock and not of the users."""
        return self.tick_s is not None or (self.gaps is not None and self.gaps.zero_share > TICKED_SHARE)

    @property
    def burst_index(self) -> float | None:
        """The index of dispersion of whole minutes: a last one cut off by the log's end is empty for that reason."""
        return _dispersion(self.per_minute[:-1])

    @property
    def bursty(self) -> bool:
        """Whether the minutes differ by more than chance."""
        return self.burst_index is not None and self.burst_index > BURST_INDEX


def _dispersion(counts: IntArray) -> float | None:
    """Variance (n - 1) over mean; ``None`` of fewer than two counts, or of none but 0."""
    return float(counts.var(ddof=1) / counts.mean()) if len(counts) > 1 and counts.any() else None


def arrival_profile(arrival_s: FloatArray) -> ArrivalProfile:
    """Of at least one request; the first is at 0."""
    in_order = bool(np.all(arrival_s[1:] >= arrival_s[:-1]))
    times_s = arrival_s if in_order else np.sort(arrival_s)
    duration_s = float(times_s[-1] - times_s[0])
    since_s = times_s - times_s[0]
    per_minute = np.bincount((since_s // SECONDS_PER_MINUTE).astype(np.int64))
    gaps_s = np.diff(times_s)
    return ArrivalProfile(
        duration_s=duration_s,
        rate_per_s=len(times_s) / duration_s if duration_s else None,
        per_minute=per_minute,
        peak_minute_requests=int(per_minute.max()),
        peak_second_requests=fullest_second(since_s),
        minute_index_of_dispersion=_dispersion(per_minute),
        empty_minutes=int((per_minute == 0).sum()),
        gaps=_gaps(gaps_s, spread(gaps_s)),
        tick_s=_tick(gaps_s),
        sorted_by_time=in_order,
    )


def fullest_second(since_s: FloatArray) -> int:
    """Most requests in one second; times rise, so equal seconds stand together and years cost no more than hours."""
    seconds = np.floor(since_s)
    begins = np.flatnonzero(np.concatenate([[True], seconds[1:] != seconds[:-1], [True]]))
    return int(np.diff(begins).max())


def _gaps(gaps_s: FloatArray, told: Spread | None) -> Gaps | None:
    if told is None:
        return None
    return Gaps(
        mean_s=told.mean,
        cv_samp=told.std / told.mean if told.std is not None and told.mean else None,
        cv_pop=float(gaps_s.std()) / told.mean if told.mean else None,
        p50_s=told.p50,
        p99_s=told.p99,
        max_s=told.max,
        zero_share=float((gaps_s == 0).mean()),
    )


def _tick(gaps_s: FloatArray) -> float | None:
    """The coarsest grid on which nearly all gaps lie."""
    if len(gaps_s) < GRID_MIN_REQUESTS:
        return None
    some_s = gaps_s[:: max(1, len(gaps_s) // GRID_LOOKED_AT)]
    for tick_s in GRIDS_S:
        if not _on_grid(some_s[some_s > 0], tick_s):  # a look at some spares a pass over all
            continue
        if _on_grid(gaps_s[gaps_s > 0], tick_s):
            return tick_s
    return None


def _on_grid(waits_s: FloatArray, tick_s: float) -> bool:
    if not len(waits_s) or float(waits_s.min()) < tick_s / 2:
        return False
    off_s = np.abs(waits_s - np.round(waits_s / tick_s) * tick_s)
    return float((off_s <= GRID_TOLERANCE_S).mean()) >= GRID_SHARE
