"""Where the time of a request goes, what the engine waits for, and where the tail of ITL comes from."""

from __future__ import annotations

import streamlit as st

from calc.latency import LatencyReport
from ui import parts, refining, resources, state
from ui.charts import latency_load, latency_parts
from ui.latency import found
from ui.resources import Asked
from ui.story import about_latency, about_latency_path, words
from ui.text import t

SPLIT = "latency_split"
"""Key of the switch between TTFT and E2E; both charts follow it."""
SOURCE = "Williams et al., Roofline, CACM 52(4), 2009; Sarathi-Serve, OSDI 2024 (chunked prefill)"


def show(asked: Asked, latency: LatencyReport) -> None:
    """Parts at mean and in the tail, over load, the mean step, and the tail of ITL."""
    if words.unstable(latency):
        st.info(about_latency.sentence(latency, asked.scenario.slo))
    else:
        _parts(asked, latency)
    _over_load(asked)
    _step(asked)
    if not words.unstable(latency):
        _tail(asked)
    lines = about_latency_path.formulas(found.apart(asked).tail)
    parts.computed([*about_latency.formulas(asked.scenario, resources.memory(asked)), *lines], [SOURCE])


def _parts(asked: Asked, latency: LatencyReport) -> None:
    parts.section(t("Where the time goes"))
    first = about_latency.tightest(latency, asked.scenario.slo) == "ttft"
    metric = parts.switch(t("Latency"), about_latency_path.metrics(), SPLIT, "ttft" if first else "e2e")
    splits = getattr(found.apart(asked), metric)
    figure = latency_parts.splits([(about_latency_path.split_name(one), one) for one in splits], metric, parts.tones())
    parts.chart(figure, about_latency_path.splits_alt(splits, metric), "latency_parts")
    st.caption(parts.escape(about_latency_path.splits_sentence(splits, metric)))


def _over_load(asked: Asked) -> None:
    @state.fragment(run_every=refining.pause_s(asked))
    def parts_over_load() -> None:
        sweep = refining.curve(asked)
        metric = state.get(SPLIT, "e2e")
        figure = latency_load.parts_over_load(sweep, metric, parts.tones())
        parts.chart(figure, about_latency_path.over_load_alt(sweep, metric), "latency_parts_load")

    parts.section(t("Mean over load"))
    parts_over_load()


def _step(asked: Asked) -> None:
    view = resources.step(asked)
    parts.section(t("What the engine waits for"), about_latency_path.intensity(view))
    parts.prose(about_latency_path.step_rows(view))
    st.caption(parts.escape(about_latency_path.worth(view)))


def _tail(asked: Asked) -> None:
    tail = found.apart(asked).tail
    parts.section(t("The tail of ITL"), about_latency_path.tail(tail))
    parts.prose(about_latency_path.tail_rows(tail))
    if st.toggle(t("Try other token budgets per step"), key="latency_budgets", persist_state="session"):
        trials = found.budgets(asked)
        st.caption(parts.escape(about_latency_path.budget_sentence(trials)))
        parts.table(about_latency_path.budget_rows(trials, asked.scenario.slo), key="latency_budget_rows")
