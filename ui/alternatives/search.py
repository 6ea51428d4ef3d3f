"""Every sensible deployment for this load: choices, a search beside the page, ranked rows and two fronts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from calc.dtypes import KV_BYTES
from calc.engine import resolve
from calc.latency import LatencyReport
from calc.scenario import Scenario
from calc.search import SearchResult, Space, usual_space
from calc.search.result import Found
from data.store.export import to_csv
from ui import charts, parts, resources
from ui.alternatives import hunting
from ui.resources import Asked
from ui.story import about_latency, about_memory, about_search
from ui.text import t

KEY = "search"
SHOWN = 60
"""Rows of the table; the file has all that were kept."""
HEIGHT = 420
"""Pixels of the table; the rest scrolls."""
MOST_GPUS = 4096


def show(asked: Asked) -> None:
    """Choices, the search, and what it found."""
    _answer(asked)
    space, criteria = _choices(asked)
    asked_text = hunting.question(asked, criteria)
    st.caption(about_search.size(space))
    result = hunting.watch(KEY, asked_text, t("Search"), (_steady(asked.scenario), space))
    if result is not None:
        _results(asked, result)


def _answer(asked: Asked) -> None:
    """Today's scenario, to be held against what is found."""
    memory = resources.memory(asked)
    latency = resources.latency_or_reason(asked) if memory.fits else about_memory.sentence(memory)
    if not isinstance(latency, LatencyReport):
        parts.answer(t(latency), about_memory.figures(memory), good=None if memory.fits else False)
        return
    slo = asked.scenario.slo
    figures = about_search.today_figures(asked.scenario, latency)
    parts.answer(about_latency.sentence(latency, slo), figures, good=about_latency.verdict(latency, slo))


def _steady(scenario: Scenario) -> Scenario:
    return replace(scenario, workload=replace(scenario.workload, num_requests=None))


def _choices(asked: Asked) -> tuple[Space, dict[str, Any]]:
    """The widgets and the space they describe."""
    known = {gpu.id: gpu for gpu in resources.candidate_gpus()}
    known = {asked.scenario.deployment.gpu.id: asked.scenario.deployment.gpu, **known}
    with st.container(border=True):
        left, right = st.columns((3, 1), gap="medium")
        chosen = left.multiselect(
            t("GPU types"), list(known), key="search_gpus", format_func=lambda code: known[code].name,
            placeholder=t("Every type"), persist_state="session",
        )  # fmt: skip
        most = right.number_input(
            t("Most GPUs"), 1, MOST_GPUS, 16, key="search_most", persist_state="session",
            help=t("Of the whole deployment."),
        )  # fmt: skip
        narrower = _pills(t("Formats beside today's"), _formats(asked), "search_formats")
        tried = _pills(t("Strategies to try both ways"), _strategies(asked), "search_strategies")
    gpus = tuple(known[code] for code in chosen) or tuple(known.values())
    space = _space(
        asked, usual_space(asked.scenario, gpus, hunting.formats(asked), most_gpus=int(most)), narrower, tried
    )
    return space, {"gpus": sorted(chosen), "most": int(most), "formats": sorted(narrower), "tried": sorted(tried)}


def _pills(label: str, names: Mapping[str, str], key: str) -> list[str]:
    """Several of some codes; what the scenario does not offer is dropped."""
    if not names:
        return []
    picked = st.pills(
        label, list(names), selection_mode="multi", key=key, format_func=lambda code: names.get(code, code),
        persist_state="session",
    )  # fmt: skip
    return [code for code in picked or [] if code in names]


def _formats(asked: Asked) -> dict[str, str]:
    settings = resolve(asked.scenario.deployment)
    narrower = (
        {"kv:fp8": t("KV cache in {dtype}", dtype="FP8")} if KV_BYTES[settings.kv_dtype] > KV_BYTES["fp8"] else {}
    )
    return narrower | {
        f"weights:{code}": t("Weights in {dtype}", dtype=code.upper()) for code in hunting.formats(asked)
    }


def _strategies(asked: Asked) -> dict[str, str]:
    """What can be tried on this scenario: the others need a figure that it does not state."""
    scenario = asked.scenario
    names = {"stages": t("Pipeline stages"), "budget": t("Token budgets")}
    if scenario.workload.prefix_hit_share:
        names["prefix"] = t("Prefix cache")
    if scenario.deployment.serving.tiers and scenario.workload.offload_hit_share:
        names["offload"] = t("KV offload")
    if scenario.deployment.serving.transfer_bytes_per_s:
        names["split"] = t("Split prefill")
    return names


def _space(asked: Asked, usual: Space, narrower: list[str], tried: list[str]) -> Space:
    """The usual choices, less what was not ticked."""
    weights = {code: model for code, model in (usual.weights or {}).items() if f"weights:{code}" in narrower}
    return replace(
        usual,
        weights=weights,
        kv_dtypes=usual.kv_dtypes if "kv:fp8" in narrower else (None,),
        pps=usual.pps if "stages" in tried else (1,),
        batched_tokens=usual.batched_tokens if "budget" in tried else (None,),
        prefix_caching=usual.prefix_caching if "prefix" in tried else (None,),
        servings=usual.servings if "offload" in tried else (asked.scenario.deployment.serving,),
        splits=usual.splits if "split" in tried else (False,),
    )


def _results(asked: Asked, result: SearchResult) -> None:
    slo = asked.scenario.slo
    today = _today(asked)
    st.markdown(f"**{parts.escape(about_search.sentence(result, today))}**")
    if result.rows:
        rows = result.rows[:SHOWN]
        hunting.table(
            [about_search.row(one, place) for place, one in enumerate(rows, 1)],
            [one.scenario for one in rows],
            "search_rows",
            HEIGHT if len(rows) > about_search.FEW else None,
        )
        st.download_button(
            t("All rows as CSV"), lambda: to_csv(*about_search.csv(result)), "deployments.csv", "text/csv",
            key="search_csv", on_click="ignore", icon=":material/download:",
        )  # fmt: skip
    if result.points:
        _pictures(result, today, slo)
    if result.ruled_out:
        parts.section(t("What was ruled out"), about_search.looked_at(result))
        parts.prose(about_search.ruled_out(result))
    parts.notes(result.notes)


def _pictures(result: SearchResult, today: Found | None, slo: Any) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        parts.section(t("Throughput against pace"), t("On the line nothing is better in both."))
        figure = charts.fast_front(result, today, slo, parts.tones(), about_search.label)
        parts.chart(figure, about_search.fast_alt(result), "search_fast")
    with right:
        parts.section(t("Cost against the tail"), about_search.cost_caption(result))
        figure = charts.cheap_front(result, today, slo, parts.tones(), about_search.label)
        parts.chart(figure, about_search.cheap_alt(result), "search_cheap")


def _today(asked: Asked) -> Found | None:
    """Today's scenario among the others, where its latency is known."""
    memory = resources.memory(asked)
    latency = resources.latency_or_reason(asked) if memory.fits else None
    return about_search.today(asked.scenario, latency)
