"""How figures of requests spread: mean, deviation, percentiles; and how two of them go together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    """``None`` where nothing is known. Whole numbers are counted, others sorted: both need few passes over a log."""
    if values is None or not len(values):
        return None
    if values.dtype.kind == "i" and values.min() >= 0 and values.max() < FEW_VALUES:
        return spread_of_counts(np.bincount(values))
    rising = np.sort(values)
    total = float(rising.sum())
    return _told(
        count=len(rising), total=total, std=float(np.std(rising, ddof=1)) if len(rising) > 1 else None,
        ends=(float(rising[0]), float(rising[-1])), at=lambda places: rising[places],
    )  # fmt: skip


def spread_of_counts(counts: IntArray) -> Spread:
    """Of whole numbers, given how often each of 0, 1, 2 … stands among them."""
    there = np.flatnonzero(counts)
    often = counts[there]
    number, total = int(often.sum()), int(there @ often)
    squares = float(((there - total / number) ** 2) @ often)
    upto = np.cumsum(often)
    return _told(
        count=number, total=float(total), std=math.sqrt(squares / (number - 1)) if number > 1 else None,
        ends=(float(there[0]), float(there[-1])), at=lambda places: there[np.searchsorted(upto, places, side="right")],
    )  # fmt: skip


def _told(
    *, count: int, total: float, std: float | None, ends: tuple[float, float], at: Callable[[IntArray], Any]
) -> Spread:
    """``at`` gives the values at places of the sorted row."""
    place = np.array(QUANTILES) * (count - 1)
    below = np.floor(place).astype(np.int64)
    low, high = np.asarray(at(below), np.float64), np.asarray(at(np.minimum(below + 1, count - 1)), np.float64)
    p50, p90, p95, p99 = (low + (high - low) * (place - below)).tolist()
    return Spread(
        count=count, mean=total / count, std=std, min=ends[0], p50=p50, p90=p90, p95=p95, p99=p99, max=ends[1],
        total=total,
    )  # fmt: skip


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
