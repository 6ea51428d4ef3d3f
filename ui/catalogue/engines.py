"""Engine versions whose defaults are known. Versions are not added here: a newer one uses the nearest older row."""

from __future__ import annotations

import streamlit as st

from ui.catalogue import desk
from ui.story import about_catalogue
from ui.text import t


def show() -> None:
    """The whole view."""
    st.caption(t("A version between two rows uses the older one, and every result says so."))
    desk.shipped_table("engine", about_catalogue.engines())
