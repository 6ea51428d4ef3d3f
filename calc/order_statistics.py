"""Percentiles of simulated requests, and how far chance could have moved them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calc.evidence import Percentiles
from calc.workload import FloatArray

Interval: TypeAlias = tuple[float, float]

BATCHES = 10
"""Stretches of a run that are compared to see how much neighbours are alike: long ones, as queues last."""
T95_TWO_SIDED = 2.262
"""95 % two-sided quantile of Student's t with so many batches less one."""
_BAND_SHARES = np.array([0.5, 0.9, 0.95, 0.99])


@dataclass(frozen=True, kw_only=True)
class Bands:
    """95 % intervals in seconds of percentiles over requests, by order statistics: ranks n·p ± 2.26·√(n·v).

    v is the variance of "at or below the percentile" over stretches of the run (batch means), at least p(1−p): in a
    queue neighbours are alike, and counting them as independent makes intervals several times too narrow. Within a
    tenth of the stability limit even these are: a run is then shorter than its queues (coverage: tests).
    """

    p50_s: Interval
    p90_s: Interval
    p95_s: Interval
    p99_s: Interval


def quantile(rising: FloatArray, share: float) -> float | None:
    """Linear between the closest ranks of a sorted array."""
    if rising.size == 0:
        return None
    at = share * (rising.size - 1)
    low = int(at)
    high = min(low + 1, rising.size - 1)
    return float(rising[low] + (rising[high] - rising[low]) * (at - low))


def percentiles_of(rising: FloatArray) -> Percentiles:
    """Mean and P50, P90, P95, P99 of a sorted array; without values none of them."""
    if rising.size == 0:
        return Percentiles()
    return Percentiles(
        mean_s=float(rising.mean()),
        p50_s=quantile(rising, 0.5),
        p90_s=quantile(rising, 0.9),
        p95_s=quantile(rising, 0.95),
        p99_s=quantile(rising, 0.99),
    )


def bands_of(in_order: FloatArray, rising: FloatArray) -> Bands | None:
    """Bands of values in order of arrival, given sorted too; ``None`` without values."""
    if rising.size == 0:
        return None
    last, variance = rising.size - 1, _BAND_SHARES * (1 - _BAND_SHARES)
    stretches = in_order[: in_order.size - in_order.size % BATCHES].reshape(BATCHES, -1)
    if stretches.size:
        middles = rising[np.rint(_BAND_SHARES * last).astype(np.int64)]
        reached = (stretches <= middles[:, None, None]).mean(axis=2)
        off = reached - reached.mean(axis=1, keepdims=True)
        variance = np.maximum(variance, stretches.shape[1] * (off**2).sum(axis=1) / (BATCHES - 1))
    half = T95_TWO_SIDED * np.sqrt(rising.size * variance)
    lows = np.floor(np.maximum(_BAND_SHARES * last - half, 0)).astype(np.int64)
    highs = np.ceil(np.minimum(_BAND_SHARES * last + half, last)).astype(np.int64)
    p50, p90, p95, p99 = zip(rising[lows].tolist(), rising[highs].tolist(), strict=True)
    return Bands(p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99)
