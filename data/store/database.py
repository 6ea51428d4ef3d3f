"""One DuckDB file: opening it safely, a cursor per call, whole transactions, ids that sort by time."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from calc.errors import StoreError
from calc.messages import Message, msg
from data.store.schema import migrate

MEMORY_LIMIT = "1GB"
"""DuckDB's own limit; far above what these tables need, far below what would hurt the machine."""
THREADS = 2
IN_MEMORY = ":memory:"

_STORAGE_ERRORS = (
    duckdb.IOException,
    duckdb.FatalException,
    duckdb.OutOfMemoryException,
    duckdb.ConnectionException,
    duckdb.SerializationException,
    duckdb.TransactionException,
)

_NO_ROOM = ("Could not write", "No space left", "File too large", "Failed to commit")
"""What DuckDB says when the disk is full or a quota is reached."""


def utc_now() -> str:
    """The moment as ISO text in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Database:
    """The open file. Reads run side by side; writes take turns, each in one transaction."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self._writing = threading.Lock()
        self._naming = threading.Lock()
        self._last_id = 0
        self._connection = _open(path)

    def new_id(self) -> str:
        """A text id that no other writer makes and that sorts by the moment it was made."""
        with self._naming:
            self._last_id = max(self._last_id + 1, time.time_ns())
            return f"{self._last_id:020d}-{uuid.uuid4().hex[:12]}"

    def select(self, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Rows of a query as dictionaries."""
        with self._cursor() as cursor:
            found = cursor.execute(query, list(parameters))
            columns = [column[0] for column in found.description]
            return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside one transaction: everything in the block is stored, or nothing."""
        with self._writing, self._cursor() as cursor:
            cursor.execute("BEGIN TRANSACTION")
            try:
                yield cursor
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")

    def close(self) -> None:
        """Write everything to the file and let another process have it."""
        self._connection.close()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            with self._connection.cursor() as cursor:
                yield cursor
        except _STORAGE_ERRORS as error:
            raise StoreError(_cannot_use(self.path, error)) from error


def insert(cursor: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows (all with the same keys, the table's column names) in one statement, one list parameter a column."""
    if not rows:
        return
    types = {name: kind for name, kind, *_ in cursor.execute(f"DESCRIBE {table}").fetchall()}
    columns = list(rows[0])
    values = ", ".join(f"unnest(CAST(? AS {types[column]}[]))" for column in columns)
    lists = [[row[column] for row in rows] for column in columns]
    cursor.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values}", lists)


def _open(path: Path | str) -> duckdb.DuckDBPyConnection:
    try:
        if str(path) != IN_MEMORY:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect(str(path), config={"memory_limit": MEMORY_LIMIT, "threads": THREADS})
    except OSError as error:
        raise StoreError(
            msg(
                "{path}: a folder to write to was expected ({reason}): choose another place.",
                path=str(path),
                reason=error.strerror,
            )
        ) from error
    except duckdb.Error as error:
        raise StoreError(_cannot_use(path, error)) from error
    _prepare(connection, path)
    return connection


def _prepare(connection: duckdb.DuckDBPyConnection, path: Path | str) -> None:
    """Shut the door to other files and bring the tables up to date; a database that fails here is released again."""
    try:
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        migrate(connection, utc_now())
    except duckdb.Error as error:
        connection.close()
        raise StoreError(_cannot_use(path, error)) from error
    except StoreError:
        connection.close()
        raise


def _cannot_use(path: Path | str, error: duckdb.Error) -> Message:
    text = str(error)
    if "set lock" in text:
        return msg(
            "{path}: another program has this database open: close it there, one program may use it at a time.",
            path=str(path),
        )
    if "Permission denied" in text or "Read-only" in text or "Cannot open file" in text:
        return msg("{path}: the file cannot be written: check its permissions or choose another place.", path=str(path))
    if any(words in text for words in _NO_ROOM):
        return msg("{path}: nothing more can be written there: free some disk space.", path=str(path))
    if "closed" in text.lower():
        return msg("{path}: the database was closed: open it again.", path=str(path))
    return msg(
        "{path}: a Plimsoll database was expected, but it cannot be read: restore a backup or move the file away.",
        path=str(path),
    )
