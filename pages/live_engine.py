"""Live engine: what a running engine's own counters say, in three layers."""

import streamlit as st

from ui import parts, state
from ui.live import now, paste, recorded
from ui.story import words
from ui.text import t

asked = state.current()

parts.heading(t("Live engine"), t("What do the counters of a running engine say?"))
names = {"now": t("Now"), "recorded": t("Recorded"), "paste": t("Paste or upload")}
match parts.switch(t("View"), names, "live_view", "now", linked=True):
    case "recorded":
        recorded.show(asked)
    case "paste":
        paste.show(asked)
    case _:
        now.show(asked)

parts.computed(
    [
        t("Percentiles are read from the histogram's buckets, linear inside a bucket."),
        t("rate = later counter − earlier counter, ÷ the time between; nothing is told across a restart"),
        t("hit rate = prefix tokens found / prefix tokens asked, in the same time"),
        t("drift = least squares through the means of twelve stretches, ± Student's t at 95 %"),
    ],
    [
        "metric names of vLLM, SGLang, TensorRT-LLM, Triton and DCGM; shares are 0–1 in the text",
        "batch means: Law, Simulation Modeling and Analysis, chapter 9",
    ],
)
st.caption(words.versions())
