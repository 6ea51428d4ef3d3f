"""A log into the store: whole or not at all, bad rows counted and named, progress told, cancelled at any moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from calc.errors import InputError, UnreadableFile
from calc.messages import msg
from data.logs.given import GivenLog
from data.logs.halves import cut_in_half
from data.logs.incoming import Cancelled, Incoming, brought_in
from data.logs.parquet import sample_of_parquet
from data.logs.problems import Problems, problems_of, reason_of
from data.logs.row import log_row
from data.logs.sample import sample_of
from data.logs.statements import Reading, earliest, has_chats, insertion, session_roots, took
from data.logs.understood import Understood, understood
from data.store.database import Database, insert, utc_now
from data.store.logs import AddedLog, restore_log
from data.store.trail import added

COPY_SHARE = 0.15
"""Part of the work that bringing the file in is; the rest is DuckDB's."""
LOOK_S = 0.2
"""Pause between two looks at how far DuckDB is."""
SMALL_BYTES = 64 << 20
"""Up to this size the earliest time is looked up first; in larger logs the first row's is tried."""
MAX_SPAN_S = 10 * 366 * 86_400
"""Longest log, in seconds: one wrong unit or one row of another century makes more of it."""
Tell = Callable[[int, int], None]
"""Told bytes done and bytes in all."""


def silent(done_bytes: int, total_bytes: int) -> None:
    """Told nothing."""


class _Careless(Exception):
    """The quick attempt took something that it should not have."""


def understand(given: GivenLog, folder: Path, declared: Mapping[str, str] | None = None) -> Understood:
    """What a log holds, by its first rows; ``declared`` names the meaning of columns (see :data:`meanings.CHOICES`)."""
    sample = sample_of(given)
    if sample.container == "parquet":
        with brought_in(given, folder, {}) as incoming:
            sample = sample_of_parquet(incoming.path, given.name)
    return understood(sample, given.name, given.size_bytes, dict(declared or {}))


def load_log(
    db: Database,
    given: GivenLog,
    *,
    declared: Mapping[str, str] | None = None,
    tell: Tell = silent,
    stop: threading.Event | None = None,
) -> AddedLog:
    """Store a log; the same content with the same meanings again adds nothing. ``stop`` cancels from another thread."""
    stop = stop or threading.Event()
    log = understand(given, db.incoming, declared)
    _refuse_missing(log)

    def copied(done_bytes: int) -> None:
        if stop.is_set():
            raise Cancelled
        tell(int(done_bytes * COPY_SHARE), given.size_bytes)

    with brought_in(given, db.incoming, log.declared, copied) as incoming:
        known = restore_log(db, incoming.log_id)
        added = known or _Load(db=db, log=log, incoming=incoming, tell=tell, stop=stop).run()
    tell(given.size_bytes, given.size_bytes)
    return added


def _refuse_missing(log: Understood) -> None:
    if log.missing:
        raise InputError(
            msg(
                "{file}: no column was found for {fields}; the file has {headers}: say which column it is.",
                file=log.name,
                fields=", ".join(log.missing),
                headers=", ".join(log.sample.headers[:20]),
            )
        )


def _refuse_ages(log: Understood, span_s: float) -> None:
    if span_s > MAX_SPAN_S:
        raise UnreadableFile(
            msg(
                "{file}: its times span {span:count} seconds, more than ten years: say which column holds them, and in "
                "which unit.",
                file=log.name,
                span=span_s,
            )
        )


@dataclass(frozen=True, kw_only=True)
class _Load:
    """One log on its way through the attempts: as if all were well, then with bad rows told apart."""

    db: Database
    log: Understood
    incoming: Incoming
    tell: Tell
    stop: threading.Event

    def run(self) -> AddedLog:
        """The quick attempt, and where it fails the careful one."""
        reading = Reading(log=self.log, incoming=self.incoming, careful=False)
        try:
            if not self._may_be_cut():
                return self._attempt(reading)
            with cut_in_half(self.incoming.path) as (path, lines):
                return self._attempt(reading, reading.second_half(path, lines))
        except (duckdb.Error, _Careless):  # a cell or a line is not what the columns say
            pass
        try:
            return self._attempt(replace(reading, careful=True))
        except duckdb.Error as error:
            raise UnreadableFile(
                msg("{file}: the log cannot be read ({reason}).", file=self.log.name, reason=reason_of(error))
            ) from error

    def _is_small(self) -> bool:
        return self.incoming.path.stat().st_size <= SMALL_BYTES

    def _may_be_cut(self) -> bool:
        """A large table in which every line is a row and no row asks for an earlier one."""
        lines = self.log.sample.container == "csv" and not self.incoming.quoted
        return lines and not self._is_small() and not has_chats(self.log)

    def _attempt(self, reading: Reading, rest: Reading | None = None) -> AddedLog:
        try:
            with self.db.loading() as cursor, self._watched(cursor):
                return self._filled(cursor, reading, rest)
        except duckdb.InterruptException as error:
            raise Cancelled from error

    def _filled(self, cursor: duckdb.DuckDBPyConnection, reading: Reading, rest: Reading | None) -> AddedLog:
        with self.db.reading() as in_order:  # what the loading cursor is not bound to
            start = earliest(in_order, reading, exact=reading.careful or (rest is None and self._is_small()))
            roots = session_roots(in_order, reading)
        problems = problems_of(cursor, reading) if reading.careful else Problems()
        cursor.execute(insertion(reading, start, rest), roots)
        taken = took(cursor, self.incoming.log_id)
        if not taken.requests:
            self._refuse_empty(problems)
        if not reading.careful and (taken.first_s != 0 or taken.out_of_range):
            raise _Careless
        _refuse_ages(self.log, taken.last_s - taken.first_s)
        row = log_row(self.log, self.incoming.log_id, taken, start, problems, stored_at=utc_now())
        insert(cursor, "request_logs", [row])
        added(self.db, cursor, "request_log", self.incoming.log_id)
        return AddedLog(
            log_id=self.incoming.log_id, requests=taken.requests, problem_rows=problems.rows, already_there=False
        )

    def _refuse_empty(self, problems: Problems) -> None:
        if problems.told:
            first = problems.told[0]
            raise UnreadableFile(
                msg(
                    "{file}: none of its {count:count} rows is a request; line {line}: {reason}",
                    file=self.log.name,
                    count=problems.rows,
                    line=first.line,
                    reason=first.reason,
                )
            )
        raise UnreadableFile(msg("{file}: there is no request in it.", file=self.log.name))

    @contextmanager
    def _watched(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Tells how far DuckDB is, and stops it when asked to."""
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(cursor, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
        if self.stop.is_set():
            raise Cancelled

    def _watch(self, cursor: duckdb.DuckDBPyConnection, done: threading.Event) -> None:
        most = 0.0
        while not done.wait(LOOK_S):
            if self.stop.is_set():
                cursor.interrupt()
            most = max(most, cursor.query_progress() / 100)
            self.tell(int(self.log.size_bytes * (COPY_SHARE + (1 - COPY_SHARE) * most)), self.log.size_bytes)
