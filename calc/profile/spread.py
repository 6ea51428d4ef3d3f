"""How figures of requests spread: mean, deviation, percentiles; and how two of them go together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calc.lengths import FloatArray, IntArray

QUANTILES = (0.5, 0.9, 0.95, 0.99)
FEW_VALUES = 1 << 22
"""Whole numbers up to here are ranked by counting."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Percentiles by linear interpolation; the deviation is that of a sample (n - 1), ``None`` for a single value."""

    count: int
    mean: float
    std: float | None
    min: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    total: float


def spread(values: FloatArray | IntArray | None) -> Spread | None:
    """``None`` where nothing is known."""
    if values is None or not len(values):
        return None
    p50, p90, p95, p99 = (float(value) for value in np.quantile(values, QUANTILES))
    total = values.sum()
    return Spread(
        count=len(values),
        mean=float(total) / len(values),
        std=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        min=float(values.min()),
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        max=float(values.max()),
        total=float(total),
    )


def known(values: FloatArray | None) -> FloatArray | None:
    """Those that are numbers."""
    return None if values is None else values[~np.isnan(values)]


def pearson(one: FloatArray | IntArray, other: FloatArray | IntArray) -> float | None:
    """Linear correlation (-1 … 1); ``None`` where one of them never changes."""
    if len(one) < 2:  # noqa: PLR2004 - two points make a line
        return None
    first, second = one - one.mean(), other - other.mean()
    scale = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / scale if scale else None


def spearman(one: IntArray, other: IntArray) -> float | None:
    """Correlation of ranks; equal values share the mean of their ranks."""
    return pearson(ranks(one), ranks(other)) if len(one) else None


def ranks(values: IntArray) -> FloatArray:
    """Mean rank of each value, from 1 on."""
    if values.min() >= 0 and values.max() < FEW_VALUES:
        counts = np.bincount(values)
        return (np.cumsum(counts) - (counts - 1) / 2)[values]
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank: FloatArray = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return mean_rank
