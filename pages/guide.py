"""Guide: words, questions newcomers ask, misconceptions, and how each number is made."""

import streamlit as st

from ui import guide, parts
from ui.story import words
from ui.text import t

parts.heading(t("Guide"), t("What the words mean, and how each number is made."))
st.subheader(t("Three steps"), anchor=False)
st.markdown("\n".join(f"1. {step}" for step in guide.steps()))

st.subheader(t("Glossary"), anchor=False)
wanted = st.text_input(t("Find a word"), key="guide_word", persist_state="session")
parts.table(guide.glossary(wanted), key="guide_glossary", row_height=64)

st.subheader(t("Questions"), anchor=False)
for question, answer in guide.questions():
    with st.expander(question):
        st.markdown(answer)

st.subheader(t("Misconceptions"), anchor=False)
for claim, truth in guide.misconceptions():
    with st.expander(claim):
        st.markdown(truth)

st.subheader(t("How each number is made"), anchor=False)
parts.prose(guide.numbers())
st.subheader(t("Provenance of a number"), anchor=False)
parts.prose(guide.provenance())
st.caption(words.versions())
