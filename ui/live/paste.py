"""Paste or upload: one or two metrics texts, or the file of a recording."""

from __future__ import annotations

import hashlib

import streamlit as st

from data.live.recording_file import looks_like_recording, read_recording
from data.sources.prometheus import evidence
from ui import engine_view, parts, resources, state
from ui.live import desk, shown
from ui.resources import Asked
from ui.text import t

KINDS = ["txt", "prom", "metrics", "jsonl"]
MOST_MB = 50
ONE_ONLY = "cumulative_counters"
"""What is said of one text is cured by the second."""


def show(asked: Asked) -> None:
    """The texts or the file, then what they say."""
    left, right = st.columns(2, gap="medium")
    with left:
        pasted = st.text_area(t("Paste the text of /metrics"), key="engine_text", height=140, persist_state="session")
    with right:
        first = st.file_uploader(
            t("Or upload it, or the file of a recording"), key="engine_file", type=KINDS, max_upload_size=MOST_MB
        )
        later = st.file_uploader(t("A later one, for rates"), key="engine_later", type=KINDS[:3], max_upload_size=20)
        seconds = None if later is None else _apart()
    if first is not None and looks_like_recording(first.getvalue()):
        _recording(first.getvalue(), first.name)
        return
    given = first.getvalue() if first else (pasted or "").encode()
    _texts(given, later.getvalue() if later else None, seconds, asked)


def _apart() -> float | None:
    """Texts seldom carry a time; without one there are percentiles and shares of the window, but no rates."""
    return st.number_input(t("Seconds between the two"), 0.1, None, None, 1.0, key="engine_apart")


def _texts(given: bytes, later: bytes | None, seconds: float | None, asked: Asked) -> None:
    kind = "measured" if given else "sample"
    if kind == "sample":
        said = t("Shown is a made-up sample; paste the text of your engine's /metrics to see yours.")
        st.caption(f":material/science: {said}")
    result, snapshot = engine_view.understand(given or resources.sample("sample-metrics.txt"), later, seconds)
    known = evidence(snapshot, between=later is not None)
    parts.answer(engine_view.sentence(snapshot), engine_view.figures(snapshot, kind), good=engine_view.calm(snapshot))
    shown.layers(desk.judged(known, snapshot.model, asked))
    shown.offer(known, snapshot.model, kind, "paste")
    parts.section(t("Three layers"))
    parts.table(engine_view.rows(known, kind), key="engine_rows")
    shown.exported(snapshot, kind, "paste_items")
    for warning in result.warnings:
        if later is None or warning.code != ONE_ONLY:
            st.warning(t(warning.text))


def _recording(content: bytes, name: str) -> None:
    """A file of a recording goes to the others; the same file twice is one recording."""
    done = f"_imported_{hashlib.sha256(content).hexdigest()}"
    if state.get(done) is None:
        with st.spinner(t("Reading the recording …")):
            recording, entries = read_recording(content, name)
            resources.store().recordings.add_whole(recording, entries)
        state.put(**{done: recording.recording_id})
    st.success(t("The recording is stored: look at it under Recorded."), icon=":material/check_circle:")
    st.button(
        t("Show it"), key="engine_show", icon=":material/arrow_forward:", on_click=_open, args=(str(state.get(done)),)
    )


def _open(recording_id: str) -> None:
    state.put(live_recording=recording_id, live_view="recorded")
