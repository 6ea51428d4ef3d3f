"""Lines of a recording as JSON and back, small: what follows from the counters, and what is not known, is left out.

A line of a foreign file is checked value by value: numbers are finite, names and lists are short, nothing else is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import pairwise
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from data.live.entry import Entry, Kind, Problem, Trouble
from data.records import GpuMetrics, Histogram, MetricsSnapshot
from data.sources.metric_names import HISTOGRAMS, LIFETIME
from data.sources.metrics_text import stats_of

MAX_NAME = 200
MAX_BUCKETS, MAX_GPUS, MAX_SETTINGS = 200, 512, 16
LARGEST_NUMBER = 1e18
"""Beyond any counter; 10^18 bytes are an exabyte."""
_TEXTS = ("source", "model")
_DERIVED = frozenset({*HISTOGRAMS, "histograms", "settings", "gpus", *_TEXTS})
_NUMBERS = tuple(field.name for field in fields(MetricsSnapshot) if field.name not in _DERIVED)
_GPU_NUMBERS = tuple(field.name for field in fields(GpuMetrics) if field.name not in ("gpu", "name"))


def entry_object(entry: Entry) -> dict[str, Any]:
    """One line as an object for JSON."""
    line: dict[str, Any] = {"at_s": round(entry.at_s, 3), "kind": entry.kind.value}
    if entry.snapshot is not None:
        line["snapshot"] = _snapshot_object(entry.snapshot)
    if entry.problem is not None:
        line["problem"] = {"trouble": entry.problem.trouble.value, "detail": entry.problem.detail}
    return line


def read_entry(line: Any) -> Entry:
    """The line back; a :class:`ValueError` says which part is not as it should be."""
    given = _object(line)
    kind = Kind(_text(given.get("kind")))
    snapshot = _read_snapshot(given["snapshot"]) if kind is Kind.SCRAPE else None
    problem = given.get("problem")
    return Entry(
        at_s=_number(given.get("at_s")),
        kind=kind,
        snapshot=snapshot,
        problem=None if problem is None else _read_problem(problem),
    )


def is_bounded(entry: Entry) -> bool:
    """Whether a line can be written and read again: an exporter may send anything under a known name."""
    try:
        read_entry(entry_object(entry))
    except (ValueError, TypeError):
        return False
    return True


def broken(name: str, number: int, reason: str) -> UnreadableFile:
    """The error for a line that is no entry."""
    return UnreadableFile(
        msg(
            "{file}, line {line:count}: an entry of a recording was expected ({reason}): export the recording again.",
            file=name,
            line=number,
            reason=reason,
        )
    )


def _snapshot_object(snapshot: MetricsSnapshot) -> dict[str, Any]:
    known = {name: getattr(snapshot, name) for name in (*_TEXTS, *_NUMBERS)}
    found: dict[str, Any] = {name: _short(value) for name, value in known.items() if value is not None}
    if snapshot.histograms:
        found["histograms"] = {name: _histogram_object(one) for name, one in snapshot.histograms.items()}
    if snapshot.settings:
        found["settings"] = dict(snapshot.settings)
    if snapshot.gpus:
        found["gpus"] = [
            {f.name: _short(v) for f in fields(gpu) if (v := getattr(gpu, f.name)) is not None} for gpu in snapshot.gpus
        ]
    return found


def _histogram_object(histogram: Histogram) -> dict[str, Any]:
    return {
        "bounds": ["inf" if math.isinf(bound) else bound for bound in histogram.bounds],
        "counts": [_short(count) for count in histogram.counts],
        "total": _short(histogram.total),
        "count": _short(histogram.count),
    }


def _short(value: Any) -> Any:
    """Whole numbers without ``.0``, others to nine digits: a counter loses nothing by it."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.9g}") if abs(value) < LARGEST_NUMBER else value
    return value


def _read_snapshot(raw: Any) -> MetricsSnapshot:
    given = _object(raw)
    histograms = {
        name: _read_histogram(one)
        for name, one in _object(given.get("histograms", {})).items()
        if name in HISTOGRAMS or name == LIFETIME
    }
    numbers: dict[str, Any] = {name: _number(given[name]) for name in _NUMBERS if given.get(name) is not None}
    latencies: dict[str, Any] = {name: stats_of(histograms.get(name)) for name in HISTOGRAMS}
    return MetricsSnapshot(
        source=_text(given.get("source")),
        model=None if given.get("model") is None else _text(given["model"]),
        histograms=histograms,
        settings={_text(k): _text(v) for k, v in _few(list(_object(given.get("settings", {})).items()), MAX_SETTINGS)},
        gpus=tuple(_read_gpu(one) for one in _few(given.get("gpus", []), MAX_GPUS)),
        **numbers,
        **latencies,
    )


def _read_histogram(raw: Any) -> Histogram:
    given = _object(raw)
    bounds, counts = _bounds(tuple(_few(given.get("bounds"), MAX_BUCKETS))), _numbers(given.get("counts"))
    if len(bounds) != len(counts) or any(after < before for before, after in pairwise(counts)):
        raise ValueError("histogram")
    total, count = (None if given.get(part) is None else _number(given[part]) for part in ("total", "count"))
    return Histogram(bounds=bounds, counts=counts, total=total, count=count)


@lru_cache(maxsize=256)
def _bounds(raw: tuple[Any, ...]) -> tuple[float, ...]:
    """Rising bounds of a histogram, checked once for all its scrapes."""
    bounds = tuple(math.inf if bound == "inf" else _number(bound) for bound in raw)
    if any(after <= before for before, after in pairwise(bounds)):
        raise ValueError("histogram")
    return bounds


def _numbers(raw: Any) -> tuple[float, ...]:
    """Many numbers at once; a JSON reader that refuses NaN has been there before."""
    values = _few(raw, MAX_BUCKETS)
    if not {type(value) for value in values} <= {int, float} or (values and not _within(min(values), max(values))):
        raise ValueError("number")
    return tuple(map(float, values))


def _within(least: float, most: float) -> bool:
    return least >= 0 and most <= LARGEST_NUMBER


def _read_gpu(raw: Any) -> GpuMetrics:
    given = _object(raw)
    numbers: dict[str, Any] = {name: _number(given[name]) for name in _GPU_NUMBERS if given.get(name) is not None}
    name = given.get("name")
    return GpuMetrics(gpu=_text(given.get("gpu")), name=None if name is None else _text(name), **numbers)


def _read_problem(raw: Any) -> Problem:
    given = _object(raw)
    return Problem(trouble=Trouble(_text(given.get("trouble"))), detail=_text(given.get("detail", "")))


def _object(raw: Any) -> Mapping[str, Any]:
    if not isinstance(raw, dict):
        raise ValueError("object")
    return raw


def _few(raw: Any, most: int) -> Sequence[Any]:
    if not isinstance(raw, list) or len(raw) > most:
        raise ValueError("list")
    return raw


def _text(raw: Any) -> str:
    if not isinstance(raw, str) or len(raw) > MAX_NAME or not raw.isprintable():
        raise ValueError("text")
    return raw


def _number(raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 <= raw <= LARGEST_NUMBER:
        raise ValueError("number")
    return float(raw)
