"""Stored load points as callers see them: declarations laid over them, and what these reveal among the warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calc.checks.run_facts import RunFacts
from calc.errors import PlimsollError
from calc.hardware import Gpu
from data import catalogue
from data.declared import apply
from data.formats.judge import facts_of, warnings_of, warnings_together
from data.records import BenchmarkRun, RunDeclaration, RunWarning
from data.store import own
from data.store.database import Database
from data.store.declarations import Declarations
from data.store.gpu_logs import GpuLogs
from data.store.own import HIDDEN
from data.store.records import StoredDeclaration, StoredRun
from data.store.rows import stored_run

ANSWERED = {"model_missing": "model"}
"""Code → the declared field that answers it."""
DAY_DIGITS = len("20261130")

MARKED = ("files", "runs", "snapshots", "deletions", "run_declarations", "run_confirmations", "own_gpus", "gpu_logs",
          "gpu_log_ties")  # fmt: skip
"""Tables on which what is read of runs depends. Rows are only added, so their numbers tell of every change."""


class Mark:
    """Another text after every change of stored runs or of what is said about them; asked for only after a write."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen: tuple[int, str] | None = None

    def now(self) -> str:
        """The text that stands for today's rows; two milliseconds after a write, else none."""
        writes, seen = self._db.writes, self._seen
        if seen is None or seen[0] != writes:
            counts = self._db.select(" UNION ALL ".join(f"SELECT count(*) AS rows FROM {table}" for table in MARKED))
            seen = self._seen = writes, " ".join(str(row["rows"]) for row in counts)
        return seen[1]


def stored_runs(
    db: Database, declarations: Declarations, *, file_id: str | None = None, model: str | None = None
) -> tuple[StoredRun, ...]:
    """Load points, newest file first, in file order; all of them, or of one file or one model."""
    rows = db.select(
        f"SELECT * FROM runs WHERE run_id NOT IN ({HIDDEN}) AND file_id NOT IN ({HIDDEN}) "
        "AND (CAST(? AS VARCHAR) IS NULL OR file_id = ?) ORDER BY uploaded_at DESC, file_id, run_index",
        [file_id, file_id],
    )
    runs = _watched(db, _together(tuple(_told(db, rows, declarations)))) if rows else ()
    return tuple(run for run in runs if model is None or run.run.model == model)


def _watched(db: Database, runs: Sequence[StoredRun]) -> tuple[StoredRun, ...]:
    """With the readings of GPUs that were taken during them."""
    readings = GpuLogs(db)
    if not (logs := readings.all()):
        return tuple(runs)
    from data.gpu_ties import tied_logs  # it speaks of this store's rows

    ties = readings.ties()
    return tuple(replace(run, gpu_logs=tied_logs(run.run_id, run.run, logs, ties)) for run in runs)


def _together(runs: Sequence[StoredRun]) -> tuple[StoredRun, ...]:
    """With the findings that runs of one day share, whichever files they came in."""
    in_time = sorted(range(len(runs)), key=lambda place: (runs[place].uploaded_at, runs[place].run_index))
    found = warnings_together([_facts(runs[place]) for place in in_time])
    shared = {in_time[place]: warnings for place, warnings in found.items()}
    return tuple(_adding(run, shared.get(place, ())) for place, run in enumerate(runs))


def _facts(stored: StoredRun) -> RunFacts:
    """Of a run; those of another day, or of another file that does not say its day, are no neighbours."""
    facts = facts_of(stored.run, stored.declaration.declaration if stored.declaration else None)
    day = "".join(filter(str.isdigit, stored.run.date or ""))[:DAY_DIGITS]
    return replace(facts, settings=(*facts.settings, ("day", day or stored.file_id)))


def _adding(stored: StoredRun, warnings: Sequence[RunWarning]) -> StoredRun:
    known = {warning.code for warning in stored.warnings}
    new = tuple(warning for warning in warnings if warning.code not in known)
    return replace(stored, warnings=(*stored.warnings, *new)) if new else stored


def _told(db: Database, rows: Sequence[Mapping[str, Any]], declarations: Declarations) -> Iterator[StoredRun]:
    declared, confirmed = declarations.newest(), declarations.confirmations()
    gpus = _own_gpus(db, declared)
    for row in rows:
        stored = replace(stored_run(row), confirmation=confirmed.get(row["run_id"]))
        told = declared.get(stored.run_id)
        yield stored if told is None else _laid_over(stored, told, gpus)


def _laid_over(stored: StoredRun, told: StoredDeclaration, gpus: Mapping[str, Gpu]) -> StoredRun:
    applied = apply(stored.run, told.declaration)
    return replace(
        stored,
        run=applied.run,
        declaration=told,
        declared=applied.declared,
        contradictions=applied.contradictions,
        warnings=_warnings(stored.warnings, applied.run, told.declaration, gpus),
    )


def _warnings(
    before: Sequence[RunWarning], run: BenchmarkRun, declaration: RunDeclaration, gpus: Mapping[str, Gpu]
) -> tuple[RunWarning, ...]:
    """Those of the upload that are still open, and those that only the declaration makes visible."""
    still = tuple(w for w in before if w.code not in ANSWERED or getattr(run, ANSWERED[w.code]) is None)
    known = {warning.code for warning in before}
    return (*still, *(w for w in warnings_of(run, declaration, gpus) if w.code not in known))


def _own_gpus(db: Database, declared: Mapping[str, StoredDeclaration]) -> dict[str, Gpu]:
    """The team's own GPUs, read only where a declaration names one."""
    named = {told.declaration.gpu for told in declared.values()} - {None}
    if not named - set(catalogue.gpus()):
        return {}
    from data.own_hardware import gpu_of  # it reads rows of this store

    found = {}
    for row in own.newest_of_each(own.own_versions(db, "own_gpu")):
        try:
            found[row.name] = gpu_of(row)
        except PlimsollError:  # a row of an older version says nothing here; the catalogue page tells
            continue
    return found
