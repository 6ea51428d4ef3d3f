"""The Prometheus text format: samples with labels, histograms, and values that mean "not available"."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from calc.errors import UnreadableFile
from calc.messages import msg
from data.records import Histogram, LatencyStats

MAX_LINES = 500_000
"""Most lines read of one scrape."""
MAX_SAMPLES = 100_000
"""Most samples kept of one scrape; a fleet of a hundred engines has a tenth of that."""
SOURCE_LABEL = "plimsoll_address"
"""Tells apart the same series of several addresses read together."""
RANKS = frozenset({"tp_rank", "pp_rank", "dp_rank", "moe_ep_rank"})
"""Labels of series that every rank of one server repeats: the largest counts, they are not added."""

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+(?:\.\d+)?))?\s*$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_EXEMPLAR = re.compile(r"\s+#\s+\{.*$")
_MS_EPOCH = 1e11
"""Timestamps above this are milliseconds (the Prometheus text format), below it seconds (OpenMetrics)."""
_BLANK_INT64 = 9.2e18
"""DCGM writes 0x7ffffffffffffff0 and the next few for "not supported", "not found" …"""
_BLANK_INT32 = range(0x7FFFFFF0, 0x7FFFFFF6)
_BLANK_FP64 = range(2**47, 2**47 + 6)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One line: a metric, its labels, its value, and the Unix time when the line has one."""

    name: str
    labels: Mapping[str, str]
    value: float
    time_s: float | None = None


Index: TypeAlias = Mapping[str, Sequence[Sample]]
"""Samples by metric name."""


def parse_samples(text: str, wanted: Callable[[str], bool] | None = None) -> tuple[list[Sample], int]:
    """Samples of a scrape (those ``wanted`` by name) and the number of lines that are neither sample nor comment."""
    samples: list[Sample] = []
    odd = 0
    for line in text.splitlines()[:MAX_LINES]:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _SAMPLE.match(_EXEMPLAR.sub("", line.strip()) if " # {" in line else line.strip())
        if match is None:
            odd += 1
        elif wanted is None or wanted(match[1]):
            sample = _sample(match)
            odd += sample is None
            samples += [sample] if sample is not None else []
            _bound_samples(len(samples))
    return samples, odd


def _bound_samples(count: int) -> None:
    if count > MAX_SAMPLES:
        raise UnreadableFile(
            msg(
                "a scrape of at most {limit:count} samples was expected: read fewer engines.",
                limit=MAX_SAMPLES,
            )
        )


def _sample(match: re.Match[str]) -> Sample | None:
    name, labels, value, time = match.groups()
    try:
        number = float(value)
    except ValueError:
        return None
    return Sample(name=name, labels=dict(_LABEL.findall(labels or "")), value=number, time_s=_seconds(time))


def indexed(samples: Sequence[Sample]) -> Index:
    """Samples by metric name."""
    index: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        index[sample.name].append(sample)
    return dict(index)


def _seconds(time: str | None) -> float | None:
    if time is None:
        return None
    moment = float(time)
    return moment / 1000 if moment > _MS_EPOCH else moment


def is_blank(value: float) -> bool:
    """True for what exporters write where they have no value: NaN, infinity, -1 and DCGM's own numbers."""
    unknown = not math.isfinite(value) or value < 0 or value >= _BLANK_INT64
    return unknown or value in _BLANK_INT32 or value in _BLANK_FP64


def by_engine(samples: Sequence[Sample]) -> dict[tuple[tuple[str, str], ...], float]:
    """The value of each engine (or other series): the largest among its ranks."""
    engines: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        engine = tuple(sorted((name, value) for name, value in sample.labels.items() if name not in RANKS))
        engines[engine] = max(sample.value, engines.get(engine, sample.value))
    return engines


def histogram_of(index: Index, name: str) -> Histogram | None:
    """The histogram ``name``, added up over all engines of the scrape; ``None`` when it is absent or empty."""
    counts: dict[float, float] = {}
    for labels, value in by_engine(_usable(index, f"{name}_bucket")).items():
        if (bound := _bound(dict(labels).get("le", ""))) is not None:
            counts[bound] = counts.get(bound, 0.0) + value
    total, count = (_total(index, f"{name}_{part}") for part in ("sum", "count"))
    if count is None or count < 1:
        return None
    bounds = tuple(sorted(counts))
    return Histogram(bounds=bounds, counts=tuple(counts[b] for b in bounds), total=total, count=count)


def _usable(index: Index, name: str) -> list[Sample]:
    return [sample for sample in index.get(name, ()) if not is_blank(sample.value)]


def _bound(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _total(index: Index, name: str) -> float | None:
    values = by_engine(_usable(index, name)).values()
    return sum(values) if values else None


def stats_of(histogram: Histogram | None) -> LatencyStats | None:
    """Mean = sum / count; percentiles by linear interpolation inside their bucket, as Prometheus does.

    A percentile below the first bound or beyond the last finite one is not known: the bucket says nothing more.
    """
    if histogram is None or not histogram.count:
        return None
    mean = None if histogram.total is None else histogram.total / histogram.count
    p50, p90, p95, p99 = (_quantile(histogram, share) for share in (0.5, 0.9, 0.95, 0.99))
    return LatencyStats(mean_s=mean, p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99)


def _quantile(histogram: Histogram, share: float) -> float | None:
    if not histogram.counts or histogram.counts[-1] <= 0:
        return None
    rank = share * histogram.counts[-1]
    if histogram.counts[0] >= rank:
        return None
    lower_bound, lower_count = histogram.bounds[0], histogram.counts[0]
    for bound, count in zip(histogram.bounds[1:], histogram.counts[1:], strict=True):
        if count >= rank:
            if math.isinf(bound):
                return None
            return lower_bound + (bound - lower_bound) * (rank - lower_count) / (count - lower_count)
        lower_bound, lower_count = bound, count
    return None


def subtract(before: Histogram, after: Histogram) -> Histogram | None:
    """Observations between two scrapes; ``None`` when there were none or the buckets changed."""
    if before.bounds != after.bounds or after.count is None or before.count is None:
        return None
    count = after.count - before.count
    if count <= 0:
        return None
    total = None if after.total is None or before.total is None else after.total - before.total
    counts = tuple(b - a for a, b in zip(before.counts, after.counts, strict=True))
    return Histogram(bounds=after.bounds, counts=counts, total=total, count=count)
