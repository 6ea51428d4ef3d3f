"""Logs of ``nvidia-smi --query-gpu=… --format=csv``, with or without units in the cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.csv_rows import each_row, first_cells
from data.formats.document import Document
from data.formats.gpu_readings import MAX_READINGS, Reading, figure, log_result, mib, share
from data.records import ReadResult

CODE = "nvidia_smi_query_csv"
_FIGURES = frozenset(
    {"utilization.gpu", "utilization.memory", "memory.used", "memory.total", "power.draw", "temperature.gpu"}
)
_UNIT = re.compile(r"\s*\[[^\]]*\]$")
_NAMELESS = re.compile(r"\d+ (?:%|MiB|W)$")
_POWER = ("power.draw", "power.draw.instant", "power.draw.average")
_POWER_LIMIT = ("enforced.power.limit", "power.limit")
_GPU_IDS = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
_SECOND = 19
"""Characters of a time stamp down to the second: the GPUs of one query differ below it."""


def looks_like(document: Document) -> bool:
    """True when the header names fields of a query, or cells have their units but no header."""
    cells = first_cells(document.text)
    return not document.values and (_is_header(cells) or _is_nameless(cells))


def read(document: Document) -> ReadResult:
    """The log; without its header it cannot be told which column is which."""
    rows = (row for row in each_row(document.text, document.name, limit=MAX_READINGS) if any(row))
    header = next(rows)
    if not _is_header(header):
        raise UnreadableFile(
            msg(
                "{file}: readings of nvidia-smi without the names of their columns: write them again without noheader.",
                file=document.name,
            )
        )
    names = [_UNIT.sub("", cell) for cell in header]
    body = (row for row in rows if row != header)
    return log_result(document, CODE, "nvidia-smi", _readings(names, body))


def _is_header(cells: Sequence[str]) -> bool:
    return bool(_FIGURES & {_UNIT.sub("", cell) for cell in cells})


def _is_nameless(cells: Sequence[str]) -> bool:
    return len(cells) > 1 and sum(_NAMELESS.search(cell) is not None for cell in cells) > 1


def _readings(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[Reading]:
    """Rows of a query name their GPU, or follow each other within one second."""
    place_of = {name: place for place, name in reversed(list(enumerate(names)))}
    ids, power, limit = ([name for name in known if name in place_of] for known in (_GPU_IDS, _POWER, _POWER_LIMIT))
    name = "name" if "name" in place_of else "gpu_name"
    seen: dict[str, int] = {}
    for row in rows:
        cells = {name: row[place] for name, place in place_of.items() if place < len(row)}
        moment = cells.get("timestamp", "")
        yield Reading(
            gpu=_first_cell(cells, ids) or _place(moment[:_SECOND], seen),
            name=cells.get(name) or None,
            busy_share=share(cells.get("utilization.gpu")),
            memory_busy_share=share(cells.get("utilization.memory")),
            memory_used_bytes=mib(cells.get("memory.used")),
            memory_total_bytes=mib(cells.get("memory.total")),
            power_w=_first_figure(cells, power),
            temperature_c=figure(cells.get("temperature.gpu")),
            memory_temperature_c=figure(cells.get("temperature.memory")),
            power_limit_w=_first_figure(cells, limit),
            at=moment or None,
        )


def _place(second: str, seen: dict[str, int]) -> str:
    """Which row of its second it is."""
    place = seen.get(second, 0) if second else 0
    seen[second] = place + 1
    return str(place)


def _first_cell(cells: Mapping[str, str], names: Sequence[str]) -> str:
    for name in names:
        if cells.get(name):
            return cells[name]
    return ""


def _first_figure(cells: Mapping[str, str], names: Sequence[str]) -> float | None:
    for name in names:
        value = figure(cells.get(name))
        if value is not None:
            return value
    return None
