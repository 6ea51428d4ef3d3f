"""GPU memory: four zones per GPU, the KV pool, and what fits in it as the engine counts it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calc.deployment import Deployment
from calc.engine import FractionOf, Settings, TokensMeaning, resolve
from calc.kv import NULL_BLOCKS, BlockPlan, kv_bytes_per_token, plan_blocks, request_bytes
from calc.messages import Message, msg
from calc.runtime import Runtime, estimate_runtime
from calc.weights import stage_weights_bytes
from calc.workload import Closed, Workload


@dataclass(frozen=True, kw_only=True)
class MemoryReport:
    """Per GPU, for the rank with the least room. ``over_bytes`` > 0 says by how much it does not fit."""

    total_bytes: int
    """The GPU's memory as the driver shows it."""
    budget_bytes: int
    """What the engine may use (memory fraction applied)."""
    weights_bytes: int
    activation_bytes: int
    non_torch_bytes: int
    """CUDA context, NCCL, communication buffers."""
    graph_bytes: int
    graphs_in_budget: bool
    kv_pool_bytes: int
    """0 when nothing is left; see ``over_bytes``."""
    kv_pool_band_bytes: tuple[int, int]
    """80 % band."""
    margin_bytes: int
    """Left outside the budget; graphs captured outside the budget are taken off."""
    over_bytes: int
    """How far weights + runtime exceed the budget, or one sequence of max length exceeds the pool; 0 = fits."""
    fits: bool
    kv_bytes_per_token: int
    """Per GPU."""
    kv_dtype: str
    block_size_tokens: int
    num_blocks: int
    kv_tokens: int
    """One replica, as the engine version logs it."""
    max_concurrency: float
    """Sequences of max model length one replica holds."""
    max_model_len_tokens: int
    kv_per_request_bytes: int
    """Per GPU, one request of mean prompt + output length."""
    peak_concurrency: float
    """Requests in flight on one replica at the planned load."""
    kv_demand_bytes: int
    """Per GPU, at ``peak_concurrency`` requests (half the output written on average)."""
    weights_declared: bool
    context_bytes: int = 0
    """CUDA context outside the engine's budget; the margin is what is left beside it."""
    num_groups: int = 1
    """Block tables per request: 1, more where local and full attention mix."""
    num_seqs_limit: int = 0
    """Most requests the scheduler runs at once on one replica."""
    notes: tuple[Message, ...] = ()

    @property
    def runtime_bytes(self) -> int:
        """Activations, non-torch and graphs: the runtime zone."""
        return self.activation_bytes + self.non_torch_bytes + self.graph_bytes


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """One pipeline stage's share of a GPU."""

    weights_bytes: int
    runtime: Runtime
    budget_bytes: int
    room_bytes: int
    """Left for the pool; below 0 when weights and runtime exceed the budget."""


@dataclass(frozen=True, kw_only=True)
class _Pool:
    """The KV pool in the engine's units, one replica."""

    num_blocks: int
    blocks_per_sequence: int
    max_concurrency: float
    kv_tokens: int
    short_bytes: int
    """How far one sequence of maximum length exceeds the pool; 0 = it fits."""


BAND_SHARE = 0.02
"""Half width of the 80 % band of the KV pool, as a share of the budget left after weights."""
BAND_BYTES = 300 * 2**20


def estimate_memory(
    deployment: Deployment, workload: Workload | None = None, peak_concurrency: float | None = None
) -> MemoryReport:
    """Memory of one GPU of the stage with the least room, and what the pool of one replica holds.

    With DP, every rank has a pool of its own and a request lives on one of them: tokens and sequences of the ranks add
    up to the replica's; bytes stay per GPU.
    """
    settings = resolve(deployment)
    plan = _plan(deployment, settings)
    stages = _stages(deployment, settings)
    rooms = [max(0, stage.room_bytes) for stage in stages]
    tightest = min(range(len(stages)), key=lambda i: stages[i].room_bytes / plan.stage_bytes_per_block[i])
    pool = _pool(deployment, settings, plan, rooms)
    return _report(deployment, settings, plan, stages[tightest], pool, workload, peak_concurrency)


def _stages(deployment: Deployment, settings: Settings) -> list[_Stage]:
    weights = stage_weights_bytes(deployment.model, deployment.tp, deployment.pp, deployment.ep, deployment.dp)
    last = len(weights) - 1
    return [
        _stage(
            deployment,
            settings,
            weight,
            estimate_runtime(deployment, settings, last_stage=i == last),
        )
        for i, weight in enumerate(weights)
    ]


def _stage(deployment: Deployment, settings: Settings, weights_bytes: int, runtime: Runtime) -> _Stage:
    total = deployment.gpu.memory_bytes
    graphs = runtime.graph_bytes if deployment.engine.graphs_in_budget else 0
    used = weights_bytes + runtime.activation_bytes + runtime.non_torch_bytes + graphs
    if deployment.engine.fraction_of is FractionOf.FREE:
        # TensorRT-LLM keeps a share of what is free after weights and the profiling peak.
        budget = used + int((total - runtime.context_bytes - used) * settings.memory_fraction)
    else:
        budget = int(total * settings.memory_fraction)
    room = budget - used
    if deployment.kv_pool_bytes_per_gpu is not None:
        room = deployment.kv_pool_bytes_per_gpu
        budget = used + room
    return _Stage(weights_bytes=weights_bytes, runtime=runtime, budget_bytes=budget, room_bytes=room)


def _pool(deployment: Deployment, settings: Settings, plan: BlockPlan, rooms: list[int]) -> _Pool:
    length = settings.max_model_len_tokens
    needed = plan.blocks_per_request(length, settings.in_flight_tokens)
    if deployment.kv_tokens is not None:
        blocks = deployment.kv_tokens * len(plan.groups) // (settings.block_size_tokens * deployment.dp)
    else:
        blocks = min(math.floor(room / size) for room, size in zip(rooms, plan.stage_bytes_per_block, strict=True))
    concurrency = blocks / needed * deployment.dp
    if deployment.engine.tokens_meaning is TokensMeaning.CONCURRENCY_TIMES_LENGTH:
        tokens = int(concurrency * length)
    else:
        tokens = blocks // len(plan.groups) * settings.block_size_tokens * deployment.dp
    missing = max(0, needed - (blocks - NULL_BLOCKS))
    return _Pool(
        num_blocks=blocks,
        blocks_per_sequence=needed,
        max_concurrency=concurrency,
        kv_tokens=deployment.kv_tokens or tokens,
        short_bytes=math.ceil(missing * max(plan.stage_bytes_per_block)),
    )


def _report(
    deployment: Deployment,
    settings: Settings,
    plan: BlockPlan,
    stage: _Stage,
    pool: _Pool,
    workload: Workload | None,
    peak: float | None,
) -> MemoryReport:
    runtime, engine = stage.runtime, deployment.engine
    outside = runtime.context_bytes + (0 if engine.graphs_in_budget else runtime.graph_bytes)
    over = -stage.room_bytes if stage.room_bytes < 0 else pool.short_bytes
    kv_pool = max(0, stage.room_bytes)
    request_tokens, cached = _request_tokens(workload, settings)
    per_request = math.ceil(request_bytes(deployment.model, settings.kv_dtype, deployment.tp, request_tokens))
    average = request_bytes(deployment.model, settings.kv_dtype, deployment.tp, cached)
    concurrency, notes = _peak(deployment, settings, pool, workload, peak)
    return MemoryReport(
        total_bytes=deployment.gpu.memory_bytes,
        budget_bytes=stage.budget_bytes,
        weights_bytes=stage.weights_bytes,
        activation_bytes=runtime.activation_bytes,
        non_torch_bytes=runtime.non_torch_bytes,
        graph_bytes=runtime.graph_bytes,
        graphs_in_budget=engine.graphs_in_budget,
        kv_pool_bytes=kv_pool,
        kv_pool_band_bytes=_band(deployment, stage, kv_pool),
        margin_bytes=deployment.gpu.memory_bytes - stage.budget_bytes - outside,
        over_bytes=over,
        fits=over == 0,
        kv_bytes_per_token=kv_bytes_per_token(deployment.model, settings.kv_dtype, deployment.tp, deployment.pp),
        kv_dtype=settings.kv_dtype,
        block_size_tokens=settings.block_size_tokens,
        num_blocks=pool.num_blocks,
        kv_tokens=pool.kv_tokens,
        max_concurrency=pool.max_concurrency,
        max_model_len_tokens=settings.max_model_len_tokens,
        kv_per_request_bytes=per_request // deployment.pp,
        peak_concurrency=concurrency,
        kv_demand_bytes=round(average * concurrency / deployment.dp / deployment.pp),
        weights_declared=deployment.model.weights_bytes_declared is not None,
        context_bytes=runtime.context_bytes,
        num_groups=len(plan.groups),
        num_seqs_limit=settings.max_num_seqs * deployment.dp,
        notes=notes,
    )


def _band(deployment: Deployment, stage: _Stage, kv_pool: int) -> tuple[int, int]:
    if deployment.kv_pool_bytes_per_gpu is not None:
        return kv_pool, kv_pool
    half = BAND_BYTES + int(BAND_SHARE * kv_pool)
    return max(0, kv_pool - half), min(stage.budget_bytes, kv_pool + half)


def _request_tokens(workload: Workload | None, settings: Settings) -> tuple[float, float]:
    """(tokens of a finished request, mean tokens held while it runs: prompt + half the output)."""
    limit = settings.max_model_len_tokens
    if workload is None:
        return limit, limit
    prompt, output = workload.prompt_tokens.mean(), workload.output_tokens.mean()
    return min(limit, prompt + output), min(limit, prompt + output / 2)


def _peak(
    deployment: Deployment, settings: Settings, pool: _Pool, workload: Workload | None, peak: float | None
) -> tuple[float, tuple[Message, ...]]:
    if peak is not None:
        return peak, ()
    limit = float(settings.max_num_seqs * deployment.dp)
    if workload is not None and isinstance(workload.arrivals, Closed):
        return min(workload.arrivals.concurrency / deployment.replicas, limit), ()
    note = msg("peak concurrency is not known before a load is simulated: shown for the most the engine would admit.")
    return min(limit, pool.max_concurrency), (note,)


def sequences_at(deployment: Deployment, report: MemoryReport, tokens: int) -> float:
    """Sequences of ``tokens`` cached tokens the pool of one replica holds, counted in blocks as the engine does."""
    settings = resolve(deployment)
    needed = _plan(deployment, settings).blocks_per_request(tokens, settings.in_flight_tokens)
    return report.num_blocks / needed * deployment.dp


def _plan(deployment: Deployment, settings: Settings) -> BlockPlan:
    return plan_blocks(
        deployment.model,
        settings.kv_dtype,
        deployment.tp,
        deployment.pp,
        settings.block_size_tokens,
        window_aware=settings.hybrid_kv,
    )
