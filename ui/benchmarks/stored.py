"""What is stored: load points with what the checks say of them, the facts they lack, and a table to take away."""

from __future__ import annotations

import streamlit as st

from ui import parts, resources
from ui.benchmarks import facts, validity
from ui.resources import Asked
from ui.text import t


def show(asked: Asked) -> None:  # noqa: ARG001 - same signature for all views
    """Every load point, newest file first; one of them explained; and the form for what files leave out."""
    stored = resources.runs()
    if not stored:
        st.info(t("Nothing is stored yet: upload a result first."))
        return
    validity.show(validity.table(stored, "stored_rows"))
    parts.section(t("Missing facts"), t("No result file says how the cache was kept; many do not say the GPU."))
    facts.choose(stored)
    st.download_button(
        t("All runs as CSV"), resources.runs_csv, "runs.csv", "text/csv", key="bench_csv", on_click="ignore"
    )
