"""One DuckDB file: opening it safely, a cursor per call, whole transactions, ids that sort by time."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from calc.errors import StoreError
from calc.messages import Message, msg
from data.store.incoming import incoming_folder, sweep
from data.store.schema import migrate

MEMORY_LIMIT = "1GB"
"""DuckDB's own limit; far above what these tables need, far below what would hurt the machine."""
THREADS = 2
IN_MEMORY = ":memory:"
NOT_SIGNED_IN = "not signed in"
"""Whoever acts where nobody can be told from another."""

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
    """The open file. Reads run side by side; writes take turns, each in one transaction, and so do loads."""

    def __init__(self, path: Path | str, who: Callable[[], str] = lambda: NOT_SIGNED_IN) -> None:
        self.path = path
        self._who, self._instead = who, threading.local()
        self._writing, self._bringing = threading.Lock(), threading.Lock()
        self._naming = threading.Lock()
        self._last_id = 0
        self.writes = 0
        """Transactions written since the file was opened."""
        self.incoming = incoming_folder(path)
        """The one folder whose files this database may read."""
        self._connection, self._loader = _open(path, self.incoming)

    def new_id(self) -> str:
        """A text id that no other writer makes and that sorts by the moment it was made."""
        with self._naming:
            self._last_id = max(self._last_id + 1, time.time_ns())
            return f"{self._last_id:020d}-{uuid.uuid4().hex[:12]}"

    def actor(self) -> str:
        """Who acts in this thread now."""
        return getattr(self._instead, "name", None) or self._who()

    @contextmanager
    def acting(self, name: str) -> Iterator[None]:
        """What this thread does in the block is done by ``name``, whoever is signed in."""
        self._instead.name = name
        try:
            yield
        finally:
            self._instead.name = None

    def select(self, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Rows of a query as dictionaries."""
        with self._cursor() as cursor:
            found = cursor.execute(query, list(parameters))
            columns = [column[0] for column in found.description]
            return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor for results too large for rows of Python."""
        with self._cursor() as cursor:
            yield cursor

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside one transaction: everything in the block is stored, or nothing."""
        with self._writing:
            with self._cursor() as cursor, _transaction(cursor):
                yield cursor
            self.writes += 1

    @contextmanager
    def loading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """As :meth:`writing`, on the one cursor that can be asked how far it is (``query_progress``)."""
        with self._bringing, _said(self.path), _transaction(self._loader):
            yield self._loader

    def close(self) -> None:
        """Write everything to the file and let another process have it."""
        self._loader.close()
        self._connection.close()
        sweep(self.incoming, everything=True)

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with _said(self.path), self._connection.cursor() as cursor:
            yield cursor


@contextmanager
def _said(path: Path | str) -> Iterator[None]:
    """What DuckDB says of its file, as a sentence for a user."""
    try:
        yield
    except _STORAGE_ERRORS as error:
        raise StoreError(_cannot_use(path, error)) from error


@contextmanager
def _transaction(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    cursor.execute("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")


def insert(cursor: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows (all with the same keys, the table's column names) in one statement, one list parameter a column."""
    if not rows:
        return
    types = {name: kind for name, kind, *_ in cursor.execute(f"DESCRIBE {table}").fetchall()}
    columns = list(rows[0])
    values = ", ".join(f"unnest(CAST(? AS {types[column]}[]))" for column in columns)
    lists = [[row[column] for row in rows] for column in columns]
    cursor.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values}", lists)


def _open(path: Path | str, incoming: Path) -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]:
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
    return connection, _prepare(connection, path, incoming)


def _prepare(connection: duckdb.DuckDBPyConnection, path: Path | str, incoming: Path) -> duckdb.DuckDBPyConnection:
    """Shut the door to all files but incoming ones, bring the tables up to date, and return the cursor for loading.

    A database that fails here is released again. Settings of a cursor must be made before they are locked.
    """
    try:
        connection.execute("SET allowed_directories = [?]", [f"{incoming}/"])
        connection.execute("SET enable_external_access = false")
        loader = connection.cursor()
        loader.execute("SET enable_progress_bar = true")
        loader.execute("SET enable_progress_bar_print = false")
        # Rows of a log carry their number: two halves of a file may come in side by side.
        loader.execute("SET SESSION preserve_insertion_order = false")
        connection.execute("SET lock_configuration = true")
        migrate(connection, utc_now())
        sweep(incoming)
    except duckdb.Error as error:
        connection.close()
        raise StoreError(_cannot_use(path, error)) from error
    except StoreError:
        connection.close()
        raise
    return loader


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
