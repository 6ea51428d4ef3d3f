"""Decision: which of six ways, on which evidence, and what would change it."""

import streamlit as st

from calc.judge.decision import Outcome
from data.run_evidence import refused_runs
from ui import parts, pricing, resources, state
from ui.glossary import OUTCOMES
from ui.story import about_decision, about_validity, words
from ui.text import t

LEVER_PIXELS = 300  # the longest lever's name

asked = state.current()
decision = resources.decision(asked)

parts.heading(t("Decision"), words.describe(asked.scenario))
parts.answer(t(decision.headline), about_decision.figures(decision), good=about_decision.good(decision))
if asked.measured:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/monitor_heart: {parts.escape(about_decision.handed_over(asked.measured))}")
        st.button(t("Leave them out"), key="decision_without", on_click=lambda: state.put(**{state.MEASURED: ()}))

left, right = st.columns(2, gap="medium")
with left:
    parts.section(t("Because"))
    parts.bullets(t(fact) for fact in decision.because)
    if decision.flips_when is not None:
        st.markdown("**" + t("What would change it") + "**")
        st.markdown(parts.escape(t(decision.flips_when)))
with right:
    parts.section(t("What is missing"))
    parts.bullets(t(gap) for gap in decision.missing)
    if not decision.missing:
        st.caption(t("Nothing decisive is missing."))
if not decision.legs_agree:
    st.warning(t("The conditions and the what-ifs point to different ways; weigh both before deciding."))

parts.section(t("First leg: conditions against the evidence"))
groups = [(one, about_decision.supporting(decision, one)) for one in Outcome]
groups = [(one, rows) for one, rows in groups if rows]
tabs = st.tabs([f"{t(OUTCOMES[one])} {about_decision.short_tally(rows)}" for one, rows in groups])
for tab, (_, rows) in zip(tabs, groups, strict=True):
    with tab:
        st.caption(about_decision.tally(rows))
        parts.verdicts(about_decision.findings(rows))

parts.section(t("Second leg: each lever on your own load"))
levers = about_decision.what_ifs(decision, asked.scenario.prices.currency, asked.scenario.slo.percentile_share)
parts.table(levers, key="decision_levers", column_config={t("Lever"): {"width": LEVER_PIXELS}})
with st.expander(t("Condition and price of each lever"), icon=":material/rule:"):
    parts.prose(about_decision.prices(decision))

parts.section(t("Risks"))
parts.bullets(t(risk) for risk in decision.risks)
parts.remarks(about_validity.left_out(refused_runs(resources.runs(), asked.scenario)))
parts.notes([*asked.notes, *pricing.remarks(asked.scenario.prices, state.today())])
parts.computed(
    [t("Each condition compares one number with one threshold; each lever is simulated on your load with one change.")],
    about_decision.sources(decision),
)
st.caption(words.versions(asked.scenario))
