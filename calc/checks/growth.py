"""Does latency grow while a run lasts? Then requests pile up, and the percentiles depend on how long it ran."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEWEST = 60
"""Requests: below it a third holds fewer than twenty, whose median says little."""
SIGMAS = 4.0
"""A rank correlation this far above chance (standard deviation 1/√(n − 1)) is a trend."""
SPREAD_SHARE = 0.5
"""The starts must cover this part of the run: requests sent at once have an order, but no time."""


def latency_growth_ratio(latencies_s: NDArray[np.float64], started_s: NDArray[np.float64]) -> float | None:
    """Median latency of the last third over that of the first third, in order of start.

    ``None`` when there are too few requests, when they were sent at once, or when nothing but chance is seen
    (Spearman's rank correlation of start and latency below 4/√(n − 1)).
    """
    known = np.isfinite(latencies_s) & np.isfinite(started_s) if latencies_s.size == started_s.size else np.zeros(0)
    count = int(known.sum())
    if count < FEWEST:
        return None
    begun, taken = started_s[known], latencies_s[known]
    if float(np.ptp(begun)) < SPREAD_SHARE * float((begun + taken).max() - begun.min()):
        return None
    in_order = taken[np.argsort(begun, kind="stable")]
    if _rank_correlation(in_order) < SIGMAS / np.sqrt(count - 1):
        return None
    third = count // 3
    first = float(np.median(in_order[:third]))
    return float(np.median(in_order[-third:])) / first if first > 0 else None


def _rank_correlation(values: NDArray[np.float64]) -> float:
    """Of a series with its own order; equal values share their ranks."""
    order = np.arange(values.size, dtype=np.float64)
    ranks = np.empty(values.size)
    ranks[np.argsort(values, kind="stable")] = order
    unique, inverse = np.unique(values, return_inverse=True)
    if unique.size == 1:
        return 0.0
    shared = np.bincount(inverse, weights=ranks) / np.bincount(inverse)
    return float(np.corrcoef(order, shared[inverse])[0, 1])
