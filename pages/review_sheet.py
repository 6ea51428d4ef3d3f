"""Review sheet: the one page that business, platform and security sign."""

import streamlit as st

from ui import filing, parts, resources, state
from ui.sheet import render_html
from ui.story import words
from ui.text import t

SHEET_PIXELS = 2320  # a usual sheet at the page's full width; a longer one scrolls inside

asked = state.current()
decision = resources.decision(asked)
parts.heading(t("Review sheet"), words.describe(asked.scenario))

top = st.container()
chosen = filing.choose()
with st.expander(t("Title, owners and what is real"), icon=":material/edit:", expanded=False):
    filed = filing.form()
review = filing.draft(asked, filed) if chosen == filing.DRAFT else filing.opened(chosen)
with top:
    parts.answer(t(review.verdict.headline), filing.figures(review), good=None)
with st.container(horizontal=True, vertical_alignment="bottom"):
    spoken = filing.language()
    filing.downloads(review, spoken)
    if chosen == filing.DRAFT:
        st.button(
            t("Save as snapshot"), key="sheet_save", type="primary", icon=":material/save:",
            on_click=filing.save, args=(review, filed.title or words.describe(asked.scenario)),
        )  # fmt: skip
st.iframe(render_html(review, spoken), height=SHEET_PIXELS, alt=t("Preview of the sheet"))
parts.notes(asked.notes)
parts.computed([t("A saved sheet keeps its numbers; it is not computed again when the model changes.")], [])
st.caption(words.versions(asked.scenario))
