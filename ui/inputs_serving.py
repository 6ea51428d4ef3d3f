"""How requests are served, at the side: offload, speculation, split prefill, routing; and details of the engine."""

from __future__ import annotations

import streamlit as st

from calc.offload.links import LINKS, Link
from calc.units import GB, MILLI
from ui import fields, parts, state
from ui.fields_serving import OFF
from ui.text import t
from ui.widgets import choice, lines, number, share, word

TIERS = (OFF, "cpu", "disk", "remote")
METHODS = (OFF, "ngram", "suffix", "mtp", "eagle", "eagle3", "medusa", "draft_model")
"""As engines name them; another name that a case brings stays."""
BATCHINGS, PREEMPTIONS = ("continuous", "static"), ("recompute", "swap")
ROUTINGS = ("random", "round-robin", "least-loaded", "prefix-aware")
TIERS_EXAMPLE = "disk 4 GB/s 1 ms x8 25%"
PICKED_LINK = "tier_link"


def serving() -> None:
    """Strategies that change how requests run."""
    _offload()
    _speculation()
    _split()
    choice("routing", ROUTINGS)
    number("prefix_groups")
    choice("batching", BATCHINGS)
    if choice("preemption", PREEMPTIONS) == "swap":
        number("swap_bandwidth")


def _offload() -> None:
    if choice("tier_name", _with_current(TIERS, "tier_name")) == OFF:
        if state.get("further_tiers"):
            lines("further_tiers", TIERS_EXAMPLE)
            share("offload_hit")
        return
    links = {link.code: link for link in LINKS}
    names = {code: t(link.name) for code, link in links.items()}
    st.selectbox(
        t("Fill in a known link"), list(names), None, key=PICKED_LINK, format_func=lambda code: names.get(code, code),
        placeholder=t("none"), on_change=_fill_link,
    )  # fmt: skip
    for key in ("tier_bandwidth", "tier_latency", "tier_concurrency", "tier_capacity", "tier_share"):
        number(key)
    st.caption(parts.escape(_origin(list(LINKS))))
    share("offload_hit")
    lines("further_tiers", TIERS_EXAMPLE)


def _gpus() -> int:
    """GPUs over whose links one replica reads."""
    now = state.values()
    return int((now["tp"] or 1) * (now["pp"] or 1))


def _fill_link() -> None:
    link = next((link for link in LINKS if link.code == state.get(PICKED_LINK)), None)
    if link is None:
        return
    tier = link.as_tier(_gpus())
    state.put(
        tier_name=tier.name,
        tier_bandwidth=tier.bytes_per_s / GB,
        tier_latency=tier.latency_s / MILLI,
        tier_concurrency=tier.concurrency,
    )


def _origin(links: list[Link]) -> str:
    """Where the bandwidth is from: a known link's figure is an assumption until one's own is typed."""
    now = state.values()
    if now["tier_bandwidth"] is None:
        return t("Nothing is assumed: enter what one replica reads, or take a known link.")
    for link in links:
        tier = link.as_tier(_gpus())
        if (tier.name, tier.bytes_per_s / GB) == (now["tier_name"], now["tier_bandwidth"]):
            return t(
                "An assumption until you measure: {source}; checked {day}.", source=link.source, day=link.checked_on
            )
    return t("Your own figures.")


def _speculation() -> None:
    if choice("spec_method", _with_current(METHODS, "spec_method")) != OFF:
        number("spec_tokens")
        number("accepted")


def _with_current(options: tuple[str, ...], key: str) -> list[str]:
    """The options, and the name that a case brought."""
    now = state.get(key)
    return [*options, *([now] if isinstance(now, str) and now.strip() and now not in options else [])]


def _split() -> None:
    if number("prefill_replicas"):
        number("transfer_bandwidth")
        number("transfer_ms")


def engine_details() -> None:
    """What is rarely set, and what a log or a benchmark states."""
    number("block_size")
    for key in ("chunked_prefill", "async_scheduling", "hybrid_kv"):
        choice(key, list(fields.SWITCH), format_func=word)
    number("kv_tokens")
