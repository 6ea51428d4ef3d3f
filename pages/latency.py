"""Latency: percentiles under load, where the time goes, and what would change it."""

import streamlit as st

from ui import parts, resources, state
from ui.latency import calibration, claims, load, offload, path, requests, strategies, textbook
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
names = {
    "load": t("Load"),
    "path": t("Path"),
    "requests": t("By request"),
    "textbook": t("Textbook"),
    "strategies": t("Strategies"),
    "offload": t("Offload"),
    "claims": t("Headlines"),
    "calibration": t("Calibration"),
}
views = {
    "load": load,
    "path": path,
    "requests": requests,
    "textbook": textbook,
    "strategies": strategies,
    "offload": offload,
    "claims": claims,
    "calibration": calibration,
}
view = parts.switch(t("View"), names, "latency_view", "load", linked=True)
views[view].show(asked, latency)

parts.notes([*asked.notes, *latency.notes])
if view not in ("path", "requests", "textbook"):  # these add their own formulas to these
    lines = about_latency.formulas(asked.scenario, resources.memory(asked))
    parts.computed(lines, [asked.scenario.deployment.gpu.source])
st.caption(f"{words.versions()} · {about_latency.calibration(latency)}")
