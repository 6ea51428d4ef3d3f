"""The questions the other way round: what this box carries, what some users need, how long prompts may be."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from calc.latency import load_of
from calc.search.inverse import (
    Enough,
    HighestLoad,
    LongestContext,
    Population,
    gpus_for,
    highest_load,
    longest_context,
)
from calc.search.space import USUAL_MOST_GPUS, usual_space
from calc.workload import Closed
from ui import parts, resources
from ui.alternatives import hunting
from ui.resources import Asked
from ui.story import about_inverse
from ui.text import t

PERCENT = 100.0
USUAL = Population()
BOXES = "boxes"
HEIGHT = 420
"""Pixels of the list of GPU types; the rest scrolls."""


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _highest(key: str, _asked: Asked) -> HighestLoad:  # noqa: ARG001 - the key
    return highest_load(_asked.scenario, memory=resources.memory(_asked))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _longest(key: str, _asked: Asked) -> LongestContext:  # noqa: ARG001 - the key
    return longest_context(_asked.scenario)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _enough(key: str, rate_per_s: float, most_gpus: int, _asked: Asked) -> Enough:  # noqa: ARG001 - the key
    return gpus_for(_asked.scenario, rate_per_s, most_gpus=most_gpus)


def show(asked: Asked) -> None:
    """One question at a time."""
    names = {
        "load": t("Highest load"),
        "users": t("GPUs for users"),
        "context": t("Longest prompts"),
        BOXES: t("Smallest box per type"),
    }
    chosen = parts.switch(t("Question"), names, "inverse_question", "load")
    memory = resources.memory(asked)
    if chosen != BOXES and not memory.fits:
        st.warning(t("This scenario does not fit, so it carries no load: see the ways out on the Memory page."))
        return
    {"load": _load, "users": _users, "context": _context, BOXES: _boxes}[chosen](asked)


def _population() -> Population:
    """Three numbers that are assumptions; their source stands beside them."""
    left, middle, right = st.columns(3)
    share = left.number_input(
        t("Active at the same time (%)"), 0.1, PERCENT, USUAL.active_share * PERCENT, key="users_active", format="%g",
        persist_state="session",
    )  # fmt: skip
    rate = middle.number_input(
        t("Requests a minute of an active user"), 0.001, 1000.0, USUAL.requests_per_minute, key="users_rate",
        format="%g", persist_state="session",
    )  # fmt: skip
    peak = right.number_input(
        t("Busiest minute over the mean"),
        1.0,
        100.0,
        USUAL.peak_factor,
        key="users_peak",
        format="%g",
        persist_state="session",
    )
    return Population(active_share=share / PERCENT, requests_per_minute=rate, peak_factor=peak)


def _load(asked: Asked) -> None:
    people = _population()
    found = _highest(asked.key, asked)
    parts.answer(
        about_inverse.load_sentence(asked.scenario, found, people),
        about_inverse.load_figures(asked.scenario, found, people),
        good=found.report is not None and found.load >= load_of(asked.scenario.workload),
    )
    parts.computed(about_inverse.load_formulas(people), [about_inverse.source()])


def _users(asked: Asked) -> None:
    if isinstance(asked.scenario.workload.arrivals, Closed):
        st.caption(
            t("A closed loop says how many requests are in flight: choose arrivals with a rate to plan for users.")
        )
        return
    people = _population()
    now = max(1, round(people.users(load_of(asked.scenario.workload))))
    left, right = st.columns(2)
    users = left.number_input(t("Users"), 1, 100_000_000, now, key="users_number", persist_state="session")
    most = right.number_input(t("Most GPUs"), 1, 4096, USUAL_MOST_GPUS, key="users_most", persist_state="session")
    found = _enough(asked.key, people.rate_per_s(users), int(most), asked)
    parts.answer(
        about_inverse.users_sentence(asked.scenario, found, users, int(most)),
        about_inverse.users_figures(asked.scenario, found),
        good=found.replicas is not None,
    )
    parts.computed(about_inverse.users_formulas(people, users), [about_inverse.source()])


def _context(asked: Asked) -> None:
    found = _longest(asked.key, asked)
    parts.answer(
        about_inverse.context_sentence(found), about_inverse.context_figures(asked.scenario, found),
        good=found.report is not None,
    )  # fmt: skip
    st.caption(t("All prompts grow by the same factor, and the engine's maximum length with them; outputs stay."))


def _boxes(asked: Asked) -> None:
    """A search over every type with the formats of the scenario."""
    gpus = resources.candidate_gpus()
    space = replace(
        usual_space(asked.scenario, gpus, most_gpus=USUAL_MOST_GPUS),
        kv_dtypes=(None,), prefix_caching=(None,), batched_tokens=(None,), splits=(False,),
        servings=(asked.scenario.deployment.serving,),
    )  # fmt: skip
    scenario = replace(asked.scenario, workload=replace(asked.scenario.workload, num_requests=None))
    asked_text = hunting.question(asked, BOXES)
    result = hunting.watch("search_boxes", asked_text, t("Find the smallest box of every type"), (scenario, space))
    if result is None:
        return
    smallest = about_inverse.smallest(result)
    if smallest:
        rows = [about_inverse.box_row(one, place) for place, one in enumerate(smallest, 1)]
        hunting.table(rows, [one.scenario for one in smallest], "box_rows", HEIGHT)
    parts.notes(result.notes)
