"""Live engine: what a running engine's own counters say, in three layers."""

import streamlit as st

from data.sources.prometheus import evidence
from ui import engine_view, parts, resources
from ui.story import words
from ui.text import t

parts.heading(t("Live engine"), t("What do the counters of a running engine say?"))
left, right = st.columns(2, gap="medium")
with left:
    pasted = st.text_area(t("Paste the text of /metrics"), key="engine_text", height=140, persist_state="session")
with right:
    first = st.file_uploader(t("Or upload it"), key="engine_file", type=["txt", "prom", "metrics"], max_upload_size=20)
    later = st.file_uploader(
        t("A later one, for rates"), key="engine_later", type=["txt", "prom", "metrics"], max_upload_size=20
    )

kind = "measured" if first or pasted else "sample"
content = first.getvalue() if first else (pasted or "").encode() or resources.sample("sample-metrics.txt")
if kind == "sample":
    st.caption(
        ":material/science: " + t("Shown is a made-up sample; paste the text of your engine's /metrics to see yours.")
    )
result, snapshot = engine_view.understand(content, later.getvalue() if later else None)

parts.answer(engine_view.sentence(snapshot), engine_view.figures(snapshot, kind), good=engine_view.calm(snapshot))
parts.section(t("Three layers"))
parts.table(engine_view.rows(evidence(snapshot), kind), key="engine_rows")
for warning in result.warnings:
    st.warning(t(warning.text))
parts.computed(
    [
        t("Percentiles are read from the histogram's buckets, linear inside a bucket."),
        t("hit rate = prefix tokens found / prefix tokens asked, since server start or between the two texts"),
    ],
    ["vLLM, SGLang and DCGM metric names; shares are 0–1 in the text"],
)
st.caption(words.versions())
