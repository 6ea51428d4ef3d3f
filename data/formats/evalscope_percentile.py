"""``benchmark_percentile.json`` of ``evalscope perf``: one row a percentile, or (old) one list a column.

Units stand in the column's name: seconds in old files, milliseconds for TTFT, TPOT and ITL in new ones. Percentiles
are the nearest rank, not interpolated. Counts, rates and lengths stand in the summary beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from calc.units import MILLI
from data.formats.document import Document
from data.formats.json_fields import number
from data.formats.json_objects import JsonObject, any_object, objects
from data.formats.result import finish
from data.formats.row_checks import RefusedRow, check_row
from data.records import BenchmarkRun, LatencyStats, ReadResult, RowProblem

_LABEL_KEYS = ("Percentiles", "Percentile")
_LABEL = re.compile(r"[pP]?(50|90|95|99)(?:\.0+)?\s*%?")
_COLUMN = re.compile(r"(TTFT|TPOT|ITL|Latency) ?\((s|ms)\)")
_LATENCIES = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "Latency": "e2e"}
_UNITS_S = {"s": 1.0, "ms": MILLI}


def looks_like(document: Document) -> bool:
    """True when rows or columns carry percentile labels beside a latency."""
    return any_object(document, _is_row)


def read(document: Document) -> ReadResult:
    """The percentiles of one run, without anything else about it."""
    problems: list[RowProblem] = list(document.problems)
    runs: list[BenchmarkRun] = []
    try:
        run = BenchmarkRun(tool="evalscope perf", flags=("needs_companion",), **_latencies(document))
        check_row(run)
        runs.append(run)
    except RefusedRow as refused:
        problems.append(RowProblem(line=1, reason=refused.reason))
    return finish(document, "evalscope_percentile", runs, problems, ("percentiles_nearest_rank",))


def _is_row(item: JsonObject) -> bool:
    return any(key in item for key in _LABEL_KEYS) and any(_COLUMN.fullmatch(key) for key in item)


def _latencies(document: Document) -> dict[str, Any]:
    found: dict[str, dict[str, float]] = {}
    for row in _rows(document):
        label = next((row[key] for key in _LABEL_KEYS if key in row), "")
        named = _LABEL.fullmatch(str(label).strip())
        for key in row if named else ():
            column = _COLUMN.fullmatch(key)
            value = number(row, key) if column else None
            if column and named and value is not None:
                name, unit = column.groups()
                found.setdefault(_LATENCIES[name], {})[f"p{named.group(1)}_s"] = value * _UNITS_S[unit]
    return {name: LatencyStats(**stats) for name, stats in found.items() if any(stats.values())}


def _rows(document: Document) -> Iterator[Mapping[str, Any]]:
    """One mapping a percentile, also from columns as lists."""
    for _, item in objects(document):
        if not _is_row(item):
            continue
        labels = next(item[key] for key in _LABEL_KEYS if key in item)
        if not isinstance(labels, list):
            yield item
            continue
        lists = {key: values for key, values in item.items() if isinstance(values, list)}
        for index in range(len(labels)):
            yield {key: values[index] for key, values in lists.items() if index < len(values)}
