"""Overview: does it fit, does it meet the SLO, and what to do."""

import streamlit as st

from calc.latency import LatencyReport
from ui import charts, parts, resources, state
from ui.story import about_both, about_latency, about_memory, words
from ui.text import t

asked = state.current()
memory, latency = resources.memory(asked), resources.latency_or_reason(asked)
decision = resources.decision(asked)
slo = asked.scenario.slo

parts.heading(asked.scenario.name or t("Overview"), words.describe(asked.scenario))
parts.answer(
    t(decision.headline),
    about_both.overview(
        memory, latency, slo, resources.load_sweep(asked) if isinstance(latency, LatencyReport) else None
    ),
    good=about_both.verdict(memory, latency, slo),
)

left, right = st.columns(2, gap="medium")
with left:
    parts.section(t("Memory per GPU"), about_memory.sentence(memory))
    parts.chart(charts.hull([("", memory)], parts.tones()), about_memory.hull_alt(memory), "overview_hull")
    parts.link("memory", t("What fills it, and what it holds") if memory.fits else t("Ways to make it fit"))
with right:
    if isinstance(latency, LatencyReport):
        parts.section(t("Latency under load"), about_latency.sentence(latency, slo))
        sweep, metric = resources.load_sweep(asked), about_latency.tightest(latency, slo)
        curve = charts.load_curve(sweep, metric, words.target(slo, metric), parts.tones(), height=charts.BAR_HEIGHT)
        parts.chart(curve, about_latency.curve_alt(sweep, metric), "overview_load")
        parts.link("latency", t("Percentiles, knee and what binds"))
    else:
        parts.section(t("Latency under load"))
        st.info(t(latency))

parts.section(t("Why"))
parts.bullets(t(fact) for fact in decision.because)
parts.link("decision", t("All conditions and what-ifs"))
parts.notes([*asked.notes, *memory.notes, *(latency.notes if isinstance(latency, LatencyReport) else ())])
parts.computed(
    [t("Memory is estimated, latency simulated, and the decision weighs both; each page shows its formulas.")],
    [asked.scenario.deployment.gpu.source, asked.scenario.deployment.engine.source],
)
if state.is_example():
    st.caption(t("The worked example: its load, targets and price are assumptions. Change any field at the side."))
st.caption(words.versions(asked.scenario))
