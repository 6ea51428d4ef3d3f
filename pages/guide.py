"""Guide: words, questions newcomers ask, misconceptions, and how each number is made."""

import streamlit as st

from ui import guide, parts
from ui.story import words
from ui.text import t

parts.heading(t("Guide"), t("What the words mean, and how each number is made."))
parts.section(t("Three steps"))
st.markdown("\n".join(f"1. {step}" for step in guide.steps()))

parts.section(t("Glossary"))
wanted = st.text_input(t("Find a word"), key="guide_word", persist_state="session")
parts.table(guide.glossary(wanted), key="guide_glossary", row_height=64, height=480)

parts.section(t("Questions"))
for question, answer in guide.questions():
    with st.expander(question):
        st.markdown(answer)

parts.section(t("Misconceptions"))
for claim, truth in guide.misconceptions():
    with st.expander(claim):
        st.markdown(truth)

parts.section(t("How each number is made"))
parts.prose(guide.numbers())
parts.section(t("Provenance of a number"))
parts.prose(guide.provenance())
st.caption(words.versions())
