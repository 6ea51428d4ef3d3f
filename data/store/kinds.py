"""Kinds of rows: their tables, the columns with their ids, and what people call them by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calc.errors import StoreError
from calc.messages import msg

OWN_TABLES: Mapping[str, str] = MappingProxyType(
    {"own_model": "own_models", "own_gpu": "own_gpus", "own_price": "own_prices"}
)
"""Kind of own row → its table."""

KINDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "file": ("files", "file_id"),
        "run": ("runs", "run_id"),
        "snapshot": ("snapshots", "snapshot_id"),
        "gpu_log": ("gpu_logs", "gpu_log_id"),
        "probe": ("probes", "probe_id"),
        "startup_log": ("startup_logs", "log_id"),
        "calibration": ("calibrations", "calibration_id"),
        "scenario": ("scenarios", "scenario_id"),
        "review": ("reviews", "review_id"),
        "request_log": ("request_logs", "log_id"),
        "recording": ("recordings", "recording_id"),
        "declaration": ("run_declarations", "declaration_id"),
        "confirmation": ("run_confirmations", "confirmation_id"),
        **{kind: (table, "entry_id") for kind, table in OWN_TABLES.items()},
    }
)
"""What can be deleted: table and id column. With :data:`EXPORTED` the only table names that ever reach a query."""

EXPORTED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **KINDS,
        "log_request": ("log_requests", "log_id"),
        "recorded_scrape": ("recorded_scrapes", "recording_id"),
        "gpu_log_tie": ("gpu_log_ties", "gpu_log_id"),
        "deletion": ("deletions", "target_id"),
        "addition": ("additions", "target_id"),
    }
)
"""What can be exported: the kinds, the lines that belong to one of them, and who did what."""

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "file": "name",
        "run": "model",
        "startup_log": "name",
        "gpu_log": "source",
        "calibration": "source",
        "scenario": "name",
        "review": "title",
        "request_log": "name",
        "recording": "engine",
        **dict.fromkeys(OWN_TABLES, "name"),
    }
)
"""Kind → the column that people know a row by."""


def table_of(kind: str, among: Mapping[str, tuple[str, str]] = KINDS) -> tuple[str, str]:
    """Table and id column of a kind."""
    if kind not in among:
        raise StoreError(msg("{kind} is no kind of row: use one of {kinds}.", kind=kind, kinds=", ".join(among)))
    return among[kind]
