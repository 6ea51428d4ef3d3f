"""Decision: which of six ways, on which evidence, and what would change it."""

import streamlit as st

from calc.decision import Outcome
from ui import parts, resources, state
from ui.glossary import OUTCOMES
from ui.story import about_decision, words
from ui.text import t

asked = state.current()
decision = resources.decision(asked)

parts.heading(t("Decision"), words.describe(asked.scenario))
parts.answer(t(decision.headline), about_decision.figures(decision), good=about_decision.good(decision))

left, right = st.columns(2, gap="large")
with left:
    st.subheader(t("Because"), anchor=False)
    for fact in decision.because:
        st.markdown(f"- {parts.escape(t(fact))}")
    if decision.flips_when is not None:
        st.markdown("**" + t("What would change it") + "**")
        st.markdown(parts.escape(t(decision.flips_when)))
with right:
    st.subheader(t("What is missing"), anchor=False)
    for gap in decision.missing:
        st.markdown(f"- {parts.escape(t(gap))}")
    if not decision.missing:
        st.caption(t("Nothing decisive is missing."))
if not decision.legs_agree:
    st.warning(t("The conditions and the what-ifs point to different ways; weigh both before deciding."))

st.subheader(t("First leg: conditions against the evidence"), anchor=False)
groups = [(one, about_decision.supporting(decision, one)) for one in Outcome]
groups = [(one, rows) for one, rows in groups if rows]
tabs = st.tabs([f"{t(OUTCOMES[one])} · {about_decision.tally(rows)}" for one, rows in groups])
for tab, (_, rows) in zip(tabs, groups, strict=True):
    with tab:
        parts.prose(about_decision.findings(rows))

st.subheader(t("Second leg: each lever on your own load"), anchor=False)
levers = about_decision.what_ifs(decision, asked.scenario.prices.currency, asked.scenario.slo.percentile_share)
parts.table(levers, key="decision_levers")
with st.expander(t("Condition and price of each lever"), icon=":material/rule:"):
    parts.prose(about_decision.prices(decision))

st.subheader(t("Risks"), anchor=False)
for risk in decision.risks:
    st.markdown(f"- {parts.escape(t(risk))}")
parts.notes(asked.notes)
parts.computed(
    [t("Each condition compares one number with one threshold; each lever is simulated on your load with one change.")],
    [finding.source for finding in decision.findings],
)
st.caption(words.versions())
