"""Where the time of a request goes, and what the engine waits for."""

from __future__ import annotations

import streamlit as st

from calc.latency import LatencyReport
from ui import charts, parts, resources
from ui.resources import Asked
from ui.story import about_latency
from ui.text import t


def show(asked: Asked, latency: LatencyReport) -> None:
    """The mean E2E in its four parts, and why the step takes as long as it does."""
    parts.section(t("Where the time goes"))
    parts.chart(charts.decomposition([("", latency)], parts.tones()), about_latency.parts_alt(latency), "latency_parts")
    st.caption(parts.escape(about_latency.why(resources.step(asked))))
