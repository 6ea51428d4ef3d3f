"""Latency over load: percentiles against the SLO line, goodput, KV usage, the knee, and where the queue is stable."""

from __future__ import annotations

import streamlit as st

from calc.latency import LatencyReport, LoadSweep
from ui import charts, parts, refining, state
from ui.charts import latency_load as pictures
from ui.resources import Asked
from ui.story import about_latency, about_latency_load, words
from ui.text import t


def show(asked: Asked, latency: LatencyReport) -> None:
    """The curves over load, then the percentiles at the planned load."""

    @state.fragment(run_every=refining.pause_s(asked))
    def load_curves() -> None:
        """Five points at once, twelve finer ones on the next tick, without touching the rest of the page."""
        default = about_latency.tightest(latency, asked.scenario.slo)
        picture = parts.switch(t("Metric"), about_latency_load.pictures(), "latency_metric", default)
        sweep = refining.curve(asked)
        _draw(asked, sweep, picture)
        _say(asked, latency, sweep, picture)

    load_curves()
    parts.section(t("Percentiles at this load"))
    parts.table(about_latency.percentiles(latency, asked.scenario.slo), key="latency_percentiles")
    parts.bullets(about_latency.facts(latency))


def _draw(asked: Asked, sweep: LoadSweep, picture: str) -> None:
    slo, tones = asked.scenario.slo, parts.tones()
    if picture in words.METRICS:
        figure = charts.load_curve(sweep, picture, words.target(slo, picture), tones, share=slo.percentile_share)
        parts.chart(figure, about_latency.curve_alt(sweep, picture), "latency_load")
        return
    if picture == "slo" and not words.has_target(slo):
        st.info(t("No target is set: set one at the side, under Targets."))
        return
    left, right = st.columns(2, gap="medium")
    if picture == "slo":
        with left:
            figure = pictures.attainment(sweep, slo.percentile_share, tones)
            parts.chart(figure, about_latency_load.attainment_alt(sweep), "latency_attained")
        with right:
            parts.chart(pictures.goodput(sweep, tones), about_latency_load.goodput_alt(sweep), "latency_goodput")
        return
    with left:
        parts.chart(pictures.kv_usage(sweep, tones), about_latency_load.kv_alt(sweep), "latency_kv")
    with right:
        parts.chart(pictures.preemptions(sweep, tones), about_latency_load.preempted_alt(sweep), "latency_preempted")


def _say(asked: Asked, latency: LatencyReport, sweep: LoadSweep, picture: str) -> None:
    scenario = asked.scenario
    st.markdown(f"**{parts.escape(about_latency_load.knee(scenario, sweep))}**")
    parts.remarks(
        [
            about_latency_load.limit(latency, sweep),
            about_latency_load.agreement(latency, sweep, picture, scenario.slo.percentile_share),
        ]
    )
