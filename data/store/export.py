"""Tables to take away: CSV that a spreadsheet opens without running anything in it, and typed Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from data.store.database import Database
from data.store.incoming import incoming_file
from data.store.kinds import EXPORTED, table_of
from data.store.own import HIDDEN

Form: TypeAlias = Literal["csv", "parquet"]
FORMS: tuple[Form, ...] = ("csv", "parquet")
_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A cell that begins so is a formula to a spreadsheet; a quote in front makes it text (OWASP, CSV injection)."""


def exported(db: Database, kind: str, form: Form) -> bytes:
    """Every visible row of a kind (of :data:`EXPORTED`) in order of its ids."""
    table, column = table_of(kind, EXPORTED)
    hides = "" if kind in ("deletion", "addition") else f" WHERE {column} NOT IN ({HIDDEN})"
    query = f"SELECT * FROM {table}{hides} ORDER BY {column}"
    return _parquet(db, query) if form == "parquet" else _csv(db, query)


def _csv(db: Database, query: str) -> bytes:
    with db.reading() as cursor:
        found = cursor.execute(query)
        columns = [column[0] for column in found.description]
        return to_csv(columns, iter(found.fetchone, None))


def _parquet(db: Database, query: str) -> bytes:
    """Text stays text in Parquet: nothing runs it, so nothing is changed."""
    with incoming_file(db.incoming) as path, db.reading() as cursor:
        cursor.execute(f"COPY ({query}) TO '{path.as_posix().replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
        return path.read_bytes()


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """UTF-8 with a byte order mark, so that Excel shows Chinese; empty cell = not known."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([_safe(column) for column in columns])
    writer.writerows([_safe(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8-sig")


def _safe(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_STARTS_FORMULA):
        return f"'{value}"
    return "" if value is None else value
