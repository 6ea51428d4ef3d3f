"""AIPerf's sweep: one load point a combination of settings, from its JSON or its table.

With several runs of one setting each figure is the mean over them, percentiles too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from data.formats.csv_rows import cell_number, csv_rows, first_cells, named_rows
from data.formats.document import Document
from data.formats.json_fields import MAX_TEXT, count, fact, number, text
from data.formats.json_objects import JsonObject, first_objects, objects, part
from data.formats.nvidia_metrics import Metric, Metrics, filled
from data.formats.pieces import read_pieces
from data.records import BenchmarkRun, ReadResult

_STATISTIC = re.compile(r"^(?P<name>.+)_(?P<statistic>avg|p\d+|std|min|max|sum|count)$")
_COLUMN = re.compile(r"^(?P<name>.+)_(?P<statistic>avg|p\d+)_mean$")
_TIMES = ("latency", "time_to", "duration", "ttft")
_INSIDE = ("avg", "p50", "p90", "p95", "p99")


@dataclass(frozen=True, kw_only=True)
class _Piece:
    settings: JsonObject
    metrics: Metrics
    version: str | None = None


def looks_like(document: Document) -> bool:
    """True when the file lists metrics by combination of settings, as JSON or as a table."""
    if document.values:
        return next(_from_json(first_objects(document)), None) is not None
    cells = first_cells(document.text)
    return sum(_COLUMN.match(cell) is not None for cell in cells) > 1


def read(document: Document) -> ReadResult:
    """Every combination."""
    if document.values:
        return read_pieces(document, "aiperf_sweep_json", _from_json(objects(document)), _run)
    return read_pieces(document, "aiperf_sweep_csv", _from_csv(document), _run)


def _from_json(items: Iterable[tuple[int, JsonObject]]) -> Iterator[tuple[int, _Piece]]:
    for line, item in items:
        version = text(item, "aiperf_version")
        for settings, metrics in _combinations(item):
            if any(_STATISTIC.match(name) for name in metrics) or "request_latency" in metrics:
                yield line, _Piece(settings=settings, metrics=_joined(metrics), version=version)


def _combinations(item: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Settings and metrics: a list of them, a mapping by value in early versions, or the mean over runs of one."""
    listed, by_value = item.get("per_combination_metrics"), item.get("per_value_metrics")
    metadata = part(item, "metadata")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            yield part(entry, "parameters"), part(entry, "metrics")
    for value, metrics in (by_value if isinstance(by_value, dict) else {}).items():
        if isinstance(metrics, dict):
            yield {str(metadata.get("parameter_name", "value")): value}, part(metrics, "metrics") or metrics
    if "aggregation_type" in metadata and "num_profile_runs" in metadata:
        yield {}, part(item, "metrics")


def _joined(entries: JsonObject) -> Metrics:
    """``time_to_first_token_p99: {mean, unit}`` as the P99 of that metric."""
    found: dict[str, dict[str, Any]] = {}
    units: dict[str, str | None] = {}
    for key, entry in entries.items():
        if not isinstance(entry, dict):
            continue
        match = _STATISTIC.match(key)
        name = match["name"] if match else key
        statistics = found.setdefault(name, {})
        for inside in _INSIDE:
            if inside in entry:
                statistics.setdefault(inside, entry[inside])
        statistics[match["statistic"] if match else "avg"] = entry.get("mean", entry.get("avg"))
        units[name] = text(entry, "unit") or units.get(name)
    return {name: Metric(unit=units[name], statistics=statistics) for name, statistics in found.items()}


def _from_csv(document: Document) -> Iterator[tuple[int, _Piece]]:
    """The first of the file's tables, up to the empty line."""
    rows = csv_rows(document.text, document.name)
    start = next(index for index, row in enumerate(rows) if any(row))
    end = next((index for index, row in enumerate(rows) if index > start and not any(row)), len(rows))
    header = rows[start]
    for line, cells in enumerate(named_rows(header, rows[start + 1 : end]), start=start + 2):
        settings = {name: cell for name, cell in cells.items() if not re.search(r"_(mean|std|min|max|cv)$", name)}
        yield line, _Piece(settings=settings, metrics=_metrics_of(cells))


def _metrics_of(cells: Mapping[str, str]) -> Metrics:
    """The table leaves the unit out: the tool always shows times in ms and its duration in seconds."""
    found: dict[str, dict[str, float | None]] = {}
    for column, cell in cells.items():
        match = _COLUMN.match(column)
        if match:
            found.setdefault(match["name"], {})[match["statistic"]] = cell_number(cell)
    return {
        name: Metric(
            unit="sec" if name == "benchmark_duration" else "ms" if _is_time(name) else None, statistics=values
        )
        for name, values in found.items()
    }


def _is_time(name: str) -> bool:
    return any(word in name for word in _TIMES)


def _run(piece: _Piece) -> BenchmarkRun:
    settings = {key.rpartition(".")[2]: value for key, value in piece.settings.items()}
    kept = {
        key[:MAX_TEXT]: fact(value) for key, value in settings.items() if key not in ("concurrency", "request_rate")
    }
    run = BenchmarkRun(
        tool="aiperf",
        tool_version=piece.version,
        max_concurrency=count(settings, "concurrency"),
        request_rate_per_s=number(settings, "request_rate") or number(settings, "rate"),
        extra={key: value for key, value in kept.items() if value is not None},
    )
    return filled(run, piece.metrics)
