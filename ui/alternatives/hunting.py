"""The part of the page that watches a search: start, progress with cancel, and the result when it is there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from threading import Lock

import streamlit as st

from calc.hardware import Gpu
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.search import SearchResult, Space
from calc.workload import Prices
from data.own_hardware import price_name, price_of, prices_of
from data.ways import other_formats
from ui import parts, resources, state
from ui.alternatives.hunt import Hunt
from ui.resources import Asked
from ui.story import about_search
from ui.text import t

LOOK_S = 0.5
"""How often the progress is looked at."""
ASKED_FOR = ("model", "engine", "engine_version", "max_model_len", "workload", "slo", "http", "calibration")
"""Fields of a case that a search is an answer to; the deployment's own may change while its result stays."""


@st.cache_resource(show_spinner=False)
def _turn() -> Lock:
    return Lock()


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _formats(stored_as: str, _asked: Asked) -> Mapping[str, ModelSpec]:  # noqa: ARG001 - the key
    return other_formats(_asked.scenario.deployment)


def formats(asked: Asked) -> Mapping[str, ModelSpec]:
    """The model in other weight formats, read once."""
    return _formats(json.dumps([asked.case["model"], asked.case.get("kv_dtype")], sort_keys=True), asked)


def prices(gpus: Sequence[Gpu]) -> Mapping[str, Prices]:
    """The newest stored price of each type that has one."""
    rows = resources.own_prices()
    return {gpu.id: price_of(stored[0]) for gpu in gpus if (stored := prices_of(rows, price_name(gpu)))}


def question(asked: Asked, criteria: object) -> str:
    """What a result answers, as text."""
    case = {key: asked.case[key] for key in ASKED_FOR if key in asked.case}
    own = [row.entry_id for row in (*resources.own_gpus(), *resources.own_prices())]
    return json.dumps([case, criteria, own], sort_keys=True)


def found(key: str) -> Hunt | None:
    """The search of this session under a key."""
    hunt = state.get(key)
    return hunt if isinstance(hunt, Hunt) else None


def begin(key: str, asked_text: str, scenario: Scenario, space: Space) -> None:
    """Start a search; an earlier one under the key ends. Call it from a callback."""
    if (before := found(key)) is not None:
        before.cancel()
    state.put(**{key: Hunt(question=asked_text, turn=_turn()).begin(scenario, space, prices(space.gpus))})


def watch(key: str, asked_text: str, label: str, start: tuple[Scenario, Space]) -> SearchResult | None:
    """The button, or the progress with its cancel; and the result if it answers today's question.

    The button stands outside the fragment: pressed inside, it would start no ticking of its own.
    """
    hunt = found(key)
    if hunt is not None and hunt.running:
        _progress(key, hunt)
        return None
    asked = (key, asked_text, *start)
    st.button(label, key=f"{key}_start", type="primary", icon=":material/search:", on_click=begin, args=asked)
    return _result(hunt, asked_text)


def _progress(key: str, hunt: Hunt) -> None:
    @state.fragment(run_every=LOOK_S)
    def progress() -> None:
        """Until the search is done; then the page draws what it found."""
        if not hunt.running:
            st.rerun()
        share, words = about_search.progress(hunt.progress, cancelled=hunt.cancelled)
        st.progress(share, words)
        st.button(t("Cancel"), key=f"{key}_cancel", on_click=hunt.cancel, icon=":material/stop:")

    progress()


def _result(hunt: Hunt | None, asked_text: str) -> SearchResult | None:
    if hunt is None or hunt.running:
        return None
    if hunt.problem is not None:
        st.error(t(hunt.problem), icon=":material/error:")
    elif hunt.cancelled:
        st.caption(t("The search was cancelled: nothing of it was kept."))
    elif hunt.result is not None and hunt.question != asked_text:
        st.caption(t("The load, the targets or the choices have changed since the last search: search again."))
    return hunt.result if hunt.question == asked_text else None


def take(rows: Sequence[Scenario], key: str) -> None:
    """Make the row whose button was pressed the scenario. Call it from a callback."""
    click = state.get(key)
    if click is not None and 0 <= click["row"] < len(rows):
        state.load(about_search.case_of(rows[click["row"]]))


def table(rows: Sequence[Mapping[str, object]], scenarios: Sequence[Scenario], key: str, height: int | None) -> None:
    """Rows that each have a button which makes them the scenario."""
    column = next(iter(rows[0]))
    button = st.column_config.ButtonColumn(
        "", type="tertiary", key=f"{key}_take", on_click=take, args=(scenarios, f"{key}_take"), pinned=True
    )
    options = {} if height is None else {"height": height}
    parts.table(rows, key=key, column_config={column: button}, **options)
