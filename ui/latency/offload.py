"""Tiers outside the GPU: fetching against computing again, alone and under load."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from calc.latency import LatencyReport
from calc.offload.effect import Effect, under_load
from calc.offload.fetch import Curve, Fetch, Offload, crossing_tokens, curve
from calc.offload.links import Link, gpus_sharing, links_of
from calc.serving import Tier
from calc.workload import MAX_TOKENS
from ui import charts, parts, resources
from ui.charts.offload import Line
from ui.resources import Asked
from ui.story import about_offload
from ui.text import t

DEFAULT_SHARE = 0.5
"""Of a prompt, taken as prefix where no hits are declared."""
PARTS = (0.25, 0.5, 0.75, 1.0)
CURVE_FLOOR_TOKENS = 16_384
"""The curve reaches at least so far, so that long prefixes are seen too."""


@dataclass(frozen=True, kw_only=True)
class _Places:
    """The scenario's own tiers if it has any, else what servers with this GPU can have."""

    tiers: tuple[Tier, ...]
    links: tuple[Link, ...]

    @property
    def names(self) -> list[str]:
        return [t(link.name) for link in self.links] if self.links else [tier.name for tier in self.tiers]


def _places(asked: Asked) -> _Places:
    deployment = asked.scenario.deployment
    if deployment.serving.tiers:
        return _Places(tiers=deployment.serving.tiers, links=())
    links = links_of(deployment.gpu)
    return _Places(tiers=tuple(link.as_tier(gpus_sharing(deployment)) for link in links), links=links)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _engine(key: str, _asked: Asked) -> Offload:  # noqa: ARG001 - the key
    return Offload.of(_asked.scenario.deployment, _asked.scenario.calibration)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _curve(key: str, rest: int, longest: int, _asked: Asked) -> tuple[Curve, tuple[int | None, ...]]:
    engine, tiers = _engine(key, _asked), _places(_asked).tiers
    crossings = tuple(crossing_tokens(engine, tier, rest_tokens=rest, longest_tokens=longest) for tier in tiers)
    return curve(engine, tiers, rest_tokens=rest, longest_tokens=longest), crossings


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _effects(key: str, tier: Tier, share: float, _asked: Asked) -> tuple[Effect, ...]:  # noqa: ARG001 - the key
    return under_load(_asked.scenario, (tier,), share)


def show(asked: Asked, latency: LatencyReport) -> None:  # noqa: ARG001 - same signature for all views
    """Break-even, the path of a hit, the user's own prefixes, the load, paused sessions, and what to see to."""
    places, load = _places(asked), asked.scenario.workload
    prompt = round(load.prompt_tokens.mean())
    share = load.prefix_hit_share + load.offload_hit_share or DEFAULT_SHARE
    prefix = _prefix(round(prompt * share))
    engine, rest = _engine(asked.key, asked), max(1, prompt - prefix)
    fetches = [(name, engine.fetch(prefix, rest, tier)) for name, tier in zip(places.names, places.tiers, strict=True)]
    st.markdown(f"**{parts.escape(about_offload.sentence(fetches[0][1].hit, fetches))}**")
    _picture(asked, places, prefix, rest)
    parts.prose(about_offload.path_rows(fetches))
    _own_lengths(asked, engine, places, share)
    _partial(engine, places, prefix, rest)
    _load(asked, places, share)
    _paused(asked, engine, places)
    parts.section(t("Before KV leaves the GPU"))
    parts.bullets(about_offload.checklist())
    with st.expander(t("Break-even and where the speeds come from"), icon=":material/source:"):
        st.markdown(parts.escape(about_offload.formula(fetches[0][1].hit)))
        parts.remarks(about_offload.link_sources(places.links))


def _prefix(default: int) -> int:
    given = st.number_input(
        t("Prefix (tokens)"), 1, MAX_TOKENS, None, 512, key="offload_prefix", persist_state="session", format="%d",
        placeholder=t("yours: {length:tok}", length=max(1, default)),
    )  # fmt: skip
    return max(1, default) if given is None else int(given)


def _picture(asked: Asked, places: _Places, prefix: int, rest: int) -> None:
    limit = asked.scenario.deployment.max_model_len_tokens or asked.scenario.deployment.model.max_position_tokens
    drawn, crossings = _curve(asked.key, rest, max(limit, CURVE_FLOOR_TOKENS), asked)
    lines = [Line(name=name, crossing_tokens=at) for name, at in zip(places.names, crossings, strict=True)]
    figure = charts.fetch_curve(drawn, lines, prefix, parts.tones())
    parts.chart(figure, about_offload.curve_alt(drawn, places.names), "offload_curve")


def _own_lengths(asked: Asked, engine: Offload, places: _Places, share: float) -> None:
    parts.section(t("Your own prompts"), t("{share:pct} of each found in {tier}.", share=share, tier=places.names[0]))
    hits, fetched = [], {}
    for name, quantile in (("P50", 0.5), ("P95", 0.95), ("P99", 0.99)):
        prompt = max(2, round(asked.scenario.workload.prompt_tokens.quantile(quantile)))
        found = max(1, min(prompt - 1, round(prompt * share)))
        fetched[name] = engine.fetch(found, prompt - found, places.tiers[0])
        hits.append((name, fetched[name].hit))
    parts.prose(about_offload.length_rows(hits, fetched))


def _partial(engine: Offload, places: _Places, prefix: int, rest: int) -> None:
    parts.section(t("When only part is found"), t("What follows the part found is computed."))
    found: list[tuple[float, list[Fetch]]] = [
        (part, [engine.partial(prefix, rest, tier, part) for tier in places.tiers]) for part in PARTS
    ]
    parts.table(about_offload.partial_rows(places.names, found), key="offload_partial")


def _load(asked: Asked, places: _Places, share: float) -> None:
    parts.section(t("Under load"), t("The same requests simulated with and without a tier, today and near the knee."))
    if not st.toggle(t("Simulate"), key="offload_simulate", persist_state="session"):
        return
    load, names = asked.scenario.workload, dict(enumerate(places.names))
    left, right = st.columns(2)
    with left:
        codes = {str(place): name for place, name in names.items()}
        tier = places.tiers[int(parts.pick(t("Tier"), codes, "offload_tier")) % len(places.tiers)]
    with right:
        default = round(100 * (load.offload_hit_share or min(share, 1 - load.prefix_hit_share)))
        most = round(100 * (1 - load.prefix_hit_share))
        percent = st.number_input(
            t("Prompt tokens found there (%)"), 0, max(1, most), min(default, most), 5, key="offload_share",
            persist_state="session", format="%d",
        )  # fmt: skip
    effects = _effects(asked.key, tier, min(most, percent or 0) / 100, asked)
    st.markdown(f"**{parts.escape(about_offload.effect_sentence(effects, asked.scenario.slo.percentile_share))}**")
    parts.table(about_offload.effect_rows(load, effects), key="offload_effects")


def _paused(asked: Asked, engine: Offload, places: _Places) -> None:
    load, deployment = asked.scenario.workload, asked.scenario.deployment
    limit = deployment.max_model_len_tokens or deployment.model.max_position_tokens
    whole = load.idle_context_tokens or load.prompt_tokens.mean() + load.output_tokens.mean()
    context = max(1, min(limit, round(whole)))
    moved = engine.moved_bytes(context)
    back = [
        (name, tier.latency_s + moved / tier.bytes_per_s) for name, tier in zip(places.names, places.tiers, strict=True)
    ]
    parts.section(t("A paused session comes back"))
    parts.prose(about_offload.idle_rows(context, moved, back, engine.prefill_s(context)))
