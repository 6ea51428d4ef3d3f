"""What the users send now: arrivals over time, kinds of requests, clients, lengths, and what matters for them."""

from __future__ import annotations

import streamlit as st

from calc.course import rate_course
from calc.latency import LatencyReport
from calc.lengths import LengthDistribution
from calc.workload import Workload
from ui import charts, parts
from ui.charts.workload import rate_curve
from ui.resources import Asked
from ui.story import about_workload
from ui.text import t


def show(asked: Asked, latency: LatencyReport) -> None:
    """The scenario's load, part by part."""
    workload = asked.scenario.workload
    _over_time(workload, latency)
    if workload.classes:
        parts.section(t("Kinds of requests"))
        parts.table(about_workload.classes(workload), "workload_classes")
    if behaviour := about_workload.clients(workload):
        parts.section(t("Clients and reuse"))
        parts.bullets(behaviour)
    left, right = st.columns(2, gap="medium")
    with left:
        _lengths(t("Prompt lengths"), workload.prompt_tokens, "workload_prompt")
    with right:
        _lengths(t("Output lengths"), workload.output_tokens, "workload_output")
    parts.section(t("What matters for this business type"))
    parts.prose(about_workload.presets(workload.business_type))
    parts.bullets(about_workload.questions(workload.business_type))


def _over_time(workload: Workload, latency: LatencyReport) -> None:
    if course := rate_course(workload.arrivals):
        parts.section(t("Arrivals over time"), about_workload.course_sentence(course, latency))
        figure = rate_curve(course, latency.max_rate_per_s, parts.tones())
        parts.chart(figure, about_workload.course_alt(course), "workload_course")
        parts.remarks(about_workload.course_notes(course))


def _lengths(title: str, lengths: LengthDistribution, key: str) -> None:
    parts.section(title)
    figure = charts.length_curve(lengths, parts.tones())
    parts.chart(figure, about_workload.lengths_alt(lengths), key)
