"""The cheapest ways to make it fit, or to make more room."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from calc.memory import MemoryReport
from calc.model import ModelSpec
from calc.ways.out import Way, WaysOut
from data.case import write_case
from data.own_hardware import price_name, price_of, prices_of
from data.ways import Counts, count_types, find_ways, other_formats
from ui import charts, parts, resources, state
from ui.resources import Asked
from ui.story import about_memory, about_ways
from ui.text import t

TYPES_HEIGHT = 320
"""Pixels of the list of GPU types; the rest scrolls."""
MOST_SHOWN = 14
"""Ways drawn; those behind neither suffice nor gain much."""
FIRST_SHOWN = 5
"""Ways in sight; the others are folded away."""
COLUMNS = (5, 1)


def found(asked: Asked, memory: MemoryReport) -> WaysOut:
    """The ranked ways, worked out once for each question and set of own GPUs and prices."""
    return _found(asked.key, _own(), asked, memory)


def _own() -> tuple[str, ...]:
    return tuple(row.entry_id for row in (*resources.own_gpus(), *resources.own_prices()))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _found(key: str, own: tuple[str, ...], _asked: Asked, _memory: MemoryReport) -> WaysOut:  # noqa: ARG001 - the key
    gpus, rows = resources.candidate_gpus(), resources.own_prices()
    prices = {gpu.id: price_of(stored[0]) for gpu in gpus if (stored := prices_of(rows, price_name(gpu)))}
    stored_as = json.dumps([_asked.case["model"], _asked.case.get("kv_dtype")], sort_keys=True)
    return find_ways(_asked.scenario, _memory, gpus, prices, _formats(stored_as, _asked))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _formats(stored_as: str, _asked: Asked) -> Mapping[str, ModelSpec]:  # noqa: ARG001 - the key
    return other_formats(_asked.scenario.deployment)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _counts(key: str, own: tuple[str, ...], _asked: Asked, _memory: MemoryReport) -> Counts:  # noqa: ARG001 - the key
    return count_types(_asked.scenario, _memory, resources.candidate_gpus())


def show(asked: Asked, memory: MemoryReport) -> None:
    """Where the gap comes from, what closes it, and what fits at most."""
    out = found(asked, memory)
    if out.gap.over_bytes > 0:
        parts.chart(charts.hull([("", memory)], parts.tones()), about_memory.hull_alt(memory), "ways_hull")
        parts.section(t("Where the gap comes from"), about_ways.cause(out.gap))
        parts.prose(about_ways.gap_rows(out))
    offers(asked, out)
    if out.longest_tokens is not None:
        parts.section(t("The other way round"))
        parts.prose(about_ways.limits(out))
    if st.toggle(t("Fewest GPUs of each type"), key="ways_types", persist_state="session"):
        rows = about_ways.count_rows(_counts(asked.key, _own(), asked, memory))
        parts.table(rows, key="ways_counts", height=TYPES_HEIGHT)
    if memory.idle_kv_bytes:
        st.caption(parts.escape(about_ways.offload_hint()))


def offers(asked: Asked, out: WaysOut) -> None:
    """The ranked ways, each with a button that makes it the scenario; the later ones and the useless are folded."""
    fits = out.gap.over_bytes <= 0
    quiet = t("What suffices first, then cost, then side effects. Only memory is judged here.")
    parts.section(t("Ways out"), f"{about_ways.cause(out.gap)} {quiet}" if fits else quiet)
    ways = about_ways.worth_showing(out)[:MOST_SHOWN]
    for place, way in enumerate(ways[:FIRST_SHOWN]):
        _row(asked, place, way, out.gap.over_bytes)
    if ways[FIRST_SHOWN:]:
        fold = st.expander(
            t("{number} further ways", number=len(ways) - FIRST_SHOWN), key="ways_further", on_change="rerun"
        )
        with fold:
            for place, way in enumerate(ways[FIRST_SHOWN:] if fold.open else (), FIRST_SHOWN):
                _row(asked, place, way, out.gap.over_bytes)
    if out.refused:
        with st.expander(t("What does not help here")):
            parts.bullets(about_ways.refused(out, about_ways.lever_names()))


def _row(asked: Asked, place: int, way: Way, missing_bytes: int) -> None:
    words, button = st.columns(COLUMNS, vertical_alignment="center")
    words.markdown(_text(way, missing_bytes))
    if way.starts:
        button.button(t("Use this"), key=f"way_{place}", on_click=_use, args=(asked, way))


def _text(way: Way, missing_bytes: int) -> str:
    mark = ":green[:material/check_circle:]" if way.suffices else ":gray[:material/remove_circle:]"
    flags = " ".join(f"`{flag}`" for flag in way.flags)
    lines = (
        f"{mark} **{parts.escape(about_ways.title(way))}** — {parts.escape(t(way.change))}",
        parts.escape(about_ways.effect(way, missing_bytes)),
        f":gray[{parts.escape(about_ways.side_effects(way))}] {flags}",
    )
    return "  \n".join(lines)


def _use(asked: Asked, way: Way) -> None:
    state.load(_case(asked, way))


def _case(asked: Asked, way: Way) -> dict[str, Any]:
    """The way as a case; an engine version that was left open stays so."""
    case = write_case(way.scenario)
    return case if asked.case.get("engine_version") else {key: case[key] for key in case if key != "engine_version"}
