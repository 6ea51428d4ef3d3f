"""What is stored: files and their load points, and all of it as a table to take away."""

from __future__ import annotations

import streamlit as st

from ui import parts, resources
from ui.benchmarks import runs
from ui.resources import Asked
from ui.text import t


def show(asked: Asked) -> None:  # noqa: ARG001 - same signature for all views
    """Every load point, newest file first."""
    stored = resources.runs()
    if not stored:
        st.info(t("Nothing is stored yet: upload a result first."))
        return
    parts.table(runs.rows([run.run for run in stored]), key="stored_rows")
    st.download_button(
        t("All runs as CSV"), resources.runs_csv, "runs.csv", "text/csv", key="bench_csv", on_click="ignore"
    )
