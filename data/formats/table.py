"""Text to a table: separator, header (also two rows, a title above, or metrics down the side), rows with lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.fields import FIELDS
from data.formats.headers import is_statistic, understand

SEPARATORS = (",", ";", "\t", "|")
MAX_ROWS = 100_000
"""Most rows read from a table; one row is a load point or a request."""
MAX_COLUMNS = 500
MAX_METRICS = 500
"""A table with more rows does not run sideways."""
HEADER_SEARCH_ROWS = 20
"""A title and notes may stand above the header, but not more than this."""
MIN_KNOWN = 2
"""Known words a header needs; one of them must be a latency or a rate."""
MIN_KNOWN_DOWN = 3
"""Known words the first column needs before the table is read sideways."""
_UNIT_HEADINGS = ("unit", "units", "单位", "einheit")
_MEASURED_KINDS = ("time", "rate")
_NUMBER = re.compile(r"\d+")
_RULE_ROW = re.compile(r"^[\s:|\-—]+$")


@dataclass(frozen=True, kw_only=True)
class Row:
    """Cells of one record and the 1-based line where it starts."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A header and the rows below it."""

    headers: tuple[str, ...]
    header_line: int
    rows: tuple[Row, ...]
    separator: str
    sideways: bool = False
    """True when metrics ran down the first column; rows then are the file's columns."""


def find_table(text: str, name: str) -> Table | None:
    """The table in a text; ``None`` when no line looks like the header of benchmark results."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = _first_lines(text)
    scores = {separator: _score(start, separator) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: scores[separator])
    if scores[best] == (0, 0):
        return None
    try:
        rows = _parse(text, best)
    except csv.Error as error:
        raise UnreadableFile(
            msg("{file}: a table was expected, but {reason}: check its quotes.", file=name, reason=str(error))
        ) from error
    _refuse_size(rows, name)
    _refuse_open_quote(text, rows, name)
    return _sideways(rows, best) or _upright(rows, best)


def begins_with_header(text: str) -> bool:
    """True when the very first line is a header of results."""
    first = text.lstrip("\ufeff\r\n ").split("\n", 1)[0]
    return any(
        _known([cell.strip() for cell in first.split(separator)][:MAX_COLUMNS]) >= MIN_KNOWN for separator in SEPARATORS
    )


def _first_lines(text: str) -> str:
    """The beginning of the text, enough to find separator and header."""
    lines = text.split("\n", 4 * HEADER_SEARCH_ROWS + 1)
    return "\n".join(lines[: 4 * HEADER_SEARCH_ROWS])


def _parse(text: str, separator: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[Row] = []
    line = 1
    for cells in reader:
        row = Row(line=line, cells=_trimmed(cells, separator))
        line = reader.line_num + 1
        if any(row.cells) and not row.cells[0].startswith("#"):
            rows.append(row)
        if len(rows) > MAX_ROWS:
            break  # the table is refused: what follows need not be read
    return rows


def _trimmed(cells: Sequence[str], separator: str) -> tuple[str, ...]:
    """Cells without outer blanks; of ``| a | b |`` also without the empty ends and the ruling below the header."""
    trimmed = tuple(cell.strip() for cell in cells)
    if separator != "|":
        return trimmed
    if all(_RULE_ROW.match(cell) or not cell for cell in trimmed):
        return ("",)
    return trimmed[bool(trimmed and not trimmed[0]) : len(trimmed) - bool(len(trimmed) > 1 and not trimmed[-1])]


def _score(text: str, separator: str) -> tuple[int, int]:
    """How much a text looks like results under one separator: known words in a row or down the side, columns."""
    try:
        rows = _parse(text, separator)
    except csv.Error:
        return (0, 0)
    head = rows[:HEADER_SEARCH_ROWS]
    across = max((_known(row.cells) for row in head), default=0)
    down = _known(_first_cells(rows))
    best = max(across if across >= MIN_KNOWN else 0, down if down >= MIN_KNOWN_DOWN else 0)
    return (best, max(len(row.cells) for row in head)) if best else (0, 0)


def _known(cells: Sequence[str]) -> int:
    """Known words among cells, as far as columns are read; 0 when none of them is a latency or a rate."""
    codes = [meaning.code for cell in cells[:MAX_COLUMNS] if cell and (meaning := understand(cell)) is not None]
    kinds = {FIELDS[code].kind for code in codes}
    return len(codes) if kinds.intersection(_MEASURED_KINDS) else 0


def _first_cells(rows: Sequence[Row]) -> list[str]:
    return [row.cells[0] for row in rows if len(row.cells) > 1]


def _refuse_open_quote(text: str, rows: Sequence[Row], name: str) -> None:
    """A quote that is never closed swallows every row below it."""
    last = rows[-1]
    if text.count('"') % 2 and any("\n" in cell for cell in last.cells):
        raise UnreadableFile(
            msg(
                "{file}: a quote opened at line {line:count} is never closed, so the rows below it are lost: close it.",
                file=name,
                line=last.line,
            )
        )


def _refuse_size(rows: Sequence[Row], name: str) -> None:
    if len(rows) > MAX_ROWS:
        raise UnreadableFile(
            msg(
                "{file}: at most {limit:count} rows are read: split the table, or give a log of requests on the "
                "Workload page under Logs.",
                file=name,
                limit=MAX_ROWS,
            )
        )
    if any(len(row.cells) > MAX_COLUMNS for row in rows):
        raise UnreadableFile(
            msg("{file}: at most {limit:count} columns are read: remove some.", file=name, limit=MAX_COLUMNS)
        )


def _upright(rows: list[Row], separator: str) -> Table | None:
    """One run a row; a header written again further down is no row."""
    head = rows[:HEADER_SEARCH_ROWS]
    index = next((i for i, row in enumerate(head) if _known(row.cells) >= MIN_KNOWN_DOWN), None)
    if index is None:
        index = next((i for i, row in enumerate(head) if _known(row.cells) >= MIN_KNOWN), None)
    if index is None:
        return None
    headers, below = rows[index].cells, index + 1
    if below < len(rows) and sum(is_statistic(cell) for cell in rows[below].cells) >= MIN_KNOWN:
        headers, below = _joined(headers, rows[below].cells), below + 1
    elif index > 0 and sum(is_statistic(cell) for cell in headers) >= MIN_KNOWN:
        headers = _joined(rows[index - 1].cells, headers)
    return Table(
        headers=_unique(headers),
        header_line=rows[index].line,
        rows=tuple(row for row in rows[below:] if row.cells != rows[index].cells),
        separator=separator,
    )


def _joined(upper: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    """Two header rows as one: a merged cell above goes on to the right as long as statistics stand below it."""
    joined: list[str] = []
    group = ""
    for index, below in enumerate(lower):
        above = upper[index] if index < len(upper) else ""
        group = above if above or not is_statistic(below) else group
        joined.append(f"{group} {below}".strip() if is_statistic(below) else below or above)
    return tuple(joined)


def _unique(headers: Sequence[str]) -> tuple[str, ...]:
    """A repeated header gets a number, so that each column has a name of its own."""
    seen: dict[str, int] = {}
    unique: list[str] = []
    for header in headers:
        seen[header] = seen.get(header, 0) + 1
        unique.append(header if seen[header] == 1 or not header else f"{header} ({seen[header]})")
    return tuple(unique)


def _sideways(rows: list[Row], separator: str) -> Table | None:
    """Metrics down the first column: one value column a run, with the concurrency in its heading when it has one."""
    if len(rows) > MAX_METRICS:
        return None
    across = max((_known(row.cells) for row in rows[:HEADER_SEARCH_ROWS]), default=0)
    body = [row for row in rows if len(row.cells) > 1 and understand(row.cells[0]) is not None]
    down = _known([row.cells[0] for row in body])
    if down < MIN_KNOWN_DOWN or down <= across:
        return None
    heading = rows[0] if rows[0] not in body else None
    heading, body = _with_units(heading, body)
    names = [row.cells[0] for row in body]
    width = max(len(row.cells) for row in body)
    columns = [[_cell(row, index) for row in body] for index in range(1, width)]
    levels = [] if heading is None or _has_concurrency(names) else [_level(_cell(heading, i)) for i in range(1, width)]
    if levels and all(levels):
        names = ["concurrency", *names]
        columns = [[level, *cells] for level, cells in zip(levels, columns, strict=True)]
    line = (heading or body[0]).line
    return Table(
        headers=_unique(names),
        header_line=line,
        rows=tuple(Row(line=line, cells=tuple(cells)) for cells in columns if any(cells)),
        separator=separator,
        sideways=True,
    )


def _with_units(heading: Row | None, body: list[Row]) -> tuple[Row | None, list[Row]]:
    """Rows of ``metric, unit, value`` as rows of ``metric (unit), value``."""
    words = [] if heading is None else [cell.lower() for cell in heading.cells]
    column = next((index for index, word in enumerate(words) if index and word in _UNIT_HEADINGS), None)
    if heading is None or column is None:
        return heading, body
    named = [_without(row, column, f"{row.cells[0]} ({_cell(row, column)})") for row in body]
    return _without(heading, column, heading.cells[0]), named


def _without(row: Row, column: int, first: str) -> Row:
    return replace(row, cells=(first, *row.cells[1:column], *row.cells[column + 1 :]))


def _has_concurrency(names: Sequence[str]) -> bool:
    return any((meaning := understand(name)) is not None and meaning.code == "max_concurrency" for name in names)


def _cell(row: Row, index: int) -> str:
    return row.cells[index] if index < len(row.cells) else ""


def _level(heading: str) -> str:
    """The number in ``并发 32``, ``c=32`` or ``32``; empty when there is none or more than one."""
    numbers = _NUMBER.findall(heading)
    return numbers[0] if len(numbers) == 1 else ""
