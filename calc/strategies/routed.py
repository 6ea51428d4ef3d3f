"""Model routing: a share of the requests goes to a small model, so there are two scenarios, sized and added up."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from calc.deployment import Deployment
from calc.engine import resolve
from calc.judge.lever_changes import PLANNED_SHARE, estimated_pool, whole_splits
from calc.latency import load_of, with_load
from calc.memory import estimate_memory
from calc.messages import Message, msg
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.strategies.figures import Figures, figures


@dataclass(frozen=True, kw_only=True)
class Routed:
    """All requests on the large model, beside two services. Latency of both is the worse of the two."""

    all_on_large: Figures
    both: Figures
    note: Message


def route_models(scenario: Scenario, small: ModelSpec, share: float) -> Routed | Message:
    """``share`` of the load on ``small``, on as few GPUs of the same kind as hold it; lengths stay the same."""
    if not 0 < share < 1:
        return msg("Between none and all of the requests must go to the small model.")
    placed = _placed(scenario.deployment, small)
    if placed is None:
        return msg("{model} does not fit on {gpu} in any split.", model=small.name, gpu=scenario.deployment.gpu.name)
    load = load_of(scenario.workload)
    whole = _sized(scenario, scenario.deployment, load)
    large = _sized(scenario, scenario.deployment, load * (1 - share))
    little = _sized(scenario, placed, load * share)
    if whole is None or large is None or little is None:
        return msg("The SLO is missed at any load by one of the two: routing alone does not help.")
    return Routed(
        all_on_large=whole,
        both=_added(large, little, share),
        note=msg(
            "Assumed: {share:pct} of requests go to {model}. GPUs for the load with headroom: {before:count} become "
            "{large:count} + {small:count}.",
            share=share,
            model=small.name,
            before=whole.gpu_count,
            large=large.gpu_count,
            small=little.gpu_count,
        ),
    )


def _placed(deployment: Deployment, small: ModelSpec) -> Deployment | None:
    """The small model on one replica of the fewest GPUs."""
    length = min(resolve(deployment).max_model_len_tokens, small.max_position_tokens)
    bare = replace(
        estimated_pool(deployment),
        model=small,
        tp=1,
        pp=1,
        dp=1,
        ep=False,
        replicas=1,
        kv_dtype=None,
        weight_dtype=None,
        max_model_len_tokens=length,
        measured_memory=None,
        spec_method=None,
        spec_tokens=0,
    )
    for tp in whole_splits(bare):
        candidate = replace(bare, tp=tp)
        if estimate_memory(candidate).fits:
            return candidate
    return None


def _sized(scenario: Scenario, deployment: Deployment, load: float) -> Figures | None:
    """As many replicas as carry ``load`` with headroom; ``None`` when none does."""
    part = replace(scenario, workload=with_load(scenario.workload, load))
    one = figures(replace(part, deployment=replace(deployment, replicas=1)))
    if not one.max_load:
        return None
    replicas = max(1, math.ceil(load / (PLANNED_SHARE * one.max_load)))
    return figures(replace(part, deployment=replace(deployment, replicas=replicas)))


def _added(large: Figures, small: Figures, share: float) -> Figures:
    def worse(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else max(one, other)

    def mixed(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else one * (1 - share) + other * share

    def least(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else min(one / (1 - share), other / share)

    return replace(
        large,
        gpu_count=large.gpu_count + small.gpu_count,
        held_requests=(large.held_requests or 0.0) + (small.held_requests or 0.0),
        ttft_s=worse(large.ttft_s, small.ttft_s),
        itl_s=worse(large.itl_s, small.itl_s),
        e2e_s=worse(large.e2e_s, small.e2e_s),
        tpot_s=mixed(large.tpot_s, small.tpot_s),
        max_load=least(large.max_load, small.max_load),
        max_rate_per_s=least(large.max_rate_per_s, small.max_rate_per_s),
        cost_per_million=mixed(large.cost_per_million, small.cost_per_million),
    )
