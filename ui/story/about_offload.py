"""Offload in words: break-even, the path of a hit tier by tier, load, idle sessions, and what stored KV asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.latency import LatencyReport
from calc.offload.effect import Effect
from calc.offload.fetch import Curve, Fetch, Hit
from calc.offload.links import Link
from calc.workload import Closed, Workload
from ui import format as show
from ui.glossary import TERMS
from ui.text import t

Rows = Sequence[Mapping[str, str]]


def sentence(hit: Hit, fetches: Sequence[tuple[str, Fetch]]) -> str:
    """From which speed on fetching pays, and which tiers are that fast."""
    paying = [name for name, fetch in fetches if fetch.pays]
    needed = t(
        "Fetching {tokens:tok} pays above {needed:gbps} per replica.",
        tokens=hit.prefix_tokens,
        needed=hit.break_even_bytes_per_s,
    )
    if not paying:
        return needed + " " + t("No tier here is that fast.")
    return needed + " " + t("Fast enough: {names}.", names=t(", ").join(paying))


def formula(hit: Hit) -> str:
    """The break-even with its numbers."""
    return t(
        "break-even = {each} of KV per token · {speed:toks} of prefill = {needed:gbps}",
        each=show.kib(hit.bytes_per_token),
        speed=hit.prefill_tokens_per_s,
        needed=hit.break_even_bytes_per_s,
    )


def path_rows(fetches: Sequence[tuple[str, Fetch]]) -> Rows:
    """The path of a hit in each tier, and computing again."""
    hit = fetches[0][1].hit
    first = {
        t("Where"): t("compute again"),
        t("Look-up + transfer + rest"): "",
        t("Together"): show.ms(hit.recompute_s),
        t("Faster"): "",
    }
    return [first, *(_path_row(name, fetch) for name, fetch in fetches)]


def _path_row(name: str, fetch: Fetch) -> Mapping[str, str]:
    steps = (fetch.lookup_s, fetch.transfer_s, fetch.hit.rest_s)
    return {
        t("Where"): f"{name} · {show.gbps(fetch.tier.bytes_per_s)}",
        t("Look-up + transfer + rest"): " + ".join(show.ms(step) for step in steps),
        t("Together"): show.ms(fetch.total_s),
        t("Faster"): f"{show.decimal(fetch.speedup)}×",
    }


def partial_rows(names: Sequence[str], found: Sequence[tuple[float, Sequence[Fetch]]]) -> Rows:
    """Seconds to the end of prefill when only part of the prefix is found."""
    return [
        {
            t("Of the prefix found"): show.percent(share),
            **{name: show.ms(fetch.total_s) for name, fetch in zip(names, fetches, strict=True)},
        }
        for share, fetches in found
    ]


def length_rows(hits: Sequence[tuple[str, Hit]], fetch: Mapping[str, Fetch]) -> Rows:
    """The user's own prefix lengths."""
    return [
        {
            t("Prompt"): name,
            t("Prefix"): f"{show.tokens(hit.prefix_tokens)} · {show.mib(hit.moved_bytes)}",
            t("Again → fetched"): f"{show.ms(hit.recompute_s)} → {show.ms(fetch[name].total_s)}",
            t("Break-even"): show.gbps(hit.break_even_bytes_per_s),
        }
        for name, hit in hits
    ]


def curve_alt(curve: Curve, names: Sequence[str]) -> str:
    """The picture in words: its ends."""
    return t(
        "Time over prefix length, computed again and fetched from {names}: computing takes {first} at {low:tok} and "
        "{last} at {high:tok}; there break-even is {needed:gbps}.",
        names=t(", ").join(names),
        first=show.ms(curve.recompute_s[0]),
        last=show.ms(curve.recompute_s[-1]),
        low=curve.prefix_tokens[0],
        high=curve.prefix_tokens[-1],
        needed=curve.break_even_bytes_per_s[-1],
    )


def load_name(workload: Workload, effect: Effect) -> str:
    """Which load a row is about."""
    closed = isinstance(workload.arrivals, Closed)
    size = t("{number} in flight", number=show.decimal(effect.load)) if closed else show.rate(effect.load)
    return t("today: {load}", load=size) if effect.is_today else t("near the knee: {load}", load=size)


def effect_rows(workload: Workload, effects: Sequence[Effect]) -> Rows:
    """P50, P95 and P99 with and without, at each load."""
    rows = []
    for effect in effects:
        for metric in ("ttft", "e2e", "tpot"):
            for name, report in ((t("without"), effect.without), (t("with tier"), effect.with_tiers)):
                rows.append(_effect_row(load_name(workload, effect), metric, name, report))
    return rows


def _effect_row(load: str, metric: str, name: str, report: LatencyReport) -> Mapping[str, str]:
    stats = getattr(report, metric)
    shown = show.seconds if metric == "e2e" else show.ms
    values = {
        p: t("unstable") if report.saturated else shown(getattr(stats, f"{p.lower()}_s")) for p in ("P50", "P95", "P99")
    }
    return {t("Load"): load, t("Metric"): TERMS[metric].label, t("Tier"): name, **values}


def effect_sentence(effects: Sequence[Effect], metric_share: float) -> str:
    """What the tier does at the two loads, in one line."""
    told = []
    for effect in effects:
        before, after = effect.without.ttft.at(metric_share), effect.with_tiers.ttft.at(metric_share)
        where = t("today") if effect.is_today else t("near the knee")
        if effect.without.saturated or effect.with_tiers.saturated or not before or after is None:
            told.append(t("{where}: unstable", where=where))
        else:
            told.append(t("{where}: TTFT {change:pct}", where=where, change=after / before - 1))
    return "; ".join(told)


def idle_rows(context_tokens: int, moved_bytes: float, fetches: Sequence[tuple[str, float]], again_s: float) -> Rows:
    """How long a paused session waits for its cache."""
    first = {
        t("Session's cache"): t("compute again"),
        t("Size"): show.tokens(context_tokens),
        t("Ready after"): show.ms(again_s),
    }
    return [
        first,
        *(
            {t("Session's cache"): name, t("Size"): show.mib(moved_bytes), t("Ready after"): show.ms(seconds)}
            for name, seconds in fetches
        ),
    ]


def link_sources(links: Sequence[Link]) -> list[str]:
    """Where each link's speed comes from, with its date."""
    return [f"{t(link.name)}: {t(link.source)} ({link.checked_on})" for link in links]


def checklist() -> list[str]:
    """What KV outside the GPU asks for before it goes live: security, isolation, life cycle, operation."""
    return [
        t("KV can be turned back into prompt text: give it the class of the prompts it was made from."),
        t("Encrypt it on disk and on the wire; RDMA and NVMe-oF do not by themselves."),
        t("Put tenant, model, revision, template and adapter into the key; no look-up across tenants unless agreed."),
        t("Hit or miss shows in TTFT: salt keys per tenant where one must not learn what another asked."),
        t("Set a lifetime and a size limit; delete with the conversation, on request, and when a tenant leaves."),
        t("Model, tokenizer, dtype or parallel split changed: the old entries must not be found any more."),
        t("A miss, an error or a slow tier falls back to computing again; plan prefill capacity for that day."),
        t("Write who owns it, who may read it, and log reads that cross a tenant or a site."),
        t("Watch hits, bytes moved, queue on the link and evictions; alarm when a fetch takes longer than computing."),
    ]
