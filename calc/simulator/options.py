"""How a deployment serves beyond plain replicas, as rules of the simulator, and what of it cannot be simulated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from calc.deployment import Deployment
from calc.errors import ImpossibleDeployment
from calc.messages import Message, msg
from calc.serving import Serving, Tier
from calc.simulator.arrivals import Speculation
from calc.simulator.contract import ClassRule, FetchTier, SchedulerRules
from calc.simulator.draws import Drawn, draw_fetches
from calc.simulator.stability import Demand
from calc.workload import IntArray, Workload

MAX_CLASSES = 64
"""Kinds of requests told apart in one simulation."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Of one scheduler (DP rank)."""

    classes: tuple[ClassRule, ...] = ()
    tiers: tuple[Tier, ...] = ()
    fetch_tiers: tuple[FetchTier, ...] = ()
    swap_block_s: float | None = None
    reserved_tokens: int | None = None
    speculation: Speculation | None = None
    notes: tuple[Message, ...] = ()

    @property
    def verified_tokens(self) -> int:
        """Tokens each sequence puts into a step."""
        return 1 + (self.speculation.drafted_tokens if self.speculation else 0)


def options_of(
    deployment: Deployment,
    workload: Workload,
    *,
    kv_bytes_per_token: float,
    block_tokens: int,
    longest_output: int,
    prefix_caching: bool,
) -> Options:
    """``kv_bytes_per_token`` of one TP rank, all layers; links and tiers serve all ranks of a replica together.

    ``longest_output`` is what static batches reserve: the longest output their users may ask for.
    """
    serving = deployment.serving
    bytes_per_token = kv_bytes_per_token * deployment.tp * deployment.dp
    static = serving.batching == "static"
    fetches = workload.offload_hit_share > 0 and bool(serving.tiers) and prefix_caching and not static
    tiers = serving.tiers if fetches else ()
    swaps = serving.preemption == "swap" and serving.swap_bytes_per_s is not None and not static
    return Options(
        classes=_classes(workload),
        tiers=tiers,
        fetch_tiers=tuple(_fetch_tier(tier, bytes_per_token) for tier in tiers),
        swap_block_s=block_tokens * bytes_per_token / (serving.swap_bytes_per_s or math.inf) if swaps else None,
        reserved_tokens=longest_output if static else None,
        speculation=_speculation(deployment),
        notes=_notes(deployment, workload, fetches=fetches, static=static),
    )


def with_options(rules: SchedulerRules, options: Options) -> SchedulerRules:
    """The scheduler's rules with what the options add to them."""
    return replace(
        rules,
        classes=options.classes,
        tiers=options.fetch_tiers,
        swap_block_s=options.swap_block_s,
        reserved_tokens=options.reserved_tokens,
        verified_tokens=options.verified_tokens,
    )


def demand_with(demand: Demand, drawn: Drawn, workload: Workload, options: Options, seed: int) -> Demand:
    """The mean demand where part of the prompts is fetched and steps give more than one token."""
    if options.tiers:
        tokens, tier = draw_fetches(workload, drawn, options.tiers, seed)
        demand = Demand.of(drawn.prompt, drawn.output, drawn.cached + tokens)
        demand = replace(demand, fetch_s=_busiest_s(options.fetch_tiers, tokens, tier))
    if options.speculation:
        return replace(
            demand,
            verified=float(options.verified_tokens),
            gained=1 + options.speculation.accepted_tokens,
        )
    return demand


def _busiest_s(tiers: tuple[FetchTier, ...], tokens: IntArray, tier: IntArray) -> float:
    """Mean seconds a request takes of the busiest tier: transfers share its bandwidth, latencies its places."""
    shares = []
    for place, one in enumerate(tiers):
        here = (tier == place) & (tokens > 0)
        shares.append(float((here * (tokens * one.token_s + one.latency_s / one.concurrency)).mean()))
    return max(shares)


def _classes(workload: Workload) -> tuple[ClassRule, ...]:
    """Rules of the classes; classes that differ only in what they send need none of their own."""
    if len(workload.classes) > MAX_CLASSES:
        raise ImpossibleDeployment(
            msg("at most {limit} kinds of requests are told apart: merge those that are alike.", limit=MAX_CLASSES)
        )
    rules = tuple(ClassRule(priority=one.priority, max_running=one.max_running) for one in workload.classes)
    return rules if any(rule.max_running or rule.priority != rules[0].priority for rule in rules) else ()


def _fetch_tier(tier: Tier, bytes_per_token: float) -> FetchTier:
    return FetchTier(token_s=bytes_per_token / tier.bytes_per_s, latency_s=tier.latency_s, concurrency=tier.concurrency)


def _speculation(deployment: Deployment) -> Speculation | None:
    accepted = deployment.serving.accepted_tokens
    if accepted is None or deployment.spec_tokens < 1:
        return None
    return Speculation(
        drafted_tokens=deployment.spec_tokens, accepted_tokens=min(accepted, float(deployment.spec_tokens))
    )


def _notes(deployment: Deployment, workload: Workload, *, fetches: bool, static: bool) -> tuple[Message, ...]:
    found: list[Message] = []
    serving: Serving = deployment.serving
    if deployment.spec_tokens and serving.accepted_tokens is None:
        found.append(
            msg(
                "Speculative decoding is left out of latency: the tokens accepted per step are not known. Measure them "
                "(vLLM logs the mean acceptance length) and enter them."
            )
        )
    if serving.accepted_tokens is not None and deployment.spec_tokens < 1:
        found.append(msg("Accepted draft tokens are given but none are drafted: speculation is not simulated."))
    elif serving.accepted_tokens is not None and serving.accepted_tokens > deployment.spec_tokens:
        found.append(
            msg("No more than the {drafted} drafted tokens can be accepted per step.", drafted=deployment.spec_tokens)
        )
    if workload.offload_hit_share > 0 and not fetches:
        found.append(_not_fetched(serving, static=static))
    if fetches and sum(tier.hit_share for tier in serving.tiers) < 1:
        found.append(
            msg(
                "Tiers hold {share:pct} of the prompt tokens that could be fetched; the rest is computed again.",
                share=sum(tier.hit_share for tier in serving.tiers),
            )
        )
    return tuple(found)


def _not_fetched(serving: Serving, *, static: bool) -> Message:
    if static:
        return msg("Static batches fetch nothing: the offload hits of the load are computed again.")
    if not serving.tiers:
        return msg("No tier outside the GPU is set up: the offload hits of the load are computed again.")
    return msg("Prefix caching is off, so nothing is fetched: the offload hits of the load are computed again.")
