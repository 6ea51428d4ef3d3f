"""The scenario beside a second one: a lever of the decision, or a saved scenario."""

from __future__ import annotations

import streamlit as st

from calc.latency import LatencyReport
from ui import charts, library, parts, pricing, resources, state
from ui.memory import ways
from ui.resources import Asked
from ui.story import about_both, about_latency, about_memory
from ui.text import t


def show(asked: Asked) -> None:
    """What does not fit gets the ways out of it; what cannot be timed says why, for that scenario only."""
    memory = resources.memory(asked)
    if not memory.fits:
        parts.answer(about_memory.sentence(memory), about_memory.figures(memory), good=False)
        ways.offers(asked, ways.found(asked, memory))
        return
    options = library.alternatives(asked)
    if not options:
        st.caption(t("No lever applies, and nothing is saved: there is nothing to compare with."))
        return
    chosen = parts.pick(t("Compare with"), options, "alternative", library.first_choice(asked, options))
    _beside(asked, options[chosen], library.alternative(asked, chosen))


def _beside(asked: Asked, name: str, other: Asked) -> None:
    pairs = [(t("Now"), asked), (name, other)]
    latencies = []
    for title, one in pairs:
        report = _latency(one)
        if isinstance(report, LatencyReport):
            latencies.append((title, report))
        else:
            st.warning(f"**{parts.escape(title)}**: {parts.escape(report)}", icon=":material/help:")
    memories = [(title, resources.memory(one)) for title, one in pairs]
    if len(latencies) == len(pairs):
        slo = asked.scenario.slo
        parts.answer(
            about_both.comparison(latencies[0][1], latencies[1][1], slo),
            about_both.compared_figures(other.scenario, memories[1][1], latencies[1][1]),
            good=about_both.verdict(memories[1][1], latencies[1][1], other.scenario.slo),
        )
    left, right = st.columns(2, gap="medium")
    with left:
        parts.section(t("Memory per GPU"))
        parts.chart(charts.hull(memories, parts.tones()), about_memory.hull_alt(memories[1][1]), "alternatives_hull")
    if latencies:
        with right:
            parts.section(t("Where the time goes"))
            alt = about_latency.parts_alt(latencies[-1][1])
            parts.chart(charts.decomposition(latencies, parts.tones()), alt, "alternatives_parts")
    if len(latencies) == len(pairs):
        rows = about_both.compared_rows([one.scenario for _, one in pairs], memories, latencies)
        parts.table(rows, key="alternatives_table")
    st.button(
        t("Make it the scenario"), key="alternative_take", type="primary",
        on_click=state.load, args=(state.canonical(other),),
    )  # fmt: skip
    parts.notes(pricing.compared_remarks(asked.scenario.prices, other.scenario.prices, state.today()))
    parts.notes(other.notes)
    parts.computed(
        [t("Both columns are computed by the same model with the same seed; only the scenario differs.")], []
    )


def _latency(one: Asked) -> LatencyReport | str:
    """The report, or why there is none, in words."""
    memory = resources.memory(one)
    if not memory.fits:
        return about_memory.sentence(memory)
    report = resources.latency_or_reason(one)
    return report if isinstance(report, LatencyReport) else t(report)
