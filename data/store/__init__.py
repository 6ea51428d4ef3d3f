"""The DuckDB store: one facade, one module per kind of row behind it."""

from __future__ import annotations

from data.store.records import (
    Action,
    AddOutcome,
    Confirmation,
    OwnEntry,
    ScenarioVersion,
    StoredCalibration,
    StoredDeclaration,
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
    "KINDS", "Action", "AddOutcome", "Confirmation", "OwnEntry", "ScenarioVersion", "Store", "StoredCalibration",
    "StoredDeclaration", "StoredFile", "StoredProbe", "StoredReview", "StoredRun", "StoredSnapshot",
    "StoredStartupLog", "content_id", "default_path",
]  # fmt: skip
