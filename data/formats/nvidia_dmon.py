"""Logs of ``nvidia-smi dmon``: names behind ``#``, repeated now and then; ``mem`` is bandwidth, ``fb`` is memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from data.formats.csv_rows import HEAD_CHARACTERS, lines_of, too_many_rows
from data.formats.document import Document
from data.formats.gpu_readings import MAX_READINGS, Reading, figure, log_result, mib, share
from data.formats.record import DMON
from data.records import ReadResult

CODE = "nvidia_smi_dmon"
_COLUMNS = frozenset({"pwr", "gtemp", "mtemp", "sm", "mem", "fb", "mclk", "pclk"})
_HEAD_LINES = 5


def looks_like(document: Document) -> bool:
    """True when one of the first lines names dmon's columns."""
    lines = document.text[:HEAD_CHARACTERS].lstrip().splitlines()[:_HEAD_LINES]
    return not document.values and any(_names(line) for line in lines)


def read(document: Document) -> ReadResult:
    """The log."""
    return log_result(document, CODE, DMON, _readings(document), ("dmon_mem_is_bandwidth_util",))


def _names(line: str) -> list[str]:
    """Column names of a header line; none of any other, such as the line of units below it."""
    if not line.lstrip().startswith("#"):
        return []
    words = line.replace("#", " ").replace(",", " ").split()
    return words if "gpu" in words and _COLUMNS & set(words) else []


def _readings(document: Document) -> Iterator[Reading]:
    names: list[str] = []
    for number, line in enumerate(lines_of(document.text)):
        if number >= MAX_READINGS:
            raise too_many_rows(document.name, MAX_READINGS)
        if line.lstrip().startswith("#"):
            names = _names(line) or names
            continue
        cells = line.replace(",", " ").split()
        if names and len(cells) == len(names):
            yield _reading(dict(zip(names, cells, strict=True)))


def _reading(cells: Mapping[str, str]) -> Reading:
    return Reading(
        gpu=cells["gpu"],
        busy_share=share(cells.get("sm")),
        memory_busy_share=share(cells.get("mem")),
        memory_used_bytes=mib(cells.get("fb")),
        power_w=figure(cells.get("pwr")),
        temperature_c=figure(cells.get("gtemp")),
        memory_temperature_c=figure(cells.get("mtemp")),
        at=f"{cells['Date']} {cells['Time']}" if cells.keys() >= {"Date", "Time"} else None,
    )
