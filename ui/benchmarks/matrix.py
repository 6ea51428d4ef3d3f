"""The evaluation matrix: which cells have evidence, which are missing, and what to run next."""

from __future__ import annotations

import streamlit as st

from ui.resources import Asked
from ui.text import t


def show(asked: Asked) -> None:  # noqa: ARG001 - same signature for all views
    """The cells of the evaluation."""
    st.info(t("Nothing is stored yet: upload a result first."))
