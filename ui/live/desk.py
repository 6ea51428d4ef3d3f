"""What all visitors of the Live engine page share: the watchers of allowed engines, the sample, and read recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from calc.errors import InputError, PlimsollError
from calc.evidence import Evidence, Provenance
from calc.judge.decide import decide
from calc.judge.decision import Decision
from calc.offload.fetch import Offload
from calc.workload import Slo
from data.live.entry import Entry, Recording
from data.live.recorder import Desk
from data.live.recording_file import read_recording
from data.live.timeline import Timeline, timeline
from data.live.window import Window, evidence_of, window_of
from data.settings import Settings, read_settings
from data.store.recordings import StoredRecording
from ui import resources
from ui.resources import Asked
from ui.story.about_live import Diagnosed

SAMPLE_FILE = "sample-engine.plimsoll-recording.jsonl"
MIDDLE = 0.5
"""Quantile of the prompt lengths that stands for them."""
KEPT = 8
"""Recordings held read and laid out."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A recording read for the page: its lines, laid out over time."""

    recording: Recording
    entries: tuple[Entry, ...]
    line: Timeline


@st.cache_resource(show_spinner=False)
def settings() -> Settings:
    """What the operator configured, read when the server starts."""
    return read_settings()


@st.cache_resource(show_spinner=False)
def desk() -> Desk:
    """One desk for all visitors: whoever looks, an engine is asked once."""
    return Desk(settings().engines, resources.store().recordings, settings().keep_days)


def close() -> None:
    """End every recording before the store is closed."""
    try:
        desk().close()
    except PlimsollError:  # a configuration that cannot be read has started nothing
        return
    desk.clear()


@st.cache_resource(show_spinner=False)
def sample() -> Opened:
    """The made-up recording that is shipped."""
    recording, entries = read_recording(resources.sample(SAMPLE_FILE), SAMPLE_FILE)
    return Opened(recording=recording, entries=entries, line=timeline(entries))


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _opened(recording_id: str, last_id: str, _recording: Recording) -> Opened:  # noqa: ARG001 - the key
    entries, step = resources.store().recordings.entries(recording_id)
    return Opened(recording=_recording, entries=entries, line=timeline(entries, step))


def opened(stored: StoredRecording) -> Opened:
    """A stored recording, read again when it has grown."""
    return _opened(stored.recording.recording_id, stored.last_id, stored.recording)


@st.cache_resource(max_entries=4 * KEPT, show_spinner=False)
def _summed(key: str, first_s: float, last_s: float, _asked: Asked, _opened: Opened) -> Diagnosed | None:  # noqa: ARG001 - the key
    inside = [entry for entry in _opened.entries if first_s <= entry.at_s <= last_s]
    window = window_of(inside, last_s - first_s)
    return None if window is None else diagnosed(window, _opened.recording.engine, _asked)


def summed(opened: Opened, first_s: float, last_s: float, asked: Asked) -> Diagnosed | None:
    """A stretch of a recording summed up and diagnosed; ``None`` with fewer than two scrapes in it."""
    key = f"{opened.recording.recording_id} {len(opened.entries)} {opened.entries[-1].at_s} {asked.key}"
    return _summed(key, first_s, last_s, asked, opened)


def diagnosed(window: Window, engine: str, asked: Asked) -> Diagnosed:
    """What the evidence of a window says, held against the scenario's targets."""
    decision = judged(evidence_of(window, engine), window.snapshot.model, asked)
    return Diagnosed(window=window, decision=decision)


def judged(measured: Sequence[Evidence], model: str | None, asked: Asked) -> Decision:
    """What measured figures point to, held against the scenario's targets.

    Of the scenario itself only the rate at which fetching beats recomputing is taken, and only for the same model.
    """
    known = {one.metric: one for one in (*targets(asked.scenario.slo), *measured)}
    if "transfer_bytes_per_s" in known and model == asked.scenario.deployment.model.name:
        known |= {one.metric: one for one in _break_even(asked.key, asked)}
    return decide(known)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _break_even(key: str, _asked: Asked) -> tuple[Evidence, ...]:  # noqa: ARG001 - the key
    """KV bytes of a middling prompt over the seconds to compute it; nothing where the speed of the GPU is unknown."""
    scenario = _asked.scenario
    tokens = max(2, round(scenario.workload.prompt_tokens.quantile(MIDDLE)))
    try:
        hit = Offload.of(scenario.deployment, scenario.calibration).hit(tokens - 1, 1)
    except InputError:
        return ()
    return (
        Evidence(
            metric="break_even_bytes_per_s", value=hit.break_even_bytes_per_s, unit="bytes/s",
            provenance=Provenance.ESTIMATED, source="memory and step model of the scenario",
        ),
    )  # fmt: skip


def targets(slo: Slo) -> list[Evidence]:
    """The scenario's latency targets as declared evidence."""
    named = (("ttft_slo_s", slo.ttft_s), ("itl_slo_s", slo.itl_s), ("e2e_slo_s", slo.e2e_s))
    stated = [(metric, value, "s") for metric, value in named if value is not None]
    rows = [*stated, ("slo_percentile_share", slo.percentile_share, "share")] if stated else []
    return [
        Evidence(metric=metric, value=value, unit=unit, provenance=Provenance.DECLARED, source="scenario")
        for metric, value, unit in rows
    ]
