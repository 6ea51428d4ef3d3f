"""Alternatives: every sensible deployment for this load, a second scenario beside it, the questions the other way."""

import streamlit as st

from ui import parts, resources, state
from ui.alternatives import compare, cost, inverse, saved, search
from ui.story import words
from ui.text import t

asked = state.current()
parts.heading(t("Alternatives"), words.describe(asked.scenario))
names = {
    "search": t("Search"),
    "compare": t("Compare"),
    "inverse": t("The other way round"),
    "cost": t("Cost"),
    "saved": t("Saved scenarios"),
}
views = {"search": search, "compare": compare, "inverse": inverse, "cost": cost, "saved": saved}
first = "search" if resources.memory(asked).fits else "compare"  # where the ways to fit are
views[parts.switch(t("View"), names, "alternatives_view", first)].show(asked)
parts.notes(asked.notes)
st.caption(words.versions(asked.scenario))
