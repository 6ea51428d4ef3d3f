"""What several views of the Live engine page show: answer, diagnosis, layers over time, and the hand-over."""

from __future__ import annotations

import streamlit as st

from calc.evidence import Evidence
from calc.judge.decision import Outcome
from calc.workload import Slo
from data.live.timeline import Timeline
from data.live.window import Window, evidence_of
from data.records import MetricsSnapshot
from ui import parts, state
from ui.charts import live as charts
from ui.live import desk
from ui.story import about_live
from ui.text import t

FEWEST_DRAWN = 2


def answer(window: Window | None, engine: str, slo: Slo, kind: str) -> None:
    """What the window says in one sentence, its numbers, and the state of the three layers behind it."""
    if window is None:
        st.info(
            t("Two scrapes are needed before anything can be said: wait a moment."), icon=":material/hourglass_top:"
        )
        return
    found = desk.diagnosed(window, engine, slo)
    parts.answer(about_live.sentence(found), about_live.figures(window, kind), good=about_live.calm(found.decision))
    parts.prose(about_live.layer_rows(found.decision))
    parts.notes([*window.notes, *(found.decision.missing if found.decision.outcome is Outcome.MEASURE_FIRST else ())])


def hand_over(window: Window | None, engine: str, kind: str, key: str) -> None:
    """The button that lets the decision rest on the window, where it was measured."""
    if window is None:
        return
    measured = evidence_of(window, engine)
    st.button(
        t("Use as evidence"), key=f"{key}_use", icon=":material/balance:", disabled=kind == "sample",
        on_click=_take, args=(measured,),
        help=t("The decision and the review sheet of this session then rest on these figures.")
        if kind != "sample" else t("A made-up sample is no evidence."),
    )  # fmt: skip
    if state.handed_over():
        st.caption(t("Measured figures are handed over: see the Decision page."))
        parts.link("decision", t("Decision"))


def _take(measured: tuple[Evidence, ...]) -> None:
    state.put(**{state.MEASURED: measured})


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
