"""Tables that tools write as CSV: plain rows, bounded, and cells as numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.row_checks import MAX_NUMBER

MAX_CSV_ROWS = 500_000
"""Most rows read: a sample a second of eight GPUs for 17 hours."""
_PART = 1 << 20
"""Characters opened at a time."""
HEAD_CHARACTERS = 20_000
"""Characters among which the first line is looked for."""
_NO_VALUE = frozenset({"", "-", "n/a", "nan", "none", "null", "inf", "-inf"})


def csv_rows(text: str, name: str, separator: str = ",") -> list[list[str]]:
    """Every row with its cells stripped; an empty line is an empty row."""
    return list(each_row(text, name, separator))


def each_row(text: str, name: str, separator: str = ",", limit: int = MAX_CSV_ROWS) -> Iterator[list[str]]:
    """The same one after another, for tables that are not held."""
    try:
        for number, row in enumerate(csv.reader(lines_of(text), delimiter=separator)):
            if number >= limit:
                raise too_many_rows(name, limit)
            yield [cell.strip() for cell in row]
    except csv.Error as error:
        raise UnreadableFile(
            msg("{file}: a table was expected, but {reason}: check its quotes.", file=name, reason=str(error))
        ) from error


def lines_of(text: str) -> Iterator[str]:
    """Lines with their ends, a part at a time: a text opened as a file takes four bytes a character."""
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + _PART) + 1
        if end <= start:
            end = text.find("\n", start + _PART) + 1 or len(text)
        yield from io.StringIO(text[start:end], newline="")
        start = end


def too_many_rows(name: str, limit: int) -> UnreadableFile:
    """A table that would fill the memory."""
    return UnreadableFile(msg("{file}: at most {limit:count} rows are read: split the table.", file=name, limit=limit))


def first_cells(text: str) -> list[str]:
    """Cells of the first line that is not empty, for a signature."""
    head = text[:HEAD_CHARACTERS].lstrip("\r\n \t\ufeff").split("\n", 1)[0]
    try:
        return [cell.strip() for cell in next(csv.reader([head]), [])]
    except csv.Error:
        return []


def cell_number(cell: str) -> float | None:
    """The number in a cell, thousands separators left out; anything else is not known."""
    if cell.lower() in _NO_VALUE:
        return None
    try:
        value = float(cell.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) <= MAX_NUMBER else None


def named_rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[dict[str, str]]:
    """Rows as header → cell; of two columns with one name the first counts."""
    for row in rows:
        yield dict(reversed(list(zip(header, row, strict=False))))
