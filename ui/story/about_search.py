"""A search in words: its size and progress, one row a deployment, what was ruled out, and the pictures' texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calc.cost import cost_of
from calc.engine import resolve
from calc.latency import LatencyReport
from calc.messages import Message
from calc.scenario import Scenario
from calc.search import Found, Progress, SearchResult, Space
from calc.search.result import REASONS
from calc.search.space import MAX_COMBINATIONS
from data.case import write_case
from ui import format as show
from ui.story import about_latency
from ui.story.words import Figure
from ui.text import t

FEW = 10
"""Rows shown without scrolling."""
UNKNOWN = "–"


def size(space: Space) -> str:
    """How much there is to look at."""
    if space.size > MAX_COMBINATIONS:
        return t(
            "{number:count} combinations, of which the {limit:count} with the fewest GPUs per replica are looked at.",
            number=space.size,
            limit=MAX_COMBINATIONS,
        )
    return t("{number:count} combinations, each with as many replicas as the load needs.", number=space.size)


def progress(now: Progress | None, *, cancelled: bool) -> tuple[float, str]:
    """Share and words of a search at work."""
    if cancelled:
        return (now.share if now else 0.0), t("Stopping…")
    if now is None:
        return 0.0, t("Waiting for another search on this server…")
    return min(now.share, 1.0), t(
        "{simulated:count} deployments of {number:count} combinations simulated, {met:count} meet the SLO",
        simulated=now.simulated,
        number=now.combinations,
        met=now.met,
    )


def name(scenario: Scenario) -> str:
    """A deployment in few words: GPUs, split, formats and strategies that are not the usual."""
    deployment = scenario.deployment
    parts = [f"{deployment.gpu_count} × {deployment.gpu.name}", f"TP {deployment.tp}"]
    parts += [f"PP {deployment.pp}"] if deployment.pp > 1 else []
    parts += [f"DP {deployment.dp}"] if deployment.dp > 1 else []
    parts += [t("{number:count} replicas", number=deployment.replicas)] if deployment.replicas > 1 else []
    if deployment.serving.prefill_replicas:
        parts.append(t("{number:count} only prefill", number=deployment.serving.prefill_replicas))
    return ", ".join([*parts, *_formats(scenario)])


def _formats(scenario: Scenario) -> list[str]:
    deployment = scenario.deployment
    found = []
    if deployment.weight_dtype:
        found.append(t("weights {dtype}", dtype=deployment.weight_dtype))
    if deployment.kv_dtype:
        found.append(f"KV {deployment.kv_dtype}")
    if deployment.prefix_caching is not None:
        found.append(t("prefix cache on") if deployment.prefix_caching else t("prefix cache off"))
    if deployment.max_num_batched_tokens:
        found.append(t("budget {tokens:tok}", tokens=deployment.max_num_batched_tokens))
    if deployment.serving.tiers:
        found.append(t("offload to {tiers}", tiers=", ".join(tier.name for tier in deployment.serving.tiers)))
    return found


def today_figures(scenario: Scenario, latency: LatencyReport) -> list[Figure]:
    """What today's scenario costs and gives, in the measures of the search."""
    one = today(scenario, latency)
    assert one is not None  # a report was given
    slo, mark = scenario.slo, show.percentile_name(scenario.slo.percentile_share)
    return [
        Figure(
            label=t("Cost per hour"),
            value=show.money(one.cost.total_per_hour if one.cost else None, scenario.prices.currency),
            provenance="estimated" if one.cost else "missing",
        ),
        about_latency.percentile("e2e", latency, slo),
        Figure(
            label=t("Tokens/s per user {mark}", mark=mark),
            value=show.decimal(one.interactivity),
            provenance="simulated",
        ),
        Figure(label=t("Output tokens/s per GPU"), value=show.decimal(one.per_gpu), provenance="simulated"),
    ]


def _simulated(title: str, value: float | None) -> Figure:
    return Figure(label=title, value=show.decimal(value), provenance="simulated")


def price(one: Found) -> str:
    """What an hour costs, or that nobody said."""
    return show.money(one.cost.total_per_hour, one.cost.currency) if one.cost else t("no price")


def label(one: Found) -> str:
    """A point of a picture when it is pointed at."""
    return f"{name(one.scenario)}<br>{price(one)}"


def sentence(result: SearchResult, today: Found | None) -> str:
    """The answer: the cheapest deployment, beside today's."""
    if not result.rows:
        return t("No deployment looked at meets the SLO: allow more GPUs, more formats or other types.")
    best = result.rows[0]
    told = {"what": name(best.scenario), "price": price(best)}
    if best.cost is None:
        first = t("Fewest GPUs that meet the SLO: {what} ({price}).", **told)
    else:
        first = t("Cheapest that meets the SLO: {what}, {price} an hour.", **told)
    if today is None or today.cost is None:
        return first
    amount = price(today)
    if today.meets:
        return f"{first} " + t("Today's meets it too, for {price}.", price=amount)
    return f"{first} " + t("Today's misses it, for {price}.", price=amount)


def row(one: Found, place: int) -> Mapping[str, str]:
    """One row of the table; its first cell is the button."""
    share, latency = one.scenario.slo.percentile_share, one.latency
    mark = show.percentile_name(share)
    cost = one.cost
    return {
        " ": f"{place} · {t('Use this')}",
        t("Deployment"): name(one.scenario),
        t("Per hour"): price(one),
        t("Per million output tokens"): (
            show.money(cost.per_million_output_tokens, cost.currency) if cost else t("no price")
        ),
        f"TTFT {mark}": show.ms(latency.ttft.at(share)),
        f"ITL {mark}": show.ms(latency.itl.at(share)),
        f"E2E {mark}": show.seconds(latency.e2e.at(share)),
        "E2E P99": show.seconds(latency.e2e.p99_s),
        t("Headroom"): show.rate(one.headroom_per_s) if one.headroom_per_s is not None else UNKNOWN,
        t("Tokens/s per GPU"): show.decimal(one.per_gpu),
        t("Tokens/s per user"): show.decimal(one.interactivity),
        t("What it may do to answers"): " ".join(t(caution) for caution in one.cautions) or UNKNOWN,
    }


def csv(result: SearchResult) -> tuple[list[str], list[list[Any]]]:
    """Every kept row with plain numbers, units in the heads."""
    heads = [
        "rank", "gpu", "gpus", "tp", "pp", "dp", "replicas", "prefill_replicas", "kv_dtype", "weight_dtype",
        "prefix_caching", "max_num_batched_tokens", "cost_per_hour", "currency", "cost_per_million_output_tokens",
        "ttft_p50_s", "ttft_p95_s", "ttft_p99_s", "itl_p95_s", "e2e_p95_s", "e2e_p99_s", "headroom_per_s",
        "output_tokens_per_s_per_gpu", "tokens_per_s_per_user", "max_rate_per_s", "cautions",
    ]  # fmt: skip
    return heads, [_csv_row(place, one) for place, one in enumerate(result.rows, 1)]


def _csv_row(place: int, one: Found) -> list[Any]:
    deployment, latency, cost = one.scenario.deployment, one.latency, one.cost
    settings = resolve(deployment)
    return [
        place, deployment.gpu.name, one.gpus, deployment.tp, deployment.pp, deployment.dp, deployment.replicas,
        deployment.serving.prefill_replicas, settings.kv_dtype, deployment.model.storage.code,
        settings.prefix_caching, settings.max_num_batched_tokens,
        cost.total_per_hour if cost else None, cost.currency if cost else None,
        cost.per_million_output_tokens if cost else None,
        latency.ttft.p50_s, latency.ttft.p95_s, latency.ttft.p99_s, latency.itl.p95_s, latency.e2e.p95_s,
        latency.e2e.p99_s, one.headroom_per_s, one.per_gpu, one.interactivity, latency.max_rate_per_s,
        " ".join(t(caution) for caution in one.cautions),
    ]  # fmt: skip


def looked_at(result: SearchResult) -> str:
    """How much was looked at."""
    return t(
        "{combinations:count} combinations looked at, {simulated:count} deployments simulated, {feasible:count} meet "
        "the SLO.",
        combinations=result.combinations,
        simulated=result.simulated,
        feasible=result.feasible,
    )


def ruled_out(result: SearchResult) -> list[Mapping[str, str]]:
    """Counts per reason, with one example each."""
    return [
        {
            t("Combinations"): show.count(out.count),
            t("Why not"): t(REASONS[out.reason]),
            t("For example"): t(out.example),
        }
        for out in result.ruled_out
    ]


def today(scenario: Scenario, latency: LatencyReport | Message | None) -> Found | None:
    """The scenario itself, as a search would show it."""
    if not isinstance(latency, LatencyReport):
        return None
    return Found(
        scenario=scenario,
        latency=latency,
        cost=cost_of(scenario, latency),
        meets=not latency.saturated and latency.slo_met is not False,
    )


def case_of(scenario: Scenario) -> dict[str, Any]:
    """The row as a case, to be loaded."""
    return write_case(scenario)


def cost_caption(result: SearchResult) -> str:
    """What the picture of cost shows, or why it is empty."""
    if not result.cheap_front:
        return t("No price is known for what was found: store prices on the Catalogue page.")
    return t("Only what meets the SLO and has a price.")


def fast_alt(result: SearchResult) -> str:
    """The picture of throughput and pace in words."""
    ends = _ends(result.fast_front)
    return t("Output tokens per second and GPU over tokens per second and user; front from {ends}.", ends=ends)


def cheap_alt(result: SearchResult) -> str:
    """The picture of cost and tail in words."""
    return t("E2E P99 over cost per hour; front from {ends}.", ends=_ends(result.cheap_front))


def _ends(front: Sequence[Found]) -> str:
    if not front:
        return UNKNOWN
    return t("{first} to {last}", first=name(front[0].scenario), last=name(front[-1].scenario))
