"""Workload: what the users send, as distributions, and what it asks of the engine."""

import streamlit as st

from calc.course import rate_course
from ui import charts, parts, resources, state
from ui.charts.workload import rate_curve
from ui.story import about_workload, words
from ui.text import t

asked = state.current()
workload, latency = asked.scenario.workload, resources.latency(asked)

parts.heading(t("Workload"), words.load(workload))
parts.answer(
    about_workload.sentence(asked.scenario, latency),
    [
        about_workload.arrivals(workload),
        about_workload.lengths(t("Prompt"), workload.prompt_tokens),
        about_workload.lengths(t("Output"), workload.output_tokens),
        about_workload.prefill(workload, latency),
    ],
    good=None if latency.saturated else True,
)

if course := rate_course(workload.arrivals):
    parts.section(t("Arrivals over time"), about_workload.course_sentence(course, latency))
    figure = rate_curve(course, latency.max_rate_per_s, parts.tones())
    parts.chart(figure, about_workload.course_alt(course), "workload_course")
    parts.remarks(about_workload.course_notes(course))

if workload.classes:
    parts.section(t("Kinds of requests"))
    parts.table(about_workload.classes(workload), "workload_classes")
if behaviour := about_workload.clients(workload):
    parts.section(t("Clients and reuse"))
    parts.bullets(behaviour)

left, right = st.columns(2, gap="medium")
with left:
    parts.section(t("Prompt lengths"))
    figure = charts.length_curve(workload.prompt_tokens, parts.tones())
    parts.chart(figure, about_workload.lengths_alt(workload.prompt_tokens), "workload_prompt")
with right:
    parts.section(t("Output lengths"))
    figure = charts.length_curve(workload.output_tokens, parts.tones())
    parts.chart(figure, about_workload.lengths_alt(workload.output_tokens), "workload_output")

parts.section(t("What matters for this business type"))
parts.prose(about_workload.presets(workload.business_type))
parts.bullets(about_workload.questions(workload.business_type))

parts.notes(asked.notes)
parts.computed(about_workload.formulas(workload), about_workload.sources(workload.business_type))
st.caption(words.versions(asked.scenario))
