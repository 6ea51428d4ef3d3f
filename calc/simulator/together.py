"""The schedulers of a deployment that must be simulated together, and the pools of split prefill."""

from __future__ import annotations

from dataclasses import replace

from calc.deployment import Deployment
from calc.messages import Message, msg
from calc.simulator.contract import SchedulerRules
from calc.simulator.draws import Drawn
from calc.simulator.fleet import Fleet
from calc.simulator.groups import expected_hits
from calc.simulator.stability import Demand, Limits, balance_of, stability_limits
from calc.step.roofline import StepModel
from calc.workload import Workload


def fleet_of(deployment: Deployment, model: StepModel) -> Fleet | None:
    """Where routing or split prefill ties schedulers together; ``None`` = one stands for all, with its even share.

    Under random routing every replica of a load is like every other, so that one is enough.
    """
    serving, schedulers = deployment.serving, deployment.replicas * deployment.dp
    split = serving.prefill_replicas > 0
    if not split and (schedulers == 1 or serving.routing == "random"):
        return None
    bytes_per_token = model.kv_bytes_per_token * deployment.tp * deployment.dp
    return Fleet(
        schedulers=schedulers,
        routing=serving.routing,
        prefill_schedulers=serving.prefill_replicas * deployment.dp,
        handover_s=serving.transfer_s,
        token_move_s=bytes_per_token / serving.transfer_bytes_per_s if serving.transfer_bytes_per_s else 0.0,
    )


def split_notes(fleet: Fleet | None, rules: SchedulerRules, workload: Workload) -> tuple[Message, ...]:
    """What split prefill leaves out."""
    notes = []
    if fleet is not None and fleet.prefill_schedulers:
        if workload.clients.patience_s is not None:
            notes.append(msg("Split prefill is simulated with clients that wait: those who give up are left out."))
        if rules.reserved_tokens is not None:
            notes.append(msg("Static batches do not go with split prefill: both sides batch continuously."))
    return tuple(notes)


def with_groups(drawn: Drawn, demand: Demand, workload: Workload, fleet: Fleet | None, pool_tokens: float) -> Demand:
    """The mean demand where a cache of this size decides how many prefixes are found."""
    groups = workload.prefix_groups
    if groups is None or demand.prompt == demand.fresh:
        return demand
    sticky = fleet is not None and fleet.routing == "prefix-aware"
    entered = (fleet.prefill_schedulers or fleet.schedulers) if fleet is not None else 1
    shared = demand.prompt - demand.fresh
    here = max(1.0, groups / entered) if sticky else float(groups)
    kept = expected_hits(here, shared, demand.fresh + demand.output, pool_tokens)
    cached = (drawn.cached * kept).astype(drawn.cached.dtype)
    return Demand.of(drawn.prompt, drawn.output, cached)


def split_limits(
    model: StepModel, fleet: Fleet, drawn: Drawn, cached_share: float, decode: tuple[Demand, Limits], pool_tokens: float
) -> Limits:
    """Per decode scheduler: the lower of what both pools and the links carry."""
    demand, answers = decode
    ratio = fleet.prefill_schedulers / fleet.schedulers
    prompts = Demand.of(drawn.prompt, drawn.output * 0 + 1, (drawn.cached * cached_share).astype(drawn.cached.dtype))
    prefills = stability_limits(model, prompts, pool_tokens)
    link_s = fleet.token_move_s * demand.prompt
    links = ratio / link_s if link_s > 0 else float("inf")
    prefill_rate = prefills.max_rate_per_s * ratio
    best = min(answers.max_rate_per_s, prefill_rate, links)
    if best == answers.max_rate_per_s:
        return replace(answers, pool="decode")
    batch = balance_of(model, demand, answers).batch_at(best)
    return Limits(
        compute_per_s=min(answers.compute_per_s, prefills.compute_per_s * ratio),
        memory_per_s=min(answers.memory_per_s, prefills.memory_per_s * ratio),
        sequences_per_s=min(answers.sequences_per_s, prefills.sequences_per_s * ratio),
        fetch_per_s=min(answers.fetch_per_s, links),
        max_rate_per_s=best,
        binds=prefills.binds if best == prefill_rate else "communication",
        max_batch=batch + prefills.max_batch * ratio,
        pool="prefill",
    )
