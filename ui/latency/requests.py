"""Requests told apart: short and long, who waits behind whom, and an hour of the user's own rates."""

from __future__ import annotations

import streamlit as st

from calc.anatomy.hour import HourReport
from calc.latency import LatencyReport
from calc.workload import Closed
from ui import parts, resources, state
from ui.charts import latency_hour, latency_parts
from ui.latency import found
from ui.resources import Asked
from ui.story import about_latency, about_latency_requests, words
from ui.text import t


def show(asked: Asked, latency: LatencyReport) -> None:
    """Quarters of prompts, classes, clients who leave, then an hour minute by minute."""
    if words.unstable(latency):
        st.info(about_latency.sentence(latency, asked.scenario.slo))
    else:
        _short_and_long(asked)
        _classes(asked, latency)
        _leaving(asked, latency)
    _hour(asked, latency)
    formulas = about_latency.formulas(asked.scenario, resources.memory(asked))
    parts.computed([*formulas, *about_latency_requests.formulas()], [asked.scenario.deployment.gpu.source])


def _short_and_long(asked: Asked) -> None:
    quarters = found.apart(asked).quarters
    parts.section(t("Short against long prompts"), about_latency_requests.blocking(quarters))
    rows = list(zip(about_latency_requests.names(quarters), quarters, strict=True))
    parts.table(about_latency_requests.group_rows(t("Prompt"), rows, asked.scenario.slo), key="latency_quarters")
    if len(rows) > 1:
        parts.chart(latency_parts.waits(rows, parts.tones()), about_latency_requests.waits_alt(rows), "latency_waits")


def _classes(asked: Asked, latency: LatencyReport) -> None:
    rows = found.apart(asked).classes
    if not rows:
        return
    scenario = asked.scenario
    parts.section(t("Classes"), about_latency_requests.classes(rows, scenario.slo))
    parts.table(about_latency_requests.class_rows(rows, latency, scenario.slo), key="latency_classes")
    if len(rows) > 1:
        parts.chart(latency_parts.waits(rows, parts.tones()), about_latency_requests.waits_alt(rows), "class_waits")
    parts.remarks(about_latency_requests.class_rules(scenario.workload.classes))


def _leaving(asked: Asked, latency: LatencyReport) -> None:
    lines = about_latency_requests.leaving(latency, asked.scenario.workload.clients)
    if lines:
        parts.section(t("Clients who leave"))
        parts.bullets(lines)


def _hour(asked: Asked, latency: LatencyReport) -> None:
    arrivals = asked.scenario.workload.arrivals
    parts.section(t("An hour played through"), t("Every request of an hour, minute by minute, from an idle start."))
    if isinstance(arrivals, Closed):
        st.caption(t("A closed loop has no rates to play: its users always wait for their answers."))
        return
    if not st.toggle(t("Play the hour"), key="latency_hour", persist_state="session"):
        return
    left, right = st.columns((3, 1))
    with left:
        shape = parts.pick(t("How the rate changes"), about_latency_requests.shapes(arrivals), "latency_shape")
    with right:
        seed = st.number_input(t("Drawn hour"), 1, 999, 1, 1, key="latency_hour_seed", persist_state="session")
    hour = found.hour(asked, shape, int(seed or 1))
    slo = asked.scenario.slo
    good = hour.minutes_over == 0 if words.has_target(slo) else None
    even = about_latency_requests.is_even(arrivals, shape)
    sentence = about_latency_requests.hour_sentence(hour, slo, even=even)
    parts.answer(sentence, about_latency_requests.hour_figures(hour, slo), good=good)
    if assumed := about_latency_requests.assumption(shape):
        st.caption(f":material/info: {parts.escape(assumed)}")
    _minutes(asked, latency, hour)
    if hour.minutes_over:
        st.caption(about_latency_requests.washed(hour))
    parts.table(about_latency_requests.hour_rows(hour, even=even), key="latency_hour_rows")
    parts.notes(hour.notes)


def _minutes(asked: Asked, latency: LatencyReport, hour: HourReport) -> None:
    @state.fragment()
    def minutes() -> None:
        """Another picture of the same hour."""
        picture = parts.switch(t("Minute by minute"), about_latency_requests.hour_pictures(), "latency_minutes", "ttft")
        tones = parts.tones()
        if picture == "queue":
            figure = latency_hour.queue(hour, tones)
        elif picture == "kv":
            figure = latency_hour.kv(hour, tones)
        else:
            figure = latency_hour.latencies(hour, picture, words.target(asked.scenario.slo, picture), tones)
        parts.chart(figure, about_latency_requests.hour_alt(hour, picture), "latency_minute")
        bars = latency_hour.arrivals(hour, latency.max_rate_per_s, tones)
        parts.chart(bars, about_latency_requests.arrivals_alt(hour), "latency_minute_arrivals")

    minutes()
