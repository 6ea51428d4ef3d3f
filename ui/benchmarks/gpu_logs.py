"""Logs of GPU readings: what one says, those that are stored, and the runs during which they were taken."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import streamlit as st

from data.own_text import one_line
from data.records import GpuLog
from data.store import StoredGpuLog, StoredRun
from ui import parts, resources, state
from ui.benchmarks import runs
from ui.benchmarks.facts import BY, MOST_CHARACTERS
from ui.story import about_gpu_logs
from ui.text import t

SAID_BY, REMOVED = "gpu_log_by", "_gpu_log_removed"
LONG, MANY_ROWS = 400, 9
"""Pixels of a table of more rows than that; the rest scrolls."""


def show(log: GpuLog) -> None:
    """Every figure of a log, and each GPU where there are several."""
    parts.prose(about_gpu_logs.figure_rows(log))
    if rows := about_gpu_logs.gpu_rows(log):
        parts.table(rows, key="gpu_log_gpus", height=LONG if len(rows) > MANY_ROWS else "content")
    st.caption(parts.escape(about_gpu_logs.duty_cycle()))


@st.cache_resource(max_entries=2, show_spinner=False)
def _kept(mark: str) -> tuple[StoredGpuLog, ...]:  # noqa: ARG001 - the key
    return resources.store().gpu_logs()


def kept() -> tuple[StoredGpuLog, ...]:
    """Stored logs, newest first."""
    return _kept(resources.store().mark())


def stored(load_points: Sequence[StoredRun]) -> None:
    """The table of stored logs; choosing their runs; removing one and its undo."""
    logs = kept()
    if logs:
        parts.section(t("GPU logs"), t("A log counts for the runs during which it was taken."))
        rows = about_gpu_logs.stored_rows(logs, load_points)
        parts.table(rows, key="stored_gpu_logs", height=LONG if len(rows) > MANY_ROWS else "content")
        chosen = ask(logs, load_points)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(t("Why (others see it)"), key="gpu_log_reason", max_chars=200)
            st.button(
                t("Remove this GPU log"), key="gpu_log_remove", icon=":material/delete:", on_click=_remove,
                args=(chosen.gpu_log_id,),
            )  # fmt: skip
    if state.get(REMOVED):
        st.button(t("Bring the removed GPU log back"), key="gpu_log_undo", icon=":material/undo:", on_click=_undo)


def ask(logs: Sequence[StoredGpuLog], load_points: Sequence[StoredRun]) -> StoredGpuLog:
    """Which run ran while a log was recorded; the log that is looked at."""
    by_id = {one.gpu_log_id: one for one in logs}
    names = {code: about_gpu_logs.name(one) for code, one in by_id.items()}
    code = parts.pick(t("GPU log"), names, f"gpu_log_{_token(names)}") if len(logs) > 1 else next(iter(names))
    chosen = by_id[code]
    likely = {run.run_id: run for run in about_gpu_logs.likely_first(chosen, load_points)}
    if not likely:
        st.caption(t("No run is stored yet: upload the result of the run during which this was recorded."))
        return chosen
    labels = {run_id: runs.label(run) for run_id, run in likely.items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run_id = parts.pick(t("Taken during this run"), labels, f"gpu_log_run_{_token([code, *sorted(labels)])}")
        if not state.get(SAID_BY):
            state.put(**{SAID_BY: state.get(BY) or ""})
        st.text_input(t("Your name"), key=SAID_BY, max_chars=MOST_CHARACTERS, persist_state="session")
        tied = about_gpu_logs.tied(chosen, likely[run_id])
        st.button(
            t("Not this run") if tied else t("Count it for this run"), key="gpu_log_tie", on_click=_say,
            icon=":material/link_off:" if tied else ":material/link:", args=(code, run_id, not tied),
        )  # fmt: skip
    parts.remarks(about_gpu_logs.says(chosen, likely[run_id], tied))
    return chosen


def _token(codes: Sequence[str] | dict[str, str]) -> str:
    """A box with other choices is another box."""
    return hashlib.sha256("".join(codes).encode()).hexdigest()[:8]


@state.callback
def _say(gpu_log_id: str, run_id: str, stands: bool) -> None:
    by = one_line(state.get(SAID_BY) or "", t("Your name"))
    readings = resources.store().readings
    (readings.tie if stands else readings.untie)(gpu_log_id, run_id, by=by)


@state.callback
def _remove(gpu_log_id: str) -> None:
    action = resources.store().delete("gpu_log", gpu_log_id, reason=state.get("gpu_log_reason") or "")
    state.put(**{REMOVED: action})


@state.callback
def _undo() -> None:
    resources.store().undo(state.get(REMOVED))
    state.put(**{REMOVED: None})
