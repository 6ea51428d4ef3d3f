"""Latency: percentiles under load, where the knee is, and what binds."""

import streamlit as st

from ui import charts, parts, refining, resources, state
from ui.story import about_latency, words
from ui.text import t

asked = state.current()
latency = resources.latency(asked)
slo = asked.scenario.slo

parts.heading(t("Latency"), words.describe(asked.scenario))
parts.answer(
    about_latency.sentence(latency, slo),
    [
        about_latency.percentile("ttft", latency, slo),
        about_latency.percentile("itl", latency, slo),
        about_latency.percentile("e2e", latency, slo),
        about_latency.limit(latency),
    ],
    good=about_latency.verdict(latency, slo),
)


@state.fragment(run_every=refining.pause_s(asked))
def load_curves() -> None:
    """Five points at once, twelve finer ones on the next tick, without touching the rest of the page."""
    metric = parts.switch(t("Metric"), words.METRIC_NAMES, "latency_metric", about_latency.tightest(latency, slo))
    sweep = refining.curve(asked)
    figure = charts.load_curve(sweep, metric, words.target(slo, metric), parts.tones())
    parts.chart(figure, about_latency.curve_alt(sweep, metric), "latency_load")


load_curves()

left, right = st.columns((2, 3), gap="medium")
with left:
    parts.section(t("Where the time goes"))
    parts.chart(charts.decomposition([("", latency)], parts.tones()), about_latency.parts_alt(latency), "latency_parts")
    st.caption(parts.escape(about_latency.why(resources.step(asked))))
with right:
    parts.section(t("Percentiles at this load"))
    parts.table(about_latency.percentiles(latency, slo), key="latency_percentiles")
    parts.bullets(about_latency.facts(latency))

parts.section(t("Textbook queue beside the simulation"))
queue, deployment = resources.queue(asked), asked.scenario.deployment
parts.prose(about_latency.limits(queue, deployment.replicas * deployment.dp))
if queue.results:
    with st.expander(t("What the textbook says, and when it holds"), icon=":material/menu_book:"):
        parts.prose(about_latency.textbook_rows(queue))
parts.notes([*asked.notes, *latency.notes])
parts.computed(about_latency.formulas(asked.scenario, resources.memory(asked)), [asked.scenario.deployment.gpu.source])
st.caption(f"{words.versions()} · {about_latency.calibration(latency)}")
