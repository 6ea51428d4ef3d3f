"""A measured start in place of the estimate: its parts, the pool counted from it, and what is said about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calc.cache.kv import BlockPlan
from calc.deployment import Deployment
from calc.engine import FractionOf, Settings, TokensMeaning, resolve
from calc.errors import ImpossibleDeployment
from calc.messages import Message, msg
from calc.room.budget import Stage, covered_runtime_bytes, plan_stages
from calc.room.runtime import Runtime
from calc.startup.match import differences, differs_in_settings_only, is_similar, listed, logged_gpu, started_as
from calc.startup.measured import MeasuredMemory
from calc.units import GIB

CLOSE_FACTOR = 3
"""What a log leaves for parts it does not name, against their estimate: beyond it something else is missing too."""
MEASURED, ESTIMATED = "measured", "estimated"


@dataclass(frozen=True, kw_only=True)
class Applied:
    """Stages and deployment as the pool is to be counted, and where each part comes from."""

    deployment: Deployment
    stages: list[Stage]
    log: MeasuredMemory | None = None
    """``None`` = the estimate stands."""
    provenance: Mapping[str, str]
    notes: tuple[Message, ...] = ()


def use_log(deployment: Deployment, settings: Settings, plan: BlockPlan, stages: list[Stage]) -> Applied:
    """The start the deployment carries, put in place of the estimate where it matches."""
    log = deployment.measured_memory
    if log is None:
        return Applied(deployment=deployment, stages=stages, provenance={})
    away = tuple(differences(log, deployment, settings))
    if away or not log.used:
        return Applied(deployment=deployment, stages=stages, provenance={}, notes=_not_used(log, deployment, away))
    found = _pool(log, deployment, settings, plan)
    stages = [_with_log(stage, log, deployment, found.room_bytes) for stage in stages]
    return Applied(
        deployment=replace(_with_engine(log, deployment), gpu=logged_gpu(log, deployment), **found.settings),
        stages=stages,
        log=log,
        provenance=_provenance(log, deployment, found),
        notes=_used(log),
    )


def _not_used(log: MeasuredMemory, deployment: Deployment, away: tuple[Message, ...]) -> tuple[Message, ...]:
    if not is_similar(log, deployment):
        return ()
    if not away:
        return (msg("The start-up log of {date} measured this very start; you asked for the estimate.", date=log.date),)
    off = _off_bytes(log, deployment)
    there = listed(away)
    if off is None:
        return (
            msg("A start-up log of {date} shows a similar start with {there}: the estimate is used.", date=log.date,
                there=there),
        )  # fmt: skip
    text = (
        msg(
            "A start-up log of {date} shows a similar start with {there}: the estimate is used. Of that start it "
            "gives a KV pool {off:.2f} GiB too large.",
            date=log.date, there=there, off=off / GIB,
        )
        if off >= 0
        else msg(
            "A start-up log of {date} shows a similar start with {there}: the estimate is used. Of that start it "
            "gives a KV pool {off:.2f} GiB too small.",
            date=log.date, there=there, off=-off / GIB,
        )
    )  # fmt: skip
    return (text,)


def _off_bytes(log: MeasuredMemory, deployment: Deployment) -> int | None:
    """How much larger the estimated pool of the log's own start is than the logged one."""
    if log.kv_pool_bytes is None or not differs_in_settings_only(log, deployment):
        return None
    try:
        started = started_as(log, deployment)
        rooms = [stage.room_bytes for stage in plan_stages(started, resolve(started))]
    except ImpossibleDeployment:
        return None
    return min(rooms) - log.kv_pool_bytes


@dataclass(frozen=True, kw_only=True)
class _Pool:
    room_bytes: int | None
    settings: Mapping[str, Any]
    """Of the deployment the pool is counted for."""
    known: bool


def _pool(log: MeasuredMemory, deployment: Deployment, settings: Settings, plan: BlockPlan) -> _Pool:
    """Pool bytes and tokens of the log; a pool the user gave stays the user's."""
    if deployment.kv_pool_bytes_per_gpu is not None or deployment.kv_tokens is not None:
        return _Pool(room_bytes=deployment.kv_pool_bytes_per_gpu, settings={}, known=False)
    tokens = _tokens(log, deployment, settings)
    if tokens is not None:
        room = log.kv_pool_bytes
        if room is None:
            blocks = tokens / deployment.dp / settings.block_size_tokens * len(plan.groups)
            room = math.ceil(blocks * max(plan.stage_bytes_per_block))
        return _Pool(room_bytes=room, settings={"kv_tokens": tokens}, known=True)
    if log.kv_pool_bytes is None:
        return _Pool(room_bytes=None, settings={}, known=False)
    given = {"kv_pool_bytes_per_gpu": log.kv_pool_bytes}
    return _Pool(room_bytes=log.kv_pool_bytes, settings=given, known=True)


def _tokens(log: MeasuredMemory, deployment: Deployment, settings: Settings) -> int | None:
    """KV tokens of one replica at the asked length; ``None`` where they must be counted anew from the bytes."""
    if log.num_blocks is not None:
        return log.num_blocks * (log.block_size_tokens or settings.block_size_tokens) * deployment.dp
    counts_length = deployment.engine.tokens_meaning is TokensMeaning.CONCURRENCY_TIMES_LENGTH
    other_length = log.max_model_len_tokens not in (None, settings.max_model_len_tokens)
    if log.kv_tokens is None or (counts_length and other_length and log.kv_pool_bytes is not None):
        return None
    return log.kv_tokens * deployment.dp


def _with_log(stage: Stage, log: MeasuredMemory, deployment: Deployment, room_bytes: int | None) -> Stage:
    weights = stage.weights_bytes if log.weights_bytes is None else log.weights_bytes
    runtime = _runtime(stage.runtime, log, deployment)
    covered = weights + covered_runtime_bytes(_with_engine(log, deployment), runtime)
    total = logged_gpu(log, deployment).memory_bytes
    of_total = deployment.engine.fraction_of is FractionOf.TOTAL
    fraction = resolve(deployment).memory_fraction
    budget = int(total * fraction) if of_total else stage.budget_bytes
    if room_bytes is None:
        return Stage(weights_bytes=weights, runtime=runtime, budget_bytes=budget, room_bytes=budget - covered)
    if not of_total:
        return Stage(weights_bytes=weights, runtime=runtime, budget_bytes=covered + room_bytes, room_bytes=room_bytes)
    runtime = _closed(runtime, log, deployment, budget - weights - room_bytes)
    return Stage(weights_bytes=weights, runtime=runtime, budget_bytes=budget, room_bytes=room_bytes)


def _runtime(estimate: Runtime, log: MeasuredMemory, deployment: Deployment) -> Runtime:
    in_budget = _with_engine(log, deployment).engine.graphs_in_budget
    graphs = log.graph_reserved_bytes if in_budget and log.graph_reserved_bytes is not None else log.graph_bytes
    return Runtime(
        activation_bytes=estimate.activation_bytes if log.activation_bytes is None else log.activation_bytes,
        non_torch_bytes=estimate.non_torch_bytes if log.non_torch_bytes is None else log.non_torch_bytes,
        graph_bytes=estimate.graph_bytes if graphs is None else graphs,
        context_bytes=estimate.context_bytes,
    )


def _closed(runtime: Runtime, log: MeasuredMemory, deployment: Deployment, left_bytes: int) -> Runtime:
    """Parts the log does not name, scaled so that all of them add up to what it leaves between weights and pool."""
    in_budget = _with_engine(log, deployment).engine.graphs_in_budget
    parts = {
        "activation_bytes": (log.activation_bytes, runtime.activation_bytes),
        "non_torch_bytes": (log.non_torch_bytes, runtime.non_torch_bytes),
    }
    named = sum(logged for logged, _ in parts.values() if logged is not None)
    graphs = runtime.graph_bytes if in_budget else 0
    open_parts = {name: estimate for name, (logged, estimate) in parts.items() if logged is None}
    rest, estimated = left_bytes - named - graphs, sum(open_parts.values())
    if log.weights_bytes is None or not open_parts or not estimated / CLOSE_FACTOR <= rest <= estimated * CLOSE_FACTOR:
        return runtime
    return replace(runtime, **{name: round(value * rest / estimated) for name, value in open_parts.items()})


def _with_engine(log: MeasuredMemory, deployment: Deployment) -> Deployment:
    if log.graphs_in_budget is None:
        return deployment
    return replace(deployment, engine=replace(deployment.engine, graphs_in_budget=log.graphs_in_budget))


def _provenance(log: MeasuredMemory, deployment: Deployment, pool: _Pool) -> dict[str, str]:
    known = {
        "weights": log.weights_bytes,
        "activation": log.activation_bytes,
        "non_torch": log.non_torch_bytes,
        "graphs": log.graph_bytes if log.graph_bytes is not None else log.graph_reserved_bytes,
        "gpu_memory": log.gpu_memory_bytes,
    }
    declared = {"weights"} if deployment.model.weights_bytes_declared is not None else set()
    usual = {part: "declared" if part in declared else ESTIMATED for part in known}
    found = {part: MEASURED if value is not None else usual[part] for part, value in known.items()}
    return found | ({"kv_pool": MEASURED} if pool.known else {})


def _used(log: MeasuredMemory) -> tuple[Message, ...]:
    head = msg(
        "Memory as {engine} {version} measured it: start-up log {log} of {date}.",
        engine=log.engine,
        version=log.engine_version,
        log=log.log_id[:ID_SHOWN],
        date=log.date,
    )
    missing = [label for label, value in _figures(log) if value is None]
    if not missing:
        return (head,)
    if log.kv_pool_bytes is None or log.weights_bytes is None:
        return head, msg("That log does not name: {parts}. These stay estimated.", parts=listed(missing))
    return head, msg(
        "That log does not name: {parts}. These stay estimated, and are made to add up with the parts it names.",
        parts=listed(missing),
    )


def _figures(log: MeasuredMemory) -> tuple[tuple[Message, int | None], ...]:
    return (
        (msg("weights"), log.weights_bytes),
        (msg("activations"), log.activation_bytes),
        (msg("libraries and buffers"), log.non_torch_bytes),
        (msg("CUDA graphs"), log.graph_bytes if log.graph_bytes is not None else log.graph_reserved_bytes),
        (msg("KV pool"), log.kv_tokens if log.kv_pool_bytes is None else log.kv_pool_bytes),
    )


ID_SHOWN = 8
"""Characters of a log's id in a sentence."""
