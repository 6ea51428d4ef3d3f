"""How the cells of a column are written: numbers, dates, and the unit that their size betrays."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

PLAIN, THOUSANDS, COMMA = "plain", "thousands", "comma"
"""1234.5 · 1,234.5 · 1.234,5"""
_STYLES = (
    (PLAIN, re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")),
    (THOUSANDS, re.compile(r"[-+]?\d{1,3}(?:[, ]\d{3})*(?:\.\d+)?")),
    (COMMA, re.compile(r"[-+]?\d{1,3}(?:[. ]?\d{3})*(?:,\d+)?")),
)
_POINTED = re.compile(r"\d{1,3}(?:\.\d{3})+")
ENOUGH = 0.5
"""Share of the cells that must be written so; what else stands in the column are bad rows."""
EMPTY = ("", "null", "NULL", "None", "none", "nan", "NaN", "NAN", "NA", "N/A", "n/a", "nil", "-", "--", "\\N")
"""Cells that say nothing."""
_YEAR_FIRST = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?(?:[ T]\d\d?:\d\d.*)?")
_YEAR_LAST = re.compile(r"(\d\d?)[-/.](\d\d?)[-/.]\d{4}(?:[ T,]+\d\d?:\d\d.*)?")
ZONED = re.compile(r".*(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)$")
MONTHS = 12
_EPOCHS = (("ns", 1e17), ("us", 1e14), ("ms", 1e11), ("s", 3e8))
"""Least number that counts as a date since 1970 in that unit: 1979 in seconds, 1973 in the others."""
_SLOW = {"ttft": 20.0, "e2e": 600.0, "itl": 1.0}
"""A median above this is taken as milliseconds: first tokens rarely take 20 s, requests 10 minutes, gaps 1 s."""
RARE_GAP = 100.0
"""Mean gap from which whole numbers are taken as milliseconds: one request in 100 s would hardly be logged."""


def filled(cells: Sequence[str]) -> list[str]:
    """Cells that say something."""
    return [cell.strip() for cell in cells if cell.strip() not in EMPTY]


def number_style(cells: Sequence[str], *, whole: bool = False) -> str | None:
    """How most cells write a number; ``None`` when they are none. ``whole``: a point in it parts thousands."""
    said = filled(cells)
    pointed = [cell for cell in said if "." in cell]
    if whole and pointed and all(_POINTED.fullmatch(cell) for cell in pointed):
        return COMMA
    for style, pattern in _STYLES:
        if said and sum(bool(pattern.fullmatch(cell)) for cell in said) > ENOUGH * len(said):
            return style
    return None


def numbers(cells: Sequence[str]) -> list[float]:
    """The plainly written numbers among the cells."""
    return [float(cell) for cell in filled(cells) if _STYLES[0][1].fullmatch(cell)]


def date_style(cells: Sequence[str]) -> tuple[str | None, bool]:
    """``iso``, ``dmy`` or ``mdy``, and whether that is only assumed; ``None`` when most cells are no dates."""
    said = filled(cells)
    if not said:
        return None, False
    if sum(bool(_YEAR_FIRST.fullmatch(cell)) for cell in said) > ENOUGH * len(said):
        return "iso", False
    last = [match for cell in said if (match := _YEAR_LAST.fullmatch(cell))]
    if len(last) <= ENOUGH * len(said):
        return None, False
    if any(int(match[2]) > MONTHS for match in last):
        return "mdy", False
    return "dmy", not any(int(match[1]) > MONTHS for match in last)


def time_unit(cells: Sequence[str]) -> tuple[str, bool]:
    """Unit of a column of numbers that are times, and whether it is only assumed."""
    values = numbers(cells)
    if not values:
        return "s", True
    middle = abs(statistics.median(values))
    for unit, least in _EPOCHS:
        if middle >= least:
            return unit, False
    if any(value != int(value) for value in values):
        return "s", False
    span = max(values) - min(values)
    return ("ms" if span / len(values) > RARE_GAP else "s"), True


def duration_unit(field: str, cells: Sequence[str]) -> str:
    """The likely unit of a duration."""
    values = [value for value in numbers(cells) if value > 0]
    return "ms" if values and statistics.median(values) > _SLOW[field] else "s"
