"""Latency over load: percentiles against the SLO line, the knee, and where the queue stops being stable."""

from __future__ import annotations

from calc.latency import LatencyReport
from ui import charts, parts, refining, state
from ui.resources import Asked
from ui.story import about_latency, words
from ui.text import t


def show(asked: Asked, latency: LatencyReport) -> None:
    """The load curve, and the percentiles at the planned load."""
    slo = asked.scenario.slo

    @state.fragment(run_every=refining.pause_s(asked))
    def load_curves() -> None:
        """Five points at once, twelve finer ones on the next tick, without touching the rest of the page."""
        metric = parts.switch(t("Metric"), words.METRIC_NAMES, "latency_metric", about_latency.tightest(latency, slo))
        sweep = refining.curve(asked)
        figure = charts.load_curve(sweep, metric, words.target(slo, metric), parts.tones())
        parts.chart(figure, about_latency.curve_alt(sweep, metric), "latency_load")

    load_curves()
    parts.section(t("Percentiles at this load"))
    parts.table(about_latency.percentiles(latency, slo), key="latency_percentiles")
    parts.bullets(about_latency.facts(latency))
