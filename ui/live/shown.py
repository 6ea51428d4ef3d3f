"""What several views of the Live engine page show: answer, diagnosis, layers over time, and the hand-over."""

from __future__ import annotations

import streamlit as st

from calc.evidence import Evidence
from calc.judge.decision import Decision, Outcome
from data.live.timeline import Timeline
from data.live.window import evidence_of
from data.records import MetricsSnapshot
from ui import parts, state
from ui.charts import live as charts
from ui.story import about_live
from ui.story.about_live import Diagnosed
from ui.text import t

FEWEST_DRAWN = 2


def answer(found: Diagnosed | None, kind: str) -> None:
    """What the window says in one sentence, its numbers, and the state of the three layers behind it."""
    if found is None:
        st.info(t("Two scrapes are needed before anything can be said."), icon=":material/hourglass_top:")
        return
    figures = about_live.figures(found.window, kind)
    parts.answer(about_live.sentence(found), figures, good=about_live.calm(found.decision))
    parts.prose(about_live.layer_rows(found.decision))
    parts.notes(found.window.notes)
    _missing(found.decision)


def layers(decision: Decision) -> None:
    """The diagnosis in one line, and the three layers behind it."""
    st.markdown(f"**{parts.escape(about_live.diagnosed(decision))}**")
    parts.prose(about_live.layer_rows(decision))
    _missing(decision)


def _missing(decision: Decision) -> None:
    """What to measure, where the figures decide nothing."""
    if decision.outcome is Outcome.MEASURE_FIRST:
        parts.notes(decision.missing)


def rest(found: Diagnosed | None, engine: str, kind: str, key: str) -> None:
    """Below the courses: the hand-over, and every figure by layer."""
    if found is not None:
        offer(evidence_of(found.window, engine), found.window.snapshot.model, kind, key)
        exported(found.window.snapshot, kind, f"{key}_items")


def offer(measured: tuple[Evidence, ...], served: str | None, kind: str, key: str) -> None:
    """The button that lets the decision rest on these figures of an engine that serves this model."""
    st.button(
        t("Use as evidence"), key=f"{key}_use", icon=":material/balance:", disabled=kind == "sample",
        on_click=_take, args=(measured, served),
        help=t("The decision and the review sheet of this session then rest on these figures.")
        if kind != "sample" else t("A made-up sample is no evidence."),
    )  # fmt: skip
    if state.handed_over():
        st.caption(t("Measured figures are handed over: see the Decision page."))
        parts.link("decision", t("Decision"))


def _take(measured: tuple[Evidence, ...], served: str | None) -> None:
    state.put(**{state.MEASURED: measured, state.SERVED: (served, measured)})


def courses(line: Timeline, key: str) -> None:
    """The layers over time."""
    if len(line.times_s) < FEWEST_DRAWN:
        return
    parts.chart(
        charts.layers(line, parts.tones()),
        t("KV usage and hit rate, GPUs, requests, TTFT and output over one time axis; events are listed below."),
        key,
    )


def exported(snapshot: MetricsSnapshot, kind: str, key: str) -> None:
    """Every figure of the three layers, and those this engine does not export."""
    with st.expander(t("Every figure by layer, and what is not exported"), icon=":material/list_alt:"):
        parts.table(about_live.item_rows(snapshot, kind), key=key, height=400)
