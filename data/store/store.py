"""The team's memory: uploaded runs, metrics, probes, scenarios, reviews and own catalogue rows, in one DuckDB file.

Rows are only added. A change is a new version, a deletion a row that hides its target, so everything can be undone and
traced. One process owns the file; inside it any number of threads may read and write. The SQL keeps to the subset that
a DuckLake catalogue also runs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from calc.errors import StoreError
from calc.evidence import Provenance
from calc.messages import msg
from data.records import ReadResult
from data.store import codec, own
from data.store.database import NOT_SIGNED_IN, Database, insert, utc_now
from data.store.declarations import Declarations
from data.store.export import Form, exported
from data.store.gpu_logs import GpuLogs, gpu_log_rows
from data.store.kinds import table_of
from data.store.own import HIDDEN
from data.store.recordings import Recordings
from data.store.records import (
    Action,
    AddOutcome,
    OwnEntry,
    ScenarioVersion,
    StoredCalibration,
    StoredFile,
    StoredGpuLog,
    StoredProbe,
    StoredReview,
    StoredRun,
    StoredSnapshot,
    StoredStartupLog,
)
from data.store.rows import (
    calibration_row,
    file_row,
    run_rows,
    scenario_version,
    snapshot_rows,
    startup_log_row,
    stored_calibration,
    stored_file,
    stored_probe,
    stored_review,
    stored_snapshot,
    stored_startup_log,
)
from data.store.runs import Mark, stored_runs
from data.store.trail import TrailEntry, act, added, trail

DEFAULT_PATH = Path("var") / "plimsoll.duckdb"
PATH_VARIABLE = "PLIMSOLL_STORE"


def default_path() -> Path:
    """Where the store lives: ``PLIMSOLL_STORE``, else ``var/plimsoll.duckdb`` in the working folder."""
    return Path(os.environ.get(PATH_VARIABLE) or DEFAULT_PATH)


def content_id(content: bytes, columns: Mapping[str, str] | None = None) -> str:
    """SHA-256 of a file's content, and of the column meanings a user gave: another reading is another file."""
    digest = hashlib.sha256(content)
    if columns:
        digest.update(json.dumps(dict(columns), sort_keys=True, ensure_ascii=False).encode())
    return digest.hexdigest()


class Store:
    """One open database. Every method may be called from any thread."""

    def __init__(self, path: Path | str, who: Callable[[], str] = lambda: NOT_SIGNED_IN) -> None:
        self._db = self.database = Database(path, who)
        self._mark = Mark(self._db)
        self.recordings = Recordings(self._db)
        self.declarations = Declarations(self._db)
        self.readings = GpuLogs(self._db)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write everything to the file and release it."""
        self._db.close()

    # evidence

    def add_file(
        self,
        result: ReadResult,
        *,
        file_id: str,
        size_bytes: int,
        provenance: Provenance = Provenance.MEASURED,
        uploaded_at: str | None = None,
    ) -> AddOutcome:
        """Store what a reader understood of a file, whole or not at all; the same ``file_id`` again adds nothing."""
        now = uploaded_at or utc_now()
        run_ids = [f"{file_id}-{index}" for index in range(len(result.runs))]
        snapshot_ids = [f"{file_id}-{index}" for index in range(len(result.snapshots))]
        log_ids = [f"{file_id}-gpu{index}" for index in range(len(result.gpu_logs))]
        with self._db.writing() as cursor:
            known = cursor.execute("SELECT count(*) FROM files WHERE file_id = ?", [file_id]).fetchall()[0][0]
            if known:
                for kind, row_id in (("file", file_id), *(("gpu_log", log_id) for log_id in log_ids)):
                    self._restore(cursor, kind, row_id)
            else:
                insert(cursor, "files", [file_row(result, file_id, size_bytes, now)])
                added(self._db, cursor, "file", file_id)
                insert(cursor, "runs", run_rows(result, file_id, run_ids, provenance, now))
                insert(cursor, "snapshots", snapshot_rows(result, file_id, snapshot_ids, now))
                insert(cursor, "gpu_logs", gpu_log_rows(result, file_id, log_ids, provenance, now))
        return AddOutcome(file_id=file_id, stored_ids=(*run_ids, *snapshot_ids, *log_ids), already_there=bool(known))

    def files(self) -> tuple[StoredFile, ...]:
        """Uploaded files, newest first."""
        rows = self._db.select(
            f"SELECT * FROM files WHERE file_id NOT IN ({HIDDEN}) ORDER BY uploaded_at DESC, file_id"
        )
        return tuple(stored_file(row) for row in rows)

    def runs(self, *, file_id: str | None = None, model: str | None = None) -> tuple[StoredRun, ...]:
        """Load points, newest file first, in file order; all of them, or of one file or one model."""
        return stored_runs(self._db, self.declarations, file_id=file_id, model=model)

    def mark(self) -> str:
        """Another one after every change of the runs."""
        return self._mark.now()

    def snapshots(self) -> tuple[StoredSnapshot, ...]:
        """Metrics snapshots, newest first."""
        rows = self._db.select(
            f"SELECT * FROM snapshots WHERE snapshot_id NOT IN ({HIDDEN}) AND file_id NOT IN ({HIDDEN}) "
            "ORDER BY uploaded_at DESC, snapshot_id"
        )
        return tuple(stored_snapshot(row) for row in rows)

    def gpu_logs(self) -> tuple[StoredGpuLog, ...]:
        """Logs of GPU readings, newest first; ``readings`` says during which runs they were taken."""
        return self.readings.all()

    def add_probe(self, probe: Mapping[str, Any], *, measured_at: str) -> AddOutcome:
        """Store one measurement of this machine; the same measurement again adds nothing."""
        text = codec.to_json(dict(probe))
        probe_id = content_id(text.encode())
        row = {"probe_id": probe_id, "measured_at": measured_at, "stored_at": utc_now(), "probe": text}
        return self._add_once("probe", probe_id, row)

    def add_startup_log(self, read: Mapping[str, Any], measured: Mapping[str, Any], *, name: str) -> AddOutcome:
        """Store what a start-up log said and the start it measured; the same log again adds nothing."""
        row = startup_log_row(read, measured, name, utc_now())
        return self._add_once("startup_log", row["log_id"], row)

    def startup_logs(self) -> tuple[StoredStartupLog, ...]:
        """Start-up logs, newest first."""
        rows = self._db.select(
            f"SELECT * FROM startup_logs WHERE log_id NOT IN ({HIDDEN}) ORDER BY stored_at DESC, log_id"
        )
        return tuple(stored_startup_log(row) for row in rows)

    def probes(self) -> tuple[StoredProbe, ...]:
        """Measurements of this machine, newest first."""
        rows = self._db.select(
            f"SELECT * FROM probes WHERE probe_id NOT IN ({HIDDEN}) ORDER BY measured_at DESC, probe_id"
        )
        return tuple(stored_probe(row) for row in rows)

    def add_calibration(
        self, calibration: Mapping[str, Any], *, points: Sequence[Any], fit: Mapping[str, Any], model_version: str
    ) -> AddOutcome:
        """Store what was fitted to measured points, with the points; the same again adds nothing."""
        row = calibration_row(calibration, points, fit, model_version, utc_now())
        row["calibration_id"] = content_id((row["calibration"] + row["points"]).encode())
        return self._add_once("calibration", row["calibration_id"], row)

    def calibrations(self) -> tuple[StoredCalibration, ...]:
        """Calibrations, newest first."""
        rows = self._db.select(
            f"SELECT * FROM calibrations WHERE calibration_id NOT IN ({HIDDEN}) ORDER BY stored_at DESC, calibration_id"
        )
        return tuple(stored_calibration(row) for row in rows)

    # work

    def save_scenario(self, name: str, case: Mapping[str, Any]) -> ScenarioVersion:
        """Save a scenario under its name as the next version."""
        with self._db.writing() as cursor:
            query = "SELECT coalesce(max(version), 0) FROM scenarios WHERE name = ?"
            version = cursor.execute(query, [name]).fetchall()[0][0] + 1
            row = {
                "scenario_id": self._db.new_id(),
                "version": version,
                "name": name,
                "scenario": codec.to_json(dict(case)),
                "saved_at": utc_now(),
            }
            insert(cursor, "scenarios", [row])
            added(self._db, cursor, "scenario", row["scenario_id"])
        return scenario_version(row)

    def scenarios(self) -> tuple[ScenarioVersion, ...]:
        """The latest version of every scenario, by name."""
        rows = self._db.select(
            "SELECT s.* FROM scenarios s JOIN (SELECT name, max(version) AS version FROM scenarios "
            f"WHERE scenario_id NOT IN ({HIDDEN}) GROUP BY name) latest "
            "ON s.name = latest.name AND s.version = latest.version ORDER BY s.name"
        )
        return tuple(scenario_version(row) for row in rows)

    def scenario_versions(self, name: str) -> tuple[ScenarioVersion, ...]:
        """Every version of one scenario, newest first."""
        rows = self._db.select(
            f"SELECT * FROM scenarios WHERE name = ? AND scenario_id NOT IN ({HIDDEN}) ORDER BY version DESC", [name]
        )
        return tuple(scenario_version(row) for row in rows)

    def save_review(self, title: str, snapshot: Mapping[str, Any], *, model_version: str) -> StoredReview:
        """Freeze a review with everything it was made of; its hash names the content."""
        text = codec.to_json(dict(snapshot))
        row = {
            "review_id": self._db.new_id(),
            "title": title,
            "saved_at": utc_now(),
            "snapshot": text,
            "snapshot_hash": content_id(text.encode()),
            "model_version": model_version,
        }
        with self._db.writing() as cursor:
            insert(cursor, "reviews", [row])
            added(self._db, cursor, "review", row["review_id"])
        return stored_review(row)

    def review(self, review_id: str) -> StoredReview:
        """One review as it was saved."""
        rows = self._db.select(
            f"SELECT * FROM reviews WHERE review_id = ? AND review_id NOT IN ({HIDDEN})", [review_id]
        )
        if not rows:
            raise StoreError(msg("there is no review {id}: choose one from the list.", id=review_id))
        return stored_review(rows[0])

    def reviews(self) -> tuple[StoredReview, ...]:
        """Saved reviews, newest first."""
        rows = self._db.select(f"SELECT * FROM reviews WHERE review_id NOT IN ({HIDDEN}) ORDER BY review_id DESC")
        return tuple(stored_review(row) for row in rows)

    # the team's own catalogue

    def add_model(self, name: str, entry: Mapping[str, Any], *, source: str, checked_on: str = "") -> OwnEntry:
        """Add a model of the team's own; the newest entry of a name counts."""
        return own.add_own(self._db, "own_model", name, entry, source=source, checked_on=checked_on)

    def own_models(self) -> tuple[OwnEntry, ...]:
        """The team's own models, newest entry of each name."""
        return own.newest_of_each(self.own_versions("own_model"))

    def add_gpu(self, name: str, entry: Mapping[str, Any], *, source: str, checked_on: str = "") -> OwnEntry:
        """Add a GPU of the team's own; the newest entry of a name counts."""
        return own.add_own(self._db, "own_gpu", name, entry, source=source, checked_on=checked_on)

    def own_gpus(self) -> tuple[OwnEntry, ...]:
        """The team's own GPUs, newest entry of each name."""
        return own.newest_of_each(self.own_versions("own_gpu"))

    def add_price(self, gpu: str, entry: Mapping[str, Any], *, source: str, checked_on: str) -> OwnEntry:
        """Add what an hour of a GPU costs; older prices stay as its history."""
        return own.add_own(self._db, "own_price", gpu, entry, source=source, checked_on=checked_on)

    def own_prices(self) -> tuple[OwnEntry, ...]:
        """Every price, by GPU, newest first."""
        return self.own_versions("own_price")

    def own_versions(self, kind: str) -> tuple[OwnEntry, ...]:
        """Every version of the own rows of a kind (``own_model``, ``own_gpu``, ``own_price``), newest first."""
        return own.own_versions(self._db, kind)

    def remove_own(self, kind: str, name: str) -> tuple[Action, ...]:
        """Hide every version of an own row; they stay in the file and can be brought back."""
        return own.remove_own(self._db, kind, name)

    def undo_all(self, deleted: Sequence[Action]) -> tuple[Action, ...]:
        """Bring back what was hidden together."""
        return own.undo_all(self._db, deleted)

    # deletion and export

    def delete(self, kind: str, target_id: str, *, reason: str = "") -> Action:
        """Hide one row (of a kind in ``KINDS``); it stays in the file and can be brought back."""
        table, column = table_of(kind)
        with self._db.writing() as cursor:
            query = f"SELECT count(*) FROM {table} WHERE {column} = ?"
            if not cursor.execute(query, [target_id]).fetchall()[0][0]:
                raise StoreError(msg("there is no {kind} {id} to delete: reload the page.", kind=kind, id=target_id))
            return act(self._db, cursor, kind, target_id, "delete", reason)

    def delete_run(self, run_id: str) -> Action:
        """Hide one load point."""
        return self.delete("run", run_id)

    def undo(self, deleted: Action | TrailEntry, *, reason: str = "") -> Action:
        """Bring a deleted row back."""
        with self._db.writing() as cursor:
            return act(self._db, cursor, deleted.kind, deleted.target_id, "undo", reason)

    def actions(self) -> tuple[Action, ...]:
        """Deletions and undoings, newest first."""
        return tuple(Action(**row) for row in self._db.select("SELECT * FROM deletions ORDER BY action_id DESC"))

    def trail(self) -> tuple[TrailEntry, ...]:
        """Who added, removed and brought back what, newest first."""
        return trail(self._db)

    def exports(self, kind: str, form: Form) -> bytes:
        """Every visible row of a kind (of ``EXPORTED``), as CSV for a spreadsheet or as typed Parquet."""
        return exported(self._db, kind, form)

    def export_csv(self, kind: str) -> bytes:
        """Every visible row of a kind as CSV; cells that a spreadsheet would run are made text."""
        return self.exports(kind, "csv")

    def _add_once(self, kind: str, row_id: str, row: Mapping[str, Any]) -> AddOutcome:
        """Add a row named by its content; there already, it only becomes visible again."""
        table, column = table_of(kind)
        with self._db.writing() as cursor:
            query = f"SELECT count(*) FROM {table} WHERE {column} = ?"
            known = cursor.execute(query, [row_id]).fetchall()[0][0]
            if known:
                self._restore(cursor, kind, row_id)
            else:
                insert(cursor, table, [row])
                added(self._db, cursor, kind, row_id)
        return AddOutcome(file_id=row_id, stored_ids=(row_id,), already_there=bool(known))

    def _restore(self, cursor: duckdb.DuckDBPyConnection, kind: str, target_id: str) -> None:
        """Content given again after its deletion is wanted again."""
        if cursor.execute(f"SELECT 1 WHERE ? IN ({HIDDEN})", [target_id]).fetchall():
            act(self._db, cursor, kind, target_id, "undo")
