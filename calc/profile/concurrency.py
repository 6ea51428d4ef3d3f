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
MOMENTS = 200_000
"""Moments looked at for percentiles: they are right to less than a thousandth of the time."""
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
    level = np.cumsum((events.astype(np.int32) & 1) * 2 - 1, dtype=np.int32)
    times = events >> 1
    span = int(times[-1] - times[0])
    if span == 0:
        return ConcurrencyProfile(mean=float(level.max()), max=int(level.max()))
    p50, p95, p99 = _percentiles(level, times)
    return ConcurrencyProfile(
        mean=float((ends - starts).sum()) / span,
        p50=p50,
        p95=p95,
        p99=p99,
        max=int(level.max()),
        peak_per_minute=tuple(_peaks(level, times)),
    )


def _percentiles(level: np.ndarray, times: np.ndarray) -> list[float]:
    """Levels at moments spread evenly over the log: what lasts longer is met more often."""
    moments = np.linspace(float(times[0]), float(times[-1]), MOMENTS, endpoint=False)
    met = level[np.searchsorted(times, moments, side="right") - 1]
    return [float(value) for value in np.quantile(met, LEVELS, method="inverted_cdf")]


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
