"""Strategies: each tried on this scenario with and without, several together, and where reuse gains little."""

from __future__ import annotations

import json
from dataclasses import replace

import streamlit as st

from calc.latency import LatencyReport
from calc.model import ModelSpec
from calc.strategies.figures import Figures, figures
from calc.strategies.small_gain import Check, checks
from calc.strategies.strategy import Assumed, Ground
from calc.strategies.table import NO_CACHE, ROUTE_MODELS, STRATEGIES
from calc.strategies.what_if import Compared, Together, combine, compare
from calc.strategies.worth import Answer, is_it_worth_it
from calc.units import GB
from data import catalogue
from ui import parts, resources, state
from ui.resources import Asked
from ui.story import about_strategies
from ui.text import t

STEP_S = 0.3
"""Pause between two batches of strategies, so that the page stays answerable."""
AT_ONCE = 3
"""Strategies tried in one run of the fragment: about a tenth of a second."""
_SHOWN, _DONE = "_strategies_shown", "_strategies_done"
NONE = ""
USUAL = Assumed()
PERCENT = 100


@st.cache_resource(show_spinner=False)
def _spec(model: str) -> ModelSpec:
    return catalogue.model(model).spec()


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _today(key: str, _asked: Asked) -> Figures:  # noqa: ARG001 - the key
    return figures(_asked.scenario)


@st.cache_resource(max_entries=2 * resources.KEPT, show_spinner=False)
def _compared(key: str, code: str, assumed: str, _asked: Asked, _assumed: Assumed) -> Compared:  # noqa: ARG001 - the key
    return compare(_asked.scenario, code, _assumed, _today(key, _asked))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _together(key: str, codes: tuple[str, ...], assumed: str, _asked: Asked, _assumed: Assumed) -> Together:  # noqa: ARG001 - the key
    return combine(_asked.scenario, codes, _assumed)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _cases(key: str, _asked: Asked, _latency: LatencyReport) -> tuple[tuple[Check, ...], tuple[Answer, ...]]:  # noqa: ARG001 - the key
    ground = Ground.of(_asked.scenario, _latency)
    return checks(ground), is_it_worth_it(ground)


def show(asked: Asked, latency: LatencyReport) -> None:
    """All strategies in a table that fills itself, one in detail, several together, and the cases of small gain."""
    goal = parts.switch(t("Goal"), about_strategies.goals(), "strategy_goal", about_strategies.ALL)
    assumed = _assumptions()
    codes = [code for code, row in STRATEGIES.items() if goal in (about_strategies.ALL, *row.goals)]
    parts.section(t("Tried on your scenario"), about_strategies.advice(goal))
    _filling(asked, codes, assumed)
    _one(asked, codes, assumed)
    _stack(asked, codes, assumed)
    judged, answers = _cases(asked.key, asked, latency)
    parts.section(t("Is reuse worth it"), t("Requests alone on your GPUs; lengths of the typical uses are assumed."))
    if answers:
        st.markdown(f"**{parts.escape(about_strategies.worth_sentence(answers))}**")
        parts.prose(about_strategies.worth_rows(answers))
    parts.section(t("Where it gains little"))
    parts.prose(about_strategies.check_rows(judged))


def _key(assumed: Assumed) -> str:
    small = assumed.small_model.name if assumed.small_model else NONE
    return json.dumps([small, *vars(replace(assumed, small_model=None)).values()])


def _filling(asked: Asked, codes: list[str], assumed: Assumed) -> None:
    """Some strategies a run until all are tried."""
    question = f"{asked.key} {_key(assumed)} {len(codes)} {codes[0]}"
    finished = state.get(_DONE) == question

    @state.fragment(run_every=None if finished else STEP_S)
    def fill() -> None:
        done = len(codes) if state.get(_DONE) == question else _progress(question, len(codes))
        rows = [_compared(asked.key, code, _key(assumed), asked, assumed) for code in codes[:done]]
        _table(rows, codes[done:])
        if done == len(codes) and state.get(_DONE) != question:
            state.put(**{_DONE: question})
            st.rerun()

    fill()


def _progress(question: str, count: int) -> int:
    """How many are to be tried in this run: a few more than in the last."""
    shown = state.get(_SHOWN)
    done = min(count, (shown[1] if shown and shown[0] == question else 0) + AT_ONCE)
    state.put(**{_SHOWN: (question, done)})
    return done


def _table(rows: list[Compared], waiting: list[str]) -> None:
    head, condition, effect = t("Strategy"), t("Worth using when"), t("Effect of having it")
    shown = [
        {
            head: f"**{parts.escape(t(row.strategy.name))}**  \n:gray[{about_strategies.state(row)}]",
            condition: f"{about_strategies.verdict(row.condition)}: {parts.escape(t(row.condition.statement))}",
            effect: parts.escape(about_strategies.effect(row)),
        }
        for row in rows
    ]
    rest = [{head: f"**{parts.escape(t(STRATEGIES[code].name))}**", condition: "…", effect: "…"} for code in waiting]
    st.table([*shown, *rest], hide_index=True, border="horizontal", width="stretch")


def _one(asked: Asked, codes: list[str], assumed: Assumed) -> None:
    names = {code: t(STRATEGIES[code].name) for code in codes}
    parts.section(t("One in detail"))

    @state.fragment()
    def detail() -> None:
        code = parts.pick(t("Strategy"), names, "strategy_one")
        if code not in STRATEGIES:
            return
        row = _compared(asked.key, code, _key(assumed), asked, assumed)
        rows = about_strategies.compared_rows(row)
        if rows:
            parts.prose(rows)
        if row.note is not None:
            st.caption(parts.escape(t(row.note)))
        parts.bullets(about_strategies.remarks(row.strategy))
        st.caption(t("Source: {source}", source=parts.escape(t(row.strategy.source))))

    detail()


def _stack(asked: Asked, codes: list[str], assumed: Assumed) -> None:
    scenario = asked.scenario
    free = {
        code: t(STRATEGIES[code].name)
        for code in codes
        if code not in (NO_CACHE, ROUTE_MODELS) and not STRATEGIES[code].is_on(scenario)
    }
    parts.section(t("Several together"), t("Switched on at once and simulated once: effects are not added up."))

    @state.fragment()
    def stack() -> None:
        chosen = st.multiselect(
            t("Switch on"), list(free), format_func=lambda code: free.get(code, code), key="strategy_stack",
            persist_state="session",
        )  # fmt: skip
        if not chosen:
            return
        found = _together(asked.key, tuple(chosen), _key(assumed), asked, assumed)
        st.markdown(f"**{parts.escape(about_strategies.together_sentence(found))}**")
        rows = about_strategies.together_rows(found)
        if rows:
            parts.prose(rows)
        parts.notes([*found.refused, *found.warnings])

    stack()


def _assumptions() -> Assumed:
    """What the scenario does not say and a what-if needs."""
    with st.expander(t("Assumptions"), icon=":material/tune:"):
        left, right = st.columns(2)
        with left:
            offload = _number(t("Prompt tokens found outside the GPU (%)"), "assume_offload", 30, 0, 100)
            kept = _number(t("Tokens kept by eviction (%)"), "assume_kept", 20, 1, 100)
            drafted = _number(t("Tokens drafted per step"), "assume_drafted", USUAL.spec_tokens, 1, 16)
            accepted = _number(t("Of those accepted (%)"), "assume_accepted", 50, 0, 100)
        with right:
            link = _number(t("Between replicas (GB/s)"), "assume_link", round(USUAL.transfer_bytes_per_s / GB), 1, 1000)
            routed = _number(t("Requests for a small model (%)"), "assume_routed", 50, 1, 99)
            names = {NONE: t("not chosen"), **{code: code for code in sorted(catalogue.models(), key=str.lower)}}
            small = parts.pick(t("Small model"), names, "assume_small")
    return Assumed(
        offload_hit_share=offload / PERCENT,
        spec_tokens=drafted,
        accepted_tokens=drafted * accepted / PERCENT,
        kept_share=kept / PERCENT,
        transfer_bytes_per_s=link * GB,
        routed_share=routed / PERCENT,
        small_model=_spec(small) if small else None,
    )


def _number(label: str, key: str, default: int, low: int, high: int) -> int:
    given = st.number_input(label, low, high, default, key=key, persist_state="session", format="%d")
    return default if given is None else int(given)
