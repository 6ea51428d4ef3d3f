"""Logs of GPU readings: what they said, summed up, and during which runs people say they were taken."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import duckdb

from calc.errors import InputError, StoreError
from calc.evidence import Provenance
from calc.messages import msg
from data.records import GpuLog, ReadResult
from data.store import codec
from data.store.database import Database, insert, utc_now
from data.store.own import HIDDEN
from data.store.records import GpuLogTie, StoredGpuLog

FIGURES = tuple(field.name for field in fields(GpuLog))
_LISTS = ("names", "busy_shares", "memory_used_peaks_bytes", "power_shares")


class GpuLogs:
    """Rows that are only added. Every method may be called from any thread."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def all(self) -> tuple[StoredGpuLog, ...]:
        """Logs, newest first."""
        rows = self._db.select(
            "SELECT g.*, f.name AS file FROM gpu_logs g JOIN files f ON g.file_id = f.file_id "
            f"WHERE g.gpu_log_id NOT IN ({HIDDEN}) AND g.file_id NOT IN ({HIDDEN}) "
            "ORDER BY g.uploaded_at DESC, g.gpu_log_id"
        )
        return tuple(_stored(row) for row in rows)

    def tie(self, gpu_log_id: str, run_id: str, *, by: str) -> GpuLogTie:
        """Say that a log was taken during a run."""
        return self._say(gpu_log_id, run_id, stands=True, by=by)

    def untie(self, gpu_log_id: str, run_id: str, *, by: str) -> GpuLogTie:
        """Say that it was not, whatever their times or anybody before said."""
        return self._say(gpu_log_id, run_id, stands=False, by=by)

    def ties(self) -> dict[tuple[str, str], GpuLogTie]:
        """What counts, by log and run; a tie that does not stand is there as well."""
        rows = self._db.select(
            "SELECT t.* FROM gpu_log_ties t JOIN (SELECT max(tie_id) AS tie_id FROM gpu_log_ties "
            "GROUP BY gpu_log_id, run_id) newest ON t.tie_id = newest.tie_id"
        )
        return {(row["gpu_log_id"], row["run_id"]): GpuLogTie(**row) for row in rows}

    def _say(self, gpu_log_id: str, run_id: str, *, stands: bool, by: str) -> GpuLogTie:
        if not by.strip():
            raise InputError(msg("a name was expected: others must see who said when the log was taken."))
        row: dict[str, Any] = {
            "tie_id": self._db.new_id(),
            "gpu_log_id": gpu_log_id,
            "run_id": run_id,
            "stands": stands,
            "said_by": by.strip(),
            "said_at": utc_now(),
        }
        with self._db.writing() as cursor:
            _known(cursor, gpu_log_id, run_id)
            insert(cursor, "gpu_log_ties", [row])
        return GpuLogTie(**row)


def gpu_log_rows(
    result: ReadResult, file_id: str, ids: Sequence[str], provenance: Provenance, now: str
) -> list[dict[str, Any]]:
    """Rows of ``gpu_logs``; what the checks say of the file goes with each."""
    return [
        {
            "gpu_log_id": gpu_log_id,
            "file_id": file_id,
            "uploaded_at": now,
            "provenance": provenance.value,
            "warnings": codec.warnings_json(result.warnings),
            **_figures(log),
        }
        for gpu_log_id, log in zip(ids, result.gpu_logs, strict=True)
    ]


def _figures(log: GpuLog) -> dict[str, Any]:
    found = {name: getattr(log, name) for name in FIGURES}
    return found | {name: codec.to_json(list(found[name])) for name in _LISTS}


def _known(cursor: duckdb.DuckDBPyConnection, gpu_log_id: str, run_id: str) -> None:
    """Refuse ids that were never stored."""
    if not cursor.execute("SELECT 1 FROM gpu_logs WHERE gpu_log_id = ?", [gpu_log_id]).fetchall():
        raise StoreError(msg("there is no log of GPU readings {id}: reload the page.", id=gpu_log_id))
    if not cursor.execute("SELECT 1 FROM runs WHERE run_id = ?", [run_id]).fetchall():
        raise StoreError(msg("there is no run {id}: reload the page.", id=run_id))


def _stored(row: Mapping[str, Any]) -> StoredGpuLog:
    figures = {name: row[name] for name in FIGURES}
    figures |= {name: tuple(json.loads(row[name])) for name in _LISTS}
    return StoredGpuLog(
        gpu_log_id=row["gpu_log_id"],
        file_id=row["file_id"],
        file=row["file"],
        uploaded_at=row["uploaded_at"],
        provenance=row["provenance"],
        warnings=codec.warnings_from_json(row["warnings"]),
        log=GpuLog(**figures),
    )
