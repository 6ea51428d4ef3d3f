"""The cheapest ways to make it fit, or to make more room."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calc.memory import MemoryReport
from calc.ways_out import Way, WaysOut
from data.case import write_case
from data.own_hardware import price_name, price_of, prices_of
from data.ways import Found, find_ways
from ui import parts, resources, state
from ui.resources import Asked
from ui.story import about_ways
from ui.text import t

MOST_SHOWN = 14
"""Ways drawn; those behind neither suffice nor gain much."""
COLUMNS = (5, 1)


def found(asked: Asked, memory: MemoryReport) -> Found:
    """The ranked ways, worked out once for each question and set of own GPUs and prices."""
    own = tuple(row.entry_id for row in (*resources.own_gpus(), *resources.own_prices()))
    return _found(asked.key, own, asked, memory)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _found(key: str, own: tuple[str, ...], _asked: Asked, _memory: MemoryReport) -> Found:  # noqa: ARG001 - the key
    gpus, rows = resources.candidate_gpus(), resources.own_prices()
    prices = {gpu.id: price_of(stored[0]) for gpu in gpus if (stored := prices_of(rows, price_name(gpu)))}
    return find_ways(_asked.scenario, _memory, gpus, prices)


def show(asked: Asked, memory: MemoryReport) -> None:
    """Where the gap comes from, what closes it, and what fits at most."""
    answer = found(asked, memory)
    parts.section(t("Where the gap comes from"), about_ways.cause(answer.out.gap))
    parts.prose(about_ways.gap_rows(answer.out))
    offers(asked, answer.out)
    parts.section(t("The other way round"))
    parts.prose(about_ways.limits(answer.out))
    st.caption(t("Fewest GPUs of each type, the largest split inside one server first:"))
    parts.table(about_ways.count_rows(answer.counts), key="ways_counts", height=320)
    st.caption(parts.escape(about_ways.offload_hint()))


def offers(asked: Asked, out: WaysOut) -> None:
    """The ranked ways, each with a button that makes it the scenario."""
    parts.section(t("Ways out"), t("What suffices first, then cost, then side effects; other settings unchanged."))
    for place, way in enumerate(out.ways[:MOST_SHOWN]):
        _row(asked, place, way)
    if out.refused:
        with st.expander(t("What does not help here")):
            parts.bullets(about_ways.refused(out, about_ways.lever_names()))


def _row(asked: Asked, place: int, way: Way) -> None:
    words, button = st.columns(COLUMNS, vertical_alignment="center")
    words.markdown(_text(way))
    button.button(
        t("Use this"), key=f"way_{place}", on_click=state.load, args=(_case(asked, way),), disabled=not way.starts
    )


def _text(way: Way) -> str:
    mark = ":green[:material/check_circle:]" if way.suffices else ":gray[:material/remove_circle:]"
    flags = " ".join(f"`{flag}`" for flag in way.flags)
    lines = (
        f"{mark} **{parts.escape(about_ways.title(way))}** — {parts.escape(t(way.change))}",
        parts.escape(about_ways.effect(way)),
        f":gray[{parts.escape(about_ways.side_effects(way))}] {flags}",
    )
    return "  \n".join(lines)


def _case(asked: Asked, way: Way) -> dict[str, Any]:
    """The way as a case; an engine version that was left open stays so."""
    case = write_case(way.scenario)
    return case if asked.case.get("engine_version") else {key: case[key] for key in case if key != "engine_version"}
