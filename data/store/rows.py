"""Rows of the store's tables as the frozen records callers see, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from calc.evidence import Provenance
from data.formats.judge import warnings_by_run
from data.records import ReadResult
from data.store import codec as codec
from data.store.records import (
    OwnEntry,
    ScenarioVersion,
    StoredCalibration,
    StoredFile,
    StoredProbe,
    StoredReview,
    StoredRun,
    StoredSnapshot,
    StoredStartupLog,
)


def file_row(result: ReadResult, file_id: str, size_bytes: int, now: str) -> dict[str, Any]:
    """One row of ``files``."""
    return {
        "file_id": file_id,
        "name": result.file,
        "format": result.format,
        "size_bytes": size_bytes,
        "uploaded_at": now,
        "runs": len(result.runs),
        "problems": codec.problems_json(result.problems),
        "notes": codec.to_json(list(result.notes)),
    }


def run_rows(
    result: ReadResult, file_id: str, ids: Sequence[str], provenance: Provenance, now: str
) -> list[dict[str, Any]]:
    """Rows of ``runs``, one a load point."""
    warned = warnings_by_run(result.runs)
    return [
        {
            "run_id": run_id,
            "file_id": file_id,
            "run_index": index,
            "uploaded_at": now,
            "provenance": provenance.value,
            "warnings": codec.warnings_json(warned[index]),
            **codec.run_row(run),
        }
        for index, (run_id, run) in enumerate(zip(ids, result.runs, strict=True))
    ]


def snapshot_rows(result: ReadResult, file_id: str, ids: Sequence[str], now: str) -> list[dict[str, Any]]:
    """Rows of ``snapshots``."""
    return [
        {
            "snapshot_id": snapshot_id,
            "file_id": file_id,
            "uploaded_at": now,
            "snapshot": codec.snapshot_json(snapshot),
        }
        for snapshot_id, snapshot in zip(ids, result.snapshots, strict=True)
    ]


def stored_file(row: Mapping[str, Any]) -> StoredFile:
    """One row of ``files``."""
    decoded = {"problems": codec.problems_from_json(row["problems"]), "notes": tuple(json.loads(row["notes"]))}
    return StoredFile(**{**row, **decoded})


def stored_run(row: Mapping[str, Any]) -> StoredRun:
    """One row of ``runs``."""
    return StoredRun(
        run_id=row["run_id"],
        file_id=row["file_id"],
        run_index=row["run_index"],
        uploaded_at=row["uploaded_at"],
        provenance=row["provenance"],
        warnings=codec.warnings_from_json(row["warnings"]),
        run=codec.run_from_row(row),
    )


def stored_snapshot(row: Mapping[str, Any]) -> StoredSnapshot:
    """One row of ``snapshots``."""
    return StoredSnapshot(**{**row, "snapshot": codec.snapshot_from_json(row["snapshot"])})


def stored_probe(row: Mapping[str, Any]) -> StoredProbe:
    """One row of ``probes``."""
    return StoredProbe(**{**row, "probe": json.loads(row["probe"])})


def startup_log_row(read: Mapping[str, Any], measured: Mapping[str, Any], name: str, now: str) -> dict[str, Any]:
    """A row of ``startup_logs``."""
    return {
        "log_id": str(measured["log_id"]),
        "name": name,
        "stored_at": now,
        "engine": str(measured["engine"]),
        "engine_version": str(measured["engine_version"]),
        "model": str(measured["model"]),
        "read": codec.to_json(dict(read)),
        "measured": codec.to_json(dict(measured)),
    }


def stored_startup_log(row: Mapping[str, Any]) -> StoredStartupLog:
    """One row of ``startup_logs``."""
    return StoredStartupLog(**{**row, "read": json.loads(row["read"]), "measured": json.loads(row["measured"])})


def calibration_row(
    calibration: Mapping[str, Any], points: Sequence[Any], fit: Mapping[str, Any], model_version: str, now: str
) -> dict[str, Any]:
    """A row of ``calibrations`` without its id."""
    return {
        "source": str(calibration["source"]),
        "measured_on": str(calibration.get("date", "")),
        "stored_at": now,
        "model": str(calibration["valid_for"]["model"]),
        "gpu": str(calibration["valid_for"]["gpu"]),
        "model_version": model_version,
        "calibration": codec.to_json(dict(calibration)),
        "points": codec.to_json(list(points)),
        "fit": codec.to_json(dict(fit)),
    }


def stored_calibration(row: Mapping[str, Any]) -> StoredCalibration:
    """One row of ``calibrations``."""
    decoded = {name: json.loads(row[name]) for name in ("calibration", "fit")}
    return StoredCalibration(**{**row, **decoded, "points": tuple(json.loads(row["points"]))})


def scenario_version(row: Mapping[str, Any]) -> ScenarioVersion:
    """One row of ``scenarios``."""
    return ScenarioVersion(
        scenario_id=row["scenario_id"],
        version=row["version"],
        name=row["name"],
        case=json.loads(row["scenario"]),
        saved_at=row["saved_at"],
    )


def stored_review(row: Mapping[str, Any]) -> StoredReview:
    """One row of ``reviews``."""
    return StoredReview(**{**row, "snapshot": json.loads(row["snapshot"])})


def own_entry(row: Mapping[str, Any]) -> OwnEntry:
    """One row of ``own_models``, ``own_gpus`` or ``own_prices``."""
    return OwnEntry(**{**row, "entry": json.loads(row["entry"]), "checked_on": row["checked_on"] or ""})
