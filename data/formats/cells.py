"""The cells of one table row in base units, before they become a load point or one request of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from calc.messages import msg
from data.formats.columns import Column
from data.formats.fields import FIELDS, UNITS
from data.formats.numbers import Number, Special, parse_cell
from data.formats.row_checks import RefusedRow
from data.formats.table import Row

MAX_TEXT = 200
"""Longest text kept from a cell."""
_REQUEST_COUNTS = ("num_prompts", "completed", "failed")


@dataclass(kw_only=True)
class Cells:
    """Values of one row in base units, by field and statistic, while it is read."""

    values: dict[tuple[str, str | None], float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    infinite_rate: bool = False


def read_cells(row: Row, columns: Sequence[Column], width: int) -> Cells:
    """Every used cell of a row; refuses a row with surplus cells, words for numbers, or nothing in it."""
    if any(row.cells[width:]):
        raise RefusedRow(
            msg(
                "{got:count} cells where the header has {expected:count}: a number like 1,204 needs quotes.",
                got=len(row.cells),
                expected=width,
            )
        )
    cells = Cells()
    for column in columns:
        text = row.cells[column.index] if column.index < len(row.cells) else ""
        if FIELDS[column.meaning.code].kind == "text":
            _take_text(cells, column, text)
        elif FIELDS[column.meaning.code].kind != "none":
            _take_number(cells, column, text)
    if not cells.values and not cells.flags:
        raise RefusedRow(msg("no number stands in this row: remove it or fill it in."))
    return cells


def _take_text(cells: Cells, column: Column, text: str) -> None:
    if text:
        cells.texts[FIELDS[column.meaning.code].target] = text[:MAX_TEXT]


def _take_number(cells: Cells, column: Column, text: str) -> None:
    code = column.meaning.code
    counts = FIELDS[code].kind == "rate" or code in _REQUEST_COUNTS
    parsed = parse_cell(text, decimal_comma=column.decimal_comma, what=column.header, counts=counts)
    if isinstance(parsed, Number):
        _take_value(cells, column, parsed)
    elif parsed is Special.FAILED:
        cells.flags.add("failed_point")
    elif parsed is Special.RANGE:
        cells.notes.add("cell_is_a_range")
    elif parsed is Special.INFINITE and code == "request_rate":
        cells.infinite_rate = True


def _take_value(cells: Cells, column: Column, number: Number) -> None:
    code, statistic = column.meaning.code, column.meaning.statistic
    kind = FIELDS[code].kind
    if kind == "time" and number.value == 0:
        cells.flags.add("zero_may_be_missing")
        return
    factors = UNITS.get(kind, {})
    unit = number.unit if number.unit in factors else column.meaning.unit
    factor = factors.get(unit or "", 1.0)
    cells.values[code, statistic] = number.value * factor
    if number.spread is not None and statistic == "mean":
        cells.values[code, "std"] = number.spread * factor
