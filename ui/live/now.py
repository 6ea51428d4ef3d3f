"""Live: an allowed engine as it is now, recorded if wanted, or the made-up sample replayed scrape by scrape."""

from __future__ import annotations

import time

import streamlit as st

from data.live.entry import Entry, Kind
from data.live.recorder import LONGEST_S, SHORTEST_S, Look, Watcher
from data.live.timeline import cut, timeline
from data.live.window import window_of
from ui import parts, state
from ui.live import desk, shown
from ui.resources import Asked
from ui.story import about_live
from ui.text import t

SAMPLE = "_sample"
TICK_S, REPLAY_S = 2.0, 1.0
WINDOW_S = 300.0
"""A diagnosis rests on the last five minutes."""
REPLAY_WINDOW_S = 900.0
"""Of the sample, which has one scrape a minute."""
DRAWN = 120
"""Newest scrapes drawn while the page ticks."""
USUAL_INTERVAL_S = 5.0
PLAYING, PLACE = "live_playing", "live_place"
START = 70
"""Scrape at which the sample is first shown: the cache is not hit."""


def show(asked: Asked) -> None:
    """The choice of engine, then the engine."""
    engines = desk.desk().engines
    names = {**{name: name for name in engines}, SAMPLE: t("Made-up sample, replayed")}
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        chosen = parts.pick(t("Engine"), names, "live_engine")
    if not engines:
        st.caption(t("No engine is configured: the operator names them under [engines] in plimsoll.toml."))
    if chosen == SAMPLE or chosen not in engines:
        with right:
            _player()
        _replayed(asked)
        return
    watcher = desk.desk().watcher(chosen)
    with right:
        _recording(watcher)
    _watched(watcher, asked)


def _recording(watcher: Watcher) -> None:
    """Start, pause, resume, stop. Buttons stand on the page: what they change decides what the fragment shows."""
    now = watcher.state()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if now.recording is None:
            interval = st.number_input(
                t("Every … seconds"), SHORTEST_S, LONGEST_S, USUAL_INTERVAL_S, 1.0, key="live_interval", width=150,
                persist_state="session",
            )  # fmt: skip
            st.button(
                t("Record"), key="live_start", type="primary", icon=":material/fiber_manual_record:",
                on_click=state.callback(_begin), args=(watcher, float(interval)),
            )  # fmt: skip
            return
        if now.paused:
            st.button(t("Resume"), key="live_resume", icon=":material/play_arrow:", on_click=watcher.resume)
        else:
            st.button(t("Pause"), key="live_pause", icon=":material/pause:", on_click=watcher.pause)
        st.button(t("Stop"), key="live_stop", icon=":material/stop:", on_click=_end, args=(watcher,))


def _begin(watcher: Watcher, interval_s: float) -> None:
    watcher.start(interval_s)


def _end(watcher: Watcher) -> None:
    """The recording just ended is the one to look at."""
    if (ended := watcher.stop()) is not None:
        state.put(live_recording=ended.recording_id)


def _watched(watcher: Watcher, asked: Asked) -> None:
    @state.fragment(run_every=TICK_S)
    def ticking() -> None:
        """The engine as its thread saw it last; this never waits for the engine."""
        look = watcher.look()
        _say(look)
        _panel(look, asked)

    ticking()


def _say(look: Look) -> None:
    if look.failed is not None:
        st.error(parts.escape(t(look.failed)), icon=":material/error:")
    if problem := about_live.trouble(look.engine, look.recent):
        st.warning(parts.escape(problem), icon=":material/cloud_off:")
    st.caption(f":material/schedule: {about_live.status(look, time.time())}")


def _panel(look: Look, asked: Asked) -> None:
    """Answer, diagnosis, courses and figures of the newest lines."""
    window = window_of(look.recent, WINDOW_S)
    found = None if window is None else desk.diagnosed(window, look.engine, asked)
    if found is not None or about_live.trouble(look.engine, look.recent) is None:
        shown.answer(found, "measured")
    shown.courses(timeline(look.recent[-DRAWN:]), "live_courses")
    shown.rest(found, look.engine, "measured", "live")


def _player() -> None:
    """Play and pause of the replay, on the page for the same reason."""
    playing = bool(state.get(PLAYING, False))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            t("Pause") if playing else t("Play"), key="live_play",
            icon=":material/pause:" if playing else ":material/play_arrow:",
            on_click=lambda: state.put(**{PLAYING: not playing}),
        )  # fmt: skip
        st.caption(t("Played by the simulator: a calm hour, a cache that is not hit, a full cache, a restart."))


def _replayed(asked: Asked) -> None:
    opened = desk.sample()
    last = len(opened.entries)
    if state.get(PLACE) is None:
        state.put(**{PLACE: START})
    playing = bool(state.get(PLAYING, False)) and int(state.get(PLACE)) < last

    @state.fragment(run_every=REPLAY_S if playing else None)
    def stepping() -> None:
        """One scrape further with every tick."""
        if playing:
            state.put(**{PLACE: min(int(state.get(PLACE)) + 1, last)})
        place = int(st.slider(t("Scrape"), 2, last, key=PLACE))
        if playing and place >= last:
            state.put(**{PLAYING: False})
            st.rerun()
        newest = opened.entries[place - 1]
        st.caption(f":material/science: {parts.escape(_when(newest))}")
        found = desk.summed(opened, newest.at_s - REPLAY_WINDOW_S, newest.at_s, asked)
        shown.answer(found, "sample")
        shown.courses(cut(opened.line, opened.line.times_s[0], newest.at_s), "live_courses")
        shown.rest(found, opened.recording.engine, "sample", "live")

    stepping()


def _when(newest: Entry) -> str:
    at = about_live.clock(newest.at_s)
    if newest.kind is Kind.GAP and newest.problem is not None:
        problem = newest.problem.sentence(t("the engine"))
        return f"{at} · {t(problem)}"
    return t("{at} UTC, a made-up sample: no engine was measured.", at=at)
