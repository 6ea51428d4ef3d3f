"""The DuckDB store: one facade, one module per kind of row behind it."""

from __future__ import annotations

from data.store.database import NOT_SIGNED_IN
from data.store.kinds import EXPORTED, KINDS
from data.store.records import (
    Action,
    AddOutcome,
    Confirmation,
    GpuLogTie,
    OwnEntry,
    ScenarioVersion,
    StoredCalibration,
    StoredDeclaration,
    StoredFile,
    StoredGpuLog,
    StoredProbe,
    StoredReview,
    StoredRun,
    StoredSnapshot,
    StoredStartupLog,
    TiedLog,
)
from data.store.store import DEFAULT_PATH, Store, content_id, default_path
from data.store.trail import TrailEntry

__all__ = [
    "DEFAULT_PATH", "EXPORTED", "KINDS", "NOT_SIGNED_IN", "Action", "AddOutcome", "Confirmation", "GpuLogTie",
    "OwnEntry", "ScenarioVersion", "Store", "StoredCalibration", "StoredDeclaration", "StoredFile", "StoredGpuLog",
    "StoredProbe", "StoredReview", "StoredRun", "StoredSnapshot", "StoredStartupLog", "TiedLog", "TrailEntry",
    "content_id", "default_path",
]  # fmt: skip
