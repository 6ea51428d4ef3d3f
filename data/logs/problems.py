"""Rows of a log that are no requests: how many, on which lines, and why. What stands in them is never repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from calc.messages import Message, msg
from data.logs.relation import in_range
from data.logs.statements import Reading
from data.records import RowProblem

MAX_TOLD = 50
"""Rows named one by one; the others are counted."""
_REASONS = {
    "MISSING COLUMNS": msg("it has fewer cells than the line of headers."),
    "TOO MANY COLUMNS": msg("it has more cells than the line of headers."),
    "UNQUOTED VALUE": msg("a quoted cell is not closed."),
    "LINE SIZE OVER MAXIMUM": msg("it is longer than any line read."),
    "INVALID ENCODING": msg("it is no UTF-8 text."),
}
_OTHER = msg("it cannot be split into cells.")
MAX_REASON = 160


@dataclass(frozen=True, kw_only=True)
class Problems:
    """Rows not taken."""

    rows: int = 0
    told: tuple[RowProblem, ...] = ()


def problems_of(cursor: duckdb.DuckDBPyConnection, reading: Reading) -> Problems:
    """Rows without a time or with lengths that no request has, and lines that are no rows at all."""
    timed = f"coalesce(isfinite(CAST({reading.time} AS DOUBLE)), FALSE) AS timed"
    asked = f"coalesce({in_range(reading.field('prompt_tokens'), '0')}, FALSE) AS asked"
    query = f"SELECT row_number() OVER () AS row, {reading.is_request} AS good, {timed}, {asked} FROM {reading.source}"
    cursor.execute("DROP TABLE IF EXISTS bad_rows")
    cursor.execute(f"CREATE TEMP TABLE bad_rows AS SELECT * FROM ({query}) WHERE NOT good")
    bad = cursor.execute(f"SELECT row, timed, asked FROM bad_rows ORDER BY row LIMIT {MAX_TOLD}").fetchall()
    count = cursor.execute("SELECT count(*) FROM bad_rows").fetchall()[0][0]
    cursor.execute("DROP TABLE bad_rows")
    rejected, rejected_count = _rejected(cursor, reading)
    skip = reading.log.sample.skip_lines
    lines = [line for line, _ in rejected]
    told = rejected + [(_line(row + skip, lines), _reason(reading, *has)) for row, *has in bad]
    return Problems(
        rows=count + rejected_count,
        told=tuple(RowProblem(line=line, reason=reason) for line, reason in sorted(told, key=lambda one: one[0]))[
            :MAX_TOLD
        ],
    )


def _rejected(cursor: duckdb.DuckDBPyConnection, reading: Reading) -> tuple[list[tuple[int, Message]], int]:
    """Lines that DuckDB set aside, and how many they are."""
    if reading.log.sample.container != "csv":
        return [], 0
    query = "SELECT line, min(error_type::VARCHAR), min(column_name) FROM reject_errors GROUP BY line ORDER BY line"
    rows = cursor.execute(query).fetchall()
    cursor.execute("DROP TABLE reject_errors")
    cursor.execute("DROP TABLE reject_scans")
    return [(line, _why(reading, kind, column)) for line, kind, column in rows], len(rows)


def _why(reading: Reading, kind: str, column: str | None) -> Message:
    if kind != "CAST":
        return _REASONS.get(kind, _OTHER)
    headers = {f"c{i}": one.header for i, one in enumerate(reading.log.columns)}
    return msg("what stands in {header} is not what the column says.", header=headers.get(column or "", column))


def _line(line: int, rejected: Sequence[int]) -> int:
    """Rows were numbered without the rejected lines."""
    for other in rejected:
        line += other <= line
    return line


def _reason(reading: Reading, timed: bool, asked: bool) -> Message:
    field = "time" if not timed else "prompt_tokens" if not asked else "output_tokens"
    header = next((column.header for column in reading.log.columns if column.field == field), field)
    return msg("{header} is empty, or no value that a request can have.", header=header)


def reason_of(error: Exception) -> str:
    """The first line of what DuckDB says."""
    return str(error).strip().splitlines()[0][:MAX_REASON]
