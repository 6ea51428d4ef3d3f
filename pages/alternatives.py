"""Alternatives: the scenario beside a second one, and the list of saved scenarios."""

import streamlit as st

from ui import charts, library, parts, pricing, resources, state
from ui.memory import ways
from ui.story import about_both, about_latency, about_memory, words
from ui.text import t

asked = state.current()
parts.heading(t("Alternatives"), words.describe(asked.scenario))
memory = resources.memory(asked)
if not memory.fits:
    parts.answer(about_memory.sentence(memory), about_memory.figures(memory), good=False)
    ways.offers(asked, ways.found(asked, memory))
    parts.section(t("Saved scenarios"))
    library.shelf(asked)
    st.stop()

options = library.alternatives(asked)
chosen = parts.pick(t("Compare with"), options, "alternative", library.first_choice(asked, options))
other = library.alternative(asked, chosen)
pairs = [(t("Now"), asked), (options[chosen], other)]
memories = [(name, resources.memory(one)) for name, one in pairs]
latencies = [(name, resources.latency(one)) for name, one in pairs]

parts.answer(
    about_both.comparison(latencies[0][1], latencies[1][1], asked.scenario.slo),
    about_both.compared_figures(pairs[1][1].scenario, memories[1][1], latencies[1][1]),
    good=about_both.verdict(memories[1][1], latencies[1][1], other.scenario.slo),
)
left, right = st.columns(2, gap="medium")
with left:
    parts.section(t("Memory per GPU"))
    parts.chart(charts.hull(memories, parts.tones()), about_memory.hull_alt(memories[1][1]), "alternatives_hull")
with right:
    parts.section(t("Where the time goes"))
    parts.chart(
        charts.decomposition(latencies, parts.tones()), about_latency.parts_alt(latencies[1][1]), "alternatives_parts"
    )
parts.table(about_both.compared_rows([one.scenario for _, one in pairs], memories, latencies), key="alternatives_table")
st.button(
    t("Make it the scenario"),
    key="alternative_take",
    type="primary",
    on_click=state.load,
    args=(state.canonical(other),),
)

parts.notes(pricing.compared_remarks(asked.scenario.prices, other.scenario.prices, state.today()))

parts.section(t("Saved scenarios"))
library.shelf(asked)
parts.notes([*asked.notes, *other.notes])
parts.computed([t("Both columns are computed by the same model with the same seed; only the scenario differs.")], [])
st.caption(words.versions())
