"""GPU memory: four zones per GPU, the KV pool, and what fits in it as the engine counts it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from calc.cache.kv import fixed_bytes, kv_bytes_per_token, request_bytes
from calc.cache.pool import Pool, fill_pool, plan_for, sequences_of
from calc.cache.specs import states_per_sequence
from calc.deployment import Deployment
from calc.engine import FractionOf, Settings, resolve
from calc.messages import Message, msg
from calc.room.budget import Stage, band_half_bytes, plan_stages
from calc.startup.memory import Applied, use_log
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
    """What a GPU's budget lacks for weights, runtime and one sequence of max length, to the byte; 0 = fits."""
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
    """Requests in flight on one replica at the planned load; where not known, the most the engine would admit."""
    kv_demand_bytes: int
    """Per GPU, at ``peak_concurrency`` requests (half the output written on average), idle sessions included."""
    weights_declared: bool
    context_bytes: int = 0
    """CUDA context outside the engine's budget; the margin is what is left beside it."""
    states_per_sequence: int = 0
    """Copies of its recurrent state an engine reserves for a sequence; 0 = a model without recurrent layers."""
    state_bytes_per_sequence: int = 0
    """Per GPU, all copies: what a sequence takes before its first token, beside the cache that grows."""
    num_groups: int = 1
    """Block tables per request: 1, more where local and full attention mix."""
    num_seqs_limit: int = 0
    """Most requests the scheduler runs at once on one replica."""
    peak_is_known: bool = True
    """False: ``peak_concurrency`` and ``kv_demand_bytes`` follow from the pool and say nothing about the load."""
    idle_kv_bytes: int = 0
    """The part of ``kv_demand_bytes`` that idle sessions hold; engines give it up first when room is short."""
    notes: tuple[Message, ...] = ()

    runtime_in_budget_bytes: int = 0
    """The part of the runtime zone that the engine's memory fraction covers; 0 for SGLang, whose fraction does not."""

    provenance: Mapping[str, str] = field(default_factory=dict)
    """Of ``weights``, ``activation``, ``non_torch``, ``graphs``, ``kv_pool`` and ``gpu_memory``, where a log counts."""
    log_id: str = ""
    """The start-up log the measured parts come from."""
    log_date: str = ""

    def origin(self, part: str) -> str:
        """``measured``, ``declared`` or ``estimated``."""
        usual = "declared" if part == "weights" and self.weights_declared else "estimated"
        return self.provenance.get(part, usual)

    @property
    def runtime_bytes(self) -> int:
        """The runtime zone: activations, non-torch, graphs and the CUDA context.

        weights + runtime + KV pool + margin = the GPU's memory.
        """
        return self.activation_bytes + self.non_torch_bytes + self.graph_bytes + self.context_bytes


PEAK_UNKNOWN = msg("The peak concurrency of this load is not known here: shown for the most the engine would admit.")


def estimate_memory(
    deployment: Deployment, workload: Workload | None = None, peak_concurrency: float | None = None
) -> MemoryReport:
    """Memory of one GPU of the stage with the least room, and what the pool of one replica holds.

    With DP every rank has a pool of its own and a request lives on one of them: tokens and sequences of the ranks add
    up to the replica's; bytes stay per GPU.
    """
    settings = resolve(deployment)
    plan = plan_for(deployment, settings)
    applied = use_log(deployment, settings, plan, plan_stages(deployment, settings))
    stages = applied.stages
    tightest = min(range(len(stages)), key=lambda i: stages[i].room_bytes / plan.stage_bytes_per_block[i])
    pool = fill_pool(applied.deployment, settings, plan, [stage.room_bytes for stage in stages])
    stage = stages[tightest]
    if deployment.kv_tokens is not None:
        stage = _with_pool(stage, math.ceil(pool.num_blocks * plan.stage_bytes_per_block[tightest]))
    load = _Load.of(workload, settings, peak_concurrency)
    return _with_origin(_report(applied.deployment, settings, len(plan.groups), stage, pool, load), applied)


def _with_origin(report: MemoryReport, applied: Applied) -> MemoryReport:
    """Where the parts come from, said in the report."""
    log, notes = applied.log, applied.notes + report.notes
    if log is None:
        return replace(report, notes=notes) if applied.notes else report
    return replace(report, provenance=applied.provenance, log_id=log.log_id, log_date=log.date, notes=notes)


def sequences_at(deployment: Deployment, report: MemoryReport, tokens: int) -> float:
    """Sequences of ``tokens`` cached tokens the pool of one replica holds, counted in blocks as the engine does."""
    return sequences_of(deployment, resolve(deployment), report.num_blocks, tokens)


def _with_pool(stage: Stage, pool_bytes: int) -> Stage:
    budget = stage.budget_bytes - stage.room_bytes + pool_bytes
    return Stage(weights_bytes=stage.weights_bytes, runtime=stage.runtime, budget_bytes=budget, room_bytes=pool_bytes)


@dataclass(frozen=True, kw_only=True)
class _Load:
    """What the planned load asks of a replica."""

    request_tokens: float
    """Of a finished request."""
    held_tokens: float
    """Mean while a request runs: prompt and half the output."""
    concurrency: float | None
    """In flight on the whole deployment (closed loop) or as given for one replica."""
    per_replica: bool
    idle_per_active: float = 0.0
    idle_tokens: float = 0.0
    """Held by each idle session."""

    @classmethod
    def of(cls, workload: Workload | None, settings: Settings, peak: float | None) -> _Load:
        limit = settings.max_model_len_tokens
        if workload is None:
            return cls(request_tokens=limit, held_tokens=limit, concurrency=peak, per_replica=True)
        prompt, output = workload.prompt_tokens.mean(), workload.output_tokens.mean()
        closed = isinstance(workload.arrivals, Closed) and peak is None
        users = workload.arrivals.concurrency if isinstance(workload.arrivals, Closed) else None
        return cls(
            request_tokens=min(limit, prompt + output),
            held_tokens=min(limit, prompt + output / 2),
            concurrency=users if closed else peak,
            per_replica=not closed,
            idle_per_active=workload.idle_per_active,
            idle_tokens=min(limit, workload.idle_context_tokens or prompt + output),
        )


def _report(
    deployment: Deployment, settings: Settings, num_groups: int, stage: Stage, pool: Pool, load: _Load
) -> MemoryReport:
    runtime, model, engine = stage.runtime, deployment.model, deployment.engine
    kv_pool = max(0, stage.room_bytes)
    covered = stage.budget_bytes - stage.room_bytes - stage.weights_bytes
    all_runtime = runtime.activation_bytes + runtime.non_torch_bytes + runtime.graph_bytes + runtime.context_bytes
    held = stage.weights_bytes + all_runtime + kv_pool
    half = band_half_bytes(deployment, stage)
    over = pool.short_bytes
    concurrency, notes = _peak(deployment, settings, pool, load)
    on_rank = concurrency / deployment.dp
    idle = round(_per_gpu(deployment, settings, load.idle_tokens) * on_rank * load.idle_per_active)
    drafts = deployment.spec_tokens
    copies = states_per_sequence(deployment.model, prefix_caching=settings.prefix_caching, spec_tokens=drafts)
    return MemoryReport(
        total_bytes=deployment.gpu.memory_bytes,
        budget_bytes=max(0, stage.budget_bytes),
        weights_bytes=stage.weights_bytes,
        activation_bytes=runtime.activation_bytes,
        non_torch_bytes=runtime.non_torch_bytes,
        graph_bytes=runtime.graph_bytes,
        graphs_in_budget=engine.graphs_in_budget,
        kv_pool_bytes=kv_pool,
        kv_pool_band_bytes=(max(0, kv_pool - half), kv_pool + half),
        margin_bytes=deployment.gpu.memory_bytes - held,
        over_bytes=over,
        fits=over == 0,
        kv_bytes_per_token=kv_bytes_per_token(model, settings.kv_dtype, deployment.tp, deployment.pp),
        kv_dtype=settings.kv_dtype,
        block_size_tokens=settings.block_size_tokens,
        num_blocks=pool.num_blocks,
        kv_tokens=pool.kv_tokens,
        max_concurrency=pool.max_concurrency,
        max_model_len_tokens=settings.max_model_len_tokens,
        kv_per_request_bytes=math.ceil(_per_gpu(deployment, settings, load.request_tokens)),
        peak_concurrency=concurrency,
        kv_demand_bytes=round(_per_gpu(deployment, settings, load.held_tokens) * on_rank) + idle,
        idle_kv_bytes=idle,
        weights_declared=model.weights_bytes_declared is not None,
        context_bytes=runtime.context_bytes,
        num_groups=num_groups,
        states_per_sequence=copies,
        state_bytes_per_sequence=fixed_bytes(deployment.model, deployment.tp, deployment.pp, copies, drafts),
        num_seqs_limit=settings.max_num_seqs * deployment.dp,
        peak_is_known=load.concurrency is not None,
        runtime_in_budget_bytes=covered,
        notes=notes + _idle_notes(idle) + _given_notes(deployment, held) + _notes(deployment, settings),
    )


def at_peak(report: MemoryReport, deployment: Deployment, workload: Workload, peak_concurrency: float) -> MemoryReport:
    """The report of the same deployment and load, now that ``peak_concurrency`` of a replica is known.

    Nothing but the demand depends on it; a note that the peak is not known goes.
    """
    settings = resolve(deployment)
    load = _Load.of(workload, settings, peak_concurrency)
    on_rank = peak_concurrency / deployment.dp
    idle = round(_per_gpu(deployment, settings, load.idle_tokens) * on_rank * load.idle_per_active)
    kept = tuple(note for note in report.notes if note not in (PEAK_UNKNOWN, *_idle_notes(report.idle_kv_bytes)))
    return replace(
        report,
        peak_concurrency=peak_concurrency,
        kv_demand_bytes=round(_per_gpu(deployment, settings, load.held_tokens) * on_rank) + idle,
        idle_kv_bytes=idle,
        peak_is_known=True,
        notes=_idle_notes(idle) + kept,
    )


def _given_notes(deployment: Deployment, held_bytes: int) -> tuple[Message, ...]:
    """A pool is taken as given, also where no GPU of this size could hold it."""
    given = deployment.kv_tokens is not None or deployment.kv_pool_bytes_per_gpu is not None
    if not given or held_bytes <= deployment.gpu.memory_bytes:
        return ()
    return (
        msg(
            "The KV pool given, weights and runtime take {held:gib} of each GPU, which has {total:gib}: check it.",
            held=held_bytes,
            total=deployment.gpu.memory_bytes,
        ),
    )


def _idle_notes(idle_bytes: int) -> tuple[Message, ...]:
    if not idle_bytes:
        return ()
    return (
        msg(
            "{size:gib} of the KV demand on each GPU is held for idle sessions. Engines evict that when room is short: "
            "the decision's evidence leaves it out.",
            size=idle_bytes,
        ),
    )


def _per_gpu(deployment: Deployment, settings: Settings, tokens: float) -> float:
    return request_bytes(
        deployment.model,
        settings.kv_dtype,
        deployment.tp,
        deployment.pp,
        tokens,
        prefix_caching=settings.prefix_caching,
        spec_tokens=deployment.spec_tokens,
    )


def _peak(deployment: Deployment, settings: Settings, pool: Pool, load: _Load) -> tuple[float, tuple[Message, ...]]:
    if load.concurrency is not None:
        return load.concurrency / (1 if load.per_replica else deployment.replicas), ()
    return min(float(settings.max_num_seqs * deployment.dp), pool.max_concurrency), (PEAK_UNKNOWN,)


def _notes(deployment: Deployment, settings: Settings) -> tuple[Message, ...]:
    model, notes = deployment.model, []
    if settings.max_model_len_tokens > model.max_position_tokens:
        notes.append(
            msg(
                "A length of {asked:tok} is beyond the {limit:tok} of {model}: engines refuse it by default.",
                asked=settings.max_model_len_tokens,
                limit=model.max_position_tokens,
                model=model.name,
            )
        )
    if deployment.gpu.memory_is_declared:
        notes.append(msg("The memory of {gpu} is derived from its nominal size: enter what the driver shows.",
                         gpu=deployment.gpu.name))  # fmt: skip
    if deployment.engine.fraction_of is not FractionOf.TOTAL:
        notes.append(msg("The runtime zone was fitted on vLLM: for {engine} it is a first estimate.",
                         engine=deployment.engine.id))  # fmt: skip
    if len(model.groups) > 1 and not settings.hybrid_kv:
        notes.append(msg("{engine} {version} keeps every token in every layer, local attention included.",
                         engine=deployment.engine.id, version=deployment.engine.version))  # fmt: skip
    notes.extend(model.config_notes)
    if model.weights_bytes_declared is None:
        notes.extend(model.weight_notes)
    if model.multimodal:
        notes.append(msg("{model} also reads images or sound: what an input takes there is not counted.",
                         model=model.name))  # fmt: skip
    return tuple(notes)
