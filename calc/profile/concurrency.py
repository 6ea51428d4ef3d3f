"""How many requests were open at once over a log: counted where ends are known, else by Little's law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.lengths import FloatArray
from calc.units import SECONDS_PER_MINUTE

MICROS = 1_000_000
ASSUMED_FIRST_S, ASSUMED_ITL_S = 0.5, 0.03
"""Assumed where a log has no ends: half a second to the first token and 30 ms for each one after it."""
MAX_MINUTES = 50_000
"""Minutes drawn one by one: five weeks."""
LEVELS = (0.5, 0.95, 0.99)


@dataclass(frozen=True, kw_only=True)
class ConcurrencyProfile:
    """Open requests; percentiles weigh each level by how long it lasted."""

    mean: float
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: int | None = None
    peak_per_minute: tuple[int, ...] = ()
    """Most open requests in each minute."""
    assumed_latency_s: float | None = None
    """Not ``None``: ends are not known, the mean is rate · this latency, and there is no more to say."""


def counted_concurrency(arrival_s: FloatArray, e2e_s: FloatArray) -> ConcurrencyProfile | None:
    """From arrivals and durations; requests without a duration are left out, ``None`` where none has one."""
    known = ~np.isnan(e2e_s)
    if not known.any():
        return None
    starts = np.rint(arrival_s[known] * MICROS).astype(np.int64)
    ends = starts + np.maximum(np.rint(e2e_s[known] * MICROS).astype(np.int64), 0)
    # One number per event: its time, and in the last bit whether it is a start; ends of the same instant come first.
    events = np.sort(np.concatenate([starts << 1 | 1, ends << 1]))
    level = np.cumsum(np.where(events & 1, 1, -1).astype(np.int32), dtype=np.int32)
    times = events >> 1
    lasted = np.diff(times, append=times[-1])
    return _levels(level, times, lasted)


def _levels(level: np.ndarray, times: np.ndarray, lasted: np.ndarray) -> ConcurrencyProfile:
    shown = np.maximum(level, 0)
    by_level = np.bincount(shown, weights=lasted)
    total = float(by_level.sum())
    if total == 0:
        return ConcurrencyProfile(mean=float(shown.max()), max=int(shown.max()))
    below = np.cumsum(by_level) / total
    p50, p95, p99 = (float(np.searchsorted(below, share)) for share in LEVELS)
    return ConcurrencyProfile(
        mean=float(np.arange(len(by_level)) @ by_level) / total,
        p50=p50,
        p95=p95,
        p99=p99,
        max=int(shown.max()),
        peak_per_minute=tuple(_peaks(shown, times)),
    )


def _peaks(level: np.ndarray, times: np.ndarray) -> list[int]:
    """Most open in each minute; one without an event keeps the level before it."""
    minute = (times - times[0]) // (SECONDS_PER_MINUTE * MICROS)
    if minute[-1] >= MAX_MINUTES:
        return []
    begins = np.searchsorted(minute, np.arange(int(minute[-1]) + 2))
    peaks = []
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        carried = int(level[begin - 1]) if begin else 0
        peaks.append(max(carried, int(level[begin:end].max())) if end > begin else carried)
    return peaks


def concurrency_by_little(rate_per_s: float | None, mean_output_tokens: float) -> ConcurrencyProfile | None:
    """Rate · assumed latency, where the log has no ends."""
    if rate_per_s is None:
        return None
    latency_s = ASSUMED_FIRST_S + ASSUMED_ITL_S * max(mean_output_tokens - 1, 0)
    return ConcurrencyProfile(mean=rate_per_s * latency_s, assumed_latency_s=latency_s)
