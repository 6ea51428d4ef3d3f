"""``benchmark_data.db`` of ``evalscope perf``: an SQLite file with one row a request, times in seconds.

Somebody else's database is not trusted: it is opened from memory, nothing is written, only the table ``result`` is
read, only its numeric columns and a bounded number of rows, and a query that runs too long is stopped. The columns
``request`` and ``response_messages`` hold pickled prompts and answers; they are never selected, let alone loaded.
"""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing

import numpy as np

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.document import Document
from data.formats.request_figures import Column, RequestFigures, column, summed_up
from data.formats.result import finish
from data.formats.row_checks import RefusedRow, check_row
from data.records import BenchmarkRun, ReadResult, RowProblem

MAGIC = b"SQLite format 3\x00"
MAX_ROWS = 300_000
"""Most requests read from one file."""
STEPS_PER_CALL = 100_000
MAX_CALLS = 1_000
"""Calls of the progress handler before a query is stopped: 10**8 instructions, some seconds."""
MAX_VALUE_BYTES = 10**8
_JOURNAL = slice(18, 20)
"""Header bytes that say how the file is journalled; a copy in memory has no log beside it."""
_ROLLBACK = b"\x01\x01"
_COLUMNS = (
    "success",
    "start_time",
    "completed_time",
    "latency",
    "first_chunk_latency",
    "time_per_output_token",
    "prompt_tokens",
    "completion_tokens",
    "is_stream",
)
_NEEDED = frozenset({"success", "latency", "first_chunk_latency"})


def looks_like(document: Document) -> bool:
    """True for an SQLite file whose schema names the tool's columns."""
    content = document.content
    return content.startswith(MAGIC) and b"first_chunk_latency" in content and b"response_messages" in content


def read(document: Document) -> ReadResult:
    """The requests, summed up into their load point."""
    try:
        columns = _columns(document)
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, MemoryError) as error:
        raise UnreadableFile(
            msg("{file}: the requests of an evalscope database were expected, but it is damaged.", file=document.name)
        ) from error
    problems: list[RowProblem] = []
    runs: list[BenchmarkRun] = []
    try:
        run = _run(columns)
        check_row(run)
        runs += [run] if columns["success"].size else []
    except RefusedRow as refused:
        problems.append(RowProblem(line=1, reason=refused.reason))
    return finish(document, "evalscope_sqlite", runs, problems, ("per_request_file",))


def _columns(document: Document) -> dict[str, Column]:
    """The numeric columns by name; one that this version does not have is empty."""
    content = document.content
    if content[_JOURNAL] != _ROLLBACK:
        content = content[: _JOURNAL.start] + _ROLLBACK + content[_JOURNAL.stop :]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content)
        _guard(connection)
        names = _known_columns(connection, document.name)
        numbers = ", ".join(f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name} END" for name in names)
        rows = connection.execute(f"SELECT {numbers} FROM result LIMIT {MAX_ROWS + 1}").fetchall()
    if len(rows) > MAX_ROWS:
        raise UnreadableFile(
            msg("{file}: at most {limit:count} requests are read: split it.", file=document.name, limit=MAX_ROWS)
        )
    columns = dict(zip(names, map(column, zip(*rows, strict=True)), strict=False))
    return {name: columns.get(name, np.empty(0)) for name in _COLUMNS}


def _guard(connection: sqlite3.Connection) -> None:
    """No writing, no functions of the file's own schema, no huge values, no endless query."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    calls = itertools.count(1)
    connection.set_progress_handler(lambda: next(calls) > MAX_CALLS, STEPS_PER_CALL)


def _known_columns(connection: sqlite3.Connection, file: str) -> list[str]:
    """Stored columns of the stored table ``result``: no view or virtual table of that name, no generated column."""
    stored = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'result' AND type = 'table' AND rootpage > 0")
    present = {row[1] for row in connection.execute("PRAGMA table_info(result)")} if stored.fetchone() else set()
    if not _NEEDED.issubset(present):
        raise UnreadableFile(
            msg("{file}: the database has no table of evalscope's requests: give benchmark_summary.json.", file=file)
        )
    return [name for name in _COLUMNS if name in present]


def _run(columns: dict[str, Column]) -> BenchmarkRun:
    """Requests that succeeded; TTFT and TPOT of those that were streamed."""
    done = columns["success"] == 1
    kept = {name: values[done] if values.size else values for name, values in columns.items()}
    streamed = kept["is_stream"] != 0 if kept["is_stream"].size else np.ones(int(done.sum()), dtype=bool)
    tpot_s = kept["time_per_output_token"]
    figures = RequestFigures(
        ttft_s=np.where(streamed, kept["first_chunk_latency"], np.nan),
        e2e_s=kept["latency"],
        tpot_s=np.where(streamed & (tpot_s > 0), tpot_s, np.nan) if tpot_s.size else tpot_s,
        input_tokens=kept["prompt_tokens"],
        output_tokens=kept["completion_tokens"],
        started_s=kept["start_time"],
        ended_s=kept["completed_time"],
        failed=int((~done).sum()),
    )
    return summed_up(figures, BenchmarkRun(tool="evalscope perf"))
