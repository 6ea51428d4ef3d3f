"""Stored logs and their profiles, read once; the desk; files the operator put at hand."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from calc.profile.profile import LogProfile
from data.logs.given import GivenLog
from data.logs.load import understand
from data.logs.profile import profile_log
from data.logs.understood import Understood
from data.logs.workload import LogWorkload, workload_of_log
from data.settings import read_settings
from data.store import Action
from data.store.logs import StoredLog, request_logs, undo_log
from ui import resources
from ui.typed.trace import MAX_SCREEN_ARRIVALS
from ui.workload.desk import LogDesk

KEPT = 16
"""Profiles kept in memory."""
MAX_FILES = 200
"""Files of the operator's folder listed."""
ENDINGS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".gz")


@st.cache_resource(show_spinner=False)
def desk() -> LogDesk:
    """The one place where logs are loaded."""
    return LogDesk(resources.store())


@st.cache_resource(show_spinner=False)
def logs() -> tuple[StoredLog, ...]:
    """Stored logs, newest first; read once, and again after each change."""
    return request_logs(resources.store().database)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def profile(log_id: str) -> LogProfile:
    """The profile of a stored log."""
    return profile_log(resources.store(), log_id)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def workload(log_id: str, arrivals: str, classes: str) -> LogWorkload:
    """A log as the load of a scenario."""
    return workload_of_log(
        resources.store(), log_id, profile(log_id), arrivals=arrivals, classes=classes, most_times=MAX_SCREEN_ARRIVALS
    )


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def understood(key: str, declared: tuple[tuple[str, str], ...], _given: GivenLog) -> Understood:  # noqa: ARG001 - key
    """What a file holds, by its first rows."""
    return understand(_given, resources.store().database.incoming, dict(declared))


def folder_files() -> tuple[Path, ...]:
    """Logs in the folder that the operator named; links that lead out of it are none."""
    folder = read_settings().logs_folder
    if folder is None or not folder.is_dir():
        return ()
    root = folder.resolve()
    found = (path for path in sorted(root.iterdir()) if path.suffix.lower() in ENDINGS and not path.is_symlink())
    return tuple(path for path in found if path.is_file())[:MAX_FILES]


def remove(log_id: str) -> Action:
    """Hide a log."""
    action = resources.store().delete("request_log", log_id)
    logs.clear()
    return action


def bring_back(action: Action) -> None:
    """Undo a removal."""
    undo_log(resources.store().database, action)
    logs.clear()
