"""The DuckDB store: one facade, one module per kind of row behind it."""

from __future__ import annotations

from data.store.records import (
    Action,
    AddOutcome,
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
from data.store.store import DEFAULT_PATH, KINDS, Store, content_id, default_path

__all__ = [
    "DEFAULT_PATH",
    "KINDS", "Action", "AddOutcome", "OwnEntry", "ScenarioVersion", "Store", "StoredCalibration", "StoredFile",
    "StoredProbe", "StoredReview", "StoredRun", "StoredSnapshot", "StoredStartupLog", "content_id", "default_path",
]  # fmt: skip
