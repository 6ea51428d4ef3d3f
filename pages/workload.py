"""Workload: what the users send, as distributions, what their logs say, and what could be reused of it."""

import streamlit as st

from ui import parts, resources, state, workload
from ui.story import about_workload, words
from ui.text import t

asked = state.current()
load, latency = asked.scenario.workload, resources.latency(asked)

parts.heading(t("Workload"), words.load(load))
parts.answer(
    about_workload.sentence(asked.scenario, latency),
    [
        about_workload.arrivals(load),
        about_workload.lengths(t("Prompt"), load.prompt_tokens, about_workload.provenance(load)),
        about_workload.lengths(t("Output"), load.output_tokens, about_workload.provenance(load)),
        about_workload.prefill(load, latency),
    ],
    good=None if latency.saturated else True,
)
if load.source:
    st.caption(parts.escape(about_workload.source(load)))
views = workload.views()
view = parts.switch(t("View"), {code: one.name for code, one in views.items()}, "workload_view", "load", linked=True)
views[view].show(asked, latency)

parts.notes(asked.notes)
if view == "load":
    parts.computed(about_workload.formulas(load), about_workload.sources(load.business_type))
st.caption(words.versions(asked.scenario))
