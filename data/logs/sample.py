"""The first rows of a log: which kind of table it is, what stands above its columns, and some of its cells."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from data.logs.given import HEAD_BYTES, PARQUET, GivenLog
from data.logs.incoming import decoded_head
from data.logs.meanings import understand

SAMPLE_ROWS = 400
HEAD_LINES = 20
"""Lines among which the line of headers is looked for."""
MAX_COLUMNS, MAX_DEPTH = 500, 4
HEADERS_ENOUGH = 2
"""A line with so many known words is the line of headers."""
DELIMITERS = (",", "\t", ";", "|")
VALUE = re.compile(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?|\d{4}[-/]\d\d?[-/]\d\d?[ T].*")
"""A number or a date."""
_DISTRIBUTIONS = {"gamma", "weibull", "exponential"}

Cell = str | list[Any] | None
Row = Mapping[str, Cell]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Some rows of a log. Headers of nested JSON are its keys joined by dots."""

    container: str
    """``csv``, ``jsonl``, ``json`` (one list) or ``parquet``."""
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    delimiter: str = ","
    skip_lines: int = 0
    """Lines above the first row, that of the headers among them."""
    keys: Mapping[str, tuple[str, ...]]
    """Header → the keys that lead to it."""
    types: Mapping[str, str]
    """Header → DuckDB's type, where the file says it."""

    def cells(self, header: str) -> list[str]:
        """What stands in a column, empty cells left out."""
        return [cell for row in self.rows if isinstance(cell := row.get(header), str) and cell.strip()]


def sample_of(given: GivenLog) -> Sample:
    """The first rows; refused in words when the file is no table at all."""
    head = given.head()
    if head.startswith(PARQUET):
        return Sample(container="parquet", headers=(), rows=(), keys={}, types={})
    text = decoded_head(head, given.name)
    whole = len(head) < HEAD_BYTES
    start = text.lstrip()[:1]
    if start == "{":
        return _lines(text, given.name)
    if start == "[":
        return _nested("json", list(_list_items(text)), given.name)
    return _table(text if whole else text[: text.rfind("\n") + 1], given.name)


def _lines(text: str, name: str) -> Sample:
    records, broken = [], 0
    for line in text.split("\n")[:SAMPLE_ROWS]:
        try:
            records.append(json.loads(line))
        except ValueError:
            broken += bool(line.strip())
    if not any(isinstance(record, dict) for record in records):
        raise UnreadableFile(
            msg(
                "{file}: a request log was expected, this is one JSON object over several lines: a log has one request "
                "a line. A benchmark result goes to the Benchmarks page.",
                file=name,
            )
        )
    return _nested("jsonl", [record for record in records if isinstance(record, dict)], name)


def _list_items(text: str) -> Iterator[Any]:
    """Items of a JSON list that may be cut at its end."""
    decoder, place = json.JSONDecoder(), text.index("[") + 1
    for _ in range(SAMPLE_ROWS):
        place += len(text[place:]) - len(text[place:].lstrip(" \t\r\n,"))
        try:
            item, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield item


def _nested(container: str, records: Sequence[Any], name: str) -> Sample:
    found = [dict(_leaves(record, ())) for record in records if isinstance(record, dict)]
    if not found:
        raise UnreadableFile(
            msg("{file}: a list of requests was expected, each an object with a time and two lengths.", file=name)
        )
    keys = list(dict.fromkeys(path for record in found for path in record))[:MAX_COLUMNS]
    rows = [{".".join(path): record[path] for path in keys if path in record} for record in found]
    return Sample(
        container=container,
        headers=tuple(".".join(path) for path in keys),
        rows=tuple(rows),
        keys={".".join(path): path for path in keys},
        types={},
    )


def _leaves(value: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Cell]]:
    for key, inner in value.items():
        path = (*above, key)
        if isinstance(inner, dict) and len(path) < MAX_DEPTH:
            yield from _leaves(inner, path)
        elif isinstance(inner, list):
            yield path, inner
        else:
            yield path, None if inner is None or isinstance(inner, dict) else _text(inner)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _table(text: str, name: str) -> Sample:
    lines = text.split("\n")
    delimiter = _delimiter(lines)
    rows = _cells(lines, delimiter)
    _refuse_windows(rows, name)
    at = next((at for at, (_, row) in enumerate(rows[:HEAD_LINES]) if _known(row) >= HEADERS_ENOUGH), None)
    if at is None:
        headers, skip = _unnamed(rows, name), 0
    else:
        headers, skip = _distinct(rows[at][1]), rows[at][0]
    body = [row for _, row in rows[0 if at is None else at + 1 :] if any(cell.strip() for cell in row)]
    return Sample(
        container="csv",
        headers=headers,
        rows=tuple(dict(zip(headers, row, strict=False)) for row in body[:SAMPLE_ROWS]),
        delimiter=delimiter,
        skip_lines=skip,
        keys={},
        types={},
    )


def _delimiter(lines: Sequence[str]) -> str:
    """The one that splits most of the first lines into equally many cells, of those the one that makes most."""
    first = [line for line in lines[:HEAD_LINES] if line.strip() and not line.startswith("#")]

    def agreement(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line in first]
        usual = max(set(counts), key=counts.count, default=0)
        return (counts.count(usual), usual) if usual else (0, 0)

    return max(DELIMITERS, key=agreement)


def _cells(lines: Sequence[str], delimiter: str) -> list[tuple[int, list[str]]]:
    """Rows, each with the number of lines up to its end."""
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    rows: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            if row and not row[0].startswith("#"):
                rows.append((reader.line_num, [cell.strip() for cell in row[:MAX_COLUMNS]]))
            if len(rows) > SAMPLE_ROWS + HEAD_LINES:
                break
    except csv.Error:  # a cell longer than any header or number: what was seen so far has to do
        pass
    return rows


def _known(row: Sequence[str]) -> int:
    return sum(understand(cell) is not None for cell in row)


def _distinct(headers: Sequence[str]) -> tuple[str, ...]:
    """Headers, a repeated or empty one told apart by its place."""
    return tuple(
        header if header and header not in headers[:place] else f"{header or 'column'} {place + 1}"
        for place, header in enumerate(headers)
    )


def _unnamed(rows: Sequence[tuple[int, Sequence[str]]], name: str) -> tuple[str, ...]:
    """Names for the columns of a table without headers: three columns of numbers at least."""
    first = rows[0][1] if rows else []
    if len(first) <= HEADERS_ENOUGH or not all(VALUE.fullmatch(cell) for cell in first[: HEADERS_ENOUGH + 1]):
        raise UnreadableFile(
            msg(
                "{file}: no line of headers names a time, prompt tokens and output tokens: write one above the "
                "columns, such as timestamp,prompt_tokens,output_tokens. A benchmark result goes to the Benchmarks "
                "page.",
                file=name,
            )
        )
    return tuple(f"column {place + 1}" for place in range(len(first)))


def _refuse_windows(rows: Sequence[tuple[int, Sequence[str]]], name: str) -> None:
    heads = {cell.lower() for cell in rows[0][1]} if rows else set()
    fitted = any(cell.lower() in _DISTRIBUTIONS for _, row in rows[:HEAD_LINES] for cell in row)
    if {"rate", "cv"} <= heads or {"rate_rps", "cv"} <= heads or fitted:
        raise UnreadableFile(
            msg(
                "{file}: this table holds rates fitted to the windows of clients, not requests: draw requests from it "
                "with its own tool and give those.",
                file=name,
            )
        )
