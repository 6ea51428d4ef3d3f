"""Recorded: three layers over one time axis, what happened when, what drifts, and the recording as a file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import streamlit as st

from calc.trend import Trend, trend
from data.live.entry import Kind, Problem, Trouble
from data.live.recording_file import SUFFIX, write_recording
from data.live.timeline import Event, Timeline, cut
from data.store import Action
from data.store.recordings import MAX_EXPORTED, StoredRecording
from ui import parts, resources, state
from ui.live import desk, shown
from ui.live.desk import Opened
from ui.resources import Asked
from ui.story import about_live
from ui.text import t

SAMPLE = "_sample"
SHORT = timedelta(hours=1)
"""Recordings shorter than this are cut to the second."""
FEWEST_S = 600.0
"""A drift is not told of less than ten minutes."""
DELETED = "_recording_deleted"


def show(asked: Asked) -> None:
    """A choice of recordings, then the chosen one."""
    stored = {row.recording.recording_id: row for row in resources.store().recordings.all() if row.scrapes}
    names = {**{key: about_live.recording_name(row) for key, row in stored.items()}, SAMPLE: t("Made-up sample")}
    chosen = parts.pick(t("Recording"), names, "live_recording")
    row = stored.get(chosen)
    opened = desk.sample() if row is None else desk.opened(row)
    kind = about_live.kind_of(opened.recording)
    if opened.recording.made_up:
        st.caption(":material/science: " + t("Played by the simulator for demonstration; no engine was measured."))
    if opened.line.step > 1:
        st.caption(t("Every {step}th scrape is drawn; rates and percentiles span the others.", step=opened.line.step))
    if row is not None:
        _state(row, opened)
    _span(opened, asked, kind)
    _keep(row, opened)


def _state(row: StoredRecording, opened: Opened) -> None:
    """Whether it still grows, or ended without anybody having stopped it."""
    running = {look.recording.recording_id for look in desk.desk().recording() if look.recording is not None}
    if row.recording.recording_id in running:
        st.button(t("Still being recorded: show the newest"), key="recorded_refresh", icon=":material/refresh:")
    elif opened.entries[-1].kind is not Kind.STOPPED:
        parts.notes([Problem(trouble=Trouble.ENDED).sentence(row.recording.engine)])


def _span(opened: Opened, asked: Asked, kind: str) -> None:
    """The chosen stretch of time: answer, courses, drift, events."""
    first_s, last_s = _scrub(opened.line)
    found = desk.summed(opened, first_s, last_s, asked)
    shown.answer(found, kind)
    line = cut(opened.line, first_s, last_s)
    shown.courses(line, "recorded_courses")
    parts.section(
        t("Drift"),
        t("A line through the stretch chosen above, since its last restart; ± holds the true slope 19 times in 20."),
    )
    parts.table(about_live.drift_rows(_trends(line)), key="recorded_drift")
    if line.marks:
        with st.expander(t("What happened when"), icon=":material/flag:"):
            parts.table(about_live.mark_rows(line.marks), key="recorded_marks")
    shown.rest(found, opened.recording.engine, kind, "recorded")


def _scrub(line: Timeline) -> tuple[float, float]:
    """The stretch of time to look at."""
    first, last = (datetime.fromtimestamp(at, UTC) for at in (line.times_s[0], line.times_s[-1] + 1))
    key = f"live_span_{line.times_s[0]:.0f}_{line.times_s[-1]:.0f}"
    short = last - first < SHORT
    chosen = st.slider(
        t("Time (UTC)"), first, last, (first, last), timedelta(seconds=1) if short else timedelta(minutes=1),
        format="HH:mm:ss" if short else "MM-DD HH:mm", key=key,
    )  # fmt: skip
    return chosen[0].timestamp(), chosen[1].timestamp()


def _trends(line: Timeline) -> Mapping[str, Trend | None]:
    """Of what may drift over hours, since the last restart."""
    since = max((mark.at_s for mark in line.marks if mark.event is Event.RESTART), default=float("-inf"))
    kept = [place for place, at_s in enumerate(line.times_s) if at_s >= since]
    times = [line.times_s[place] for place in kept]
    if not times or times[-1] - times[0] < FEWEST_S:
        return {}
    return {
        course: trend(times, [line.course(course)[place] for place in kept])
        for course in about_live.DRIFTING
        if any(value is not None for value in line.course(course))
    }


def _keep(row: StoredRecording | None, opened: Opened) -> None:
    """The recording as a file; a stored one can be removed and brought back."""
    with st.container(horizontal=True):
        st.download_button(
            t("Export"), data=lambda: _file(row, opened), file_name=f"{_plain(opened.recording.engine)}{SUFFIX}",
            mime="application/jsonl", key="recorded_export", icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        if row is not None:
            st.button(
                t("Remove"), key="recorded_remove", icon=":material/delete:", on_click=state.callback(_remove),
                args=(row.recording.recording_id,),
            )  # fmt: skip
        if (deleted := state.get(DELETED)) is not None:
            st.button(
                t("Undo the removal"), key="recorded_undo", icon=":material/undo:", on_click=state.callback(_undo),
                args=(deleted,),
            )  # fmt: skip


def _file(row: StoredRecording | None, opened: Opened) -> bytes:
    if row is None:
        return write_recording(opened.recording, opened.entries)
    entries, _ = resources.store().recordings.entries(row.recording.recording_id, most=MAX_EXPORTED)
    return write_recording(opened.recording, entries)


def _plain(name: str) -> str:
    """A file name without anything a file system or a shell could mind."""
    return "".join(sign if sign.isalnum() else "-" for sign in name)[:60] or "engine"


def _remove(recording_id: str) -> None:
    state.put(**{DELETED: resources.store().delete("recording", recording_id), "live_recording": SAMPLE})


def _undo(deleted: Action) -> None:
    resources.store().undo(deleted)
    state.put(**{DELETED: None, "live_recording": deleted.target_id})
