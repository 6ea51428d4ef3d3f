"""Each lever as a change of the scenario, everything else equal; or one sentence why it does not apply."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from calc.deployment import Deployment, divisors, heads_fit
from calc.dtypes import KV_BYTES
from calc.engine import FractionOf, Settings
from calc.hardware import Gpu
from calc.judge.lever_loads import with_hits, with_prompts
from calc.judge.thresholds import THRESHOLDS
from calc.latency import LatencyReport, load_of
from calc.memory import MemoryReport, sequences_at
from calc.messages import Message, msg
from calc.model import LayerWeights, ModelSpec, WeightStorage
from calc.scenario import Scenario
from calc.units import GB

MARGIN_BYTES = int(1.5 * GB)
"""Least memory planned outside the engine's budget: 1.2-1.5 GB still booted in public reports."""
MARGIN_SHARE = 0.05
"""The same as a share of the GPU; the larger of the two counts."""
PLANNED_SHARE = THRESHOLDS["load_ratio"].value
"""Load planned for as a share of the highest load carried."""
KV_ROOM_SHARE = THRESHOLDS["kv_full_share"].value
"""Share of the pool to fill when the limit of running requests is set by it."""
SEQS_BIND_SHARE = THRESHOLDS["seqs_full_share"].value
"""Running requests over their limit from which the limit counts as reached."""
MOST_BATCHED_TOKENS = 16_384
"""Largest token budget tried: vLLM's own offline default on large GPUs."""
LEAST_BATCHED_TOKENS = 512
"""Smallest token budget tried: vLLM's first default with chunked prefill."""
NODE_GPUS = 8
"""GPUs one fast link joins in common servers; tensor parallelism does not leave it."""
LONGEST_SHARE = 0.999
"""Requests that a shorter length limit must still accept."""
LENGTH_STEP_TOKENS = 1024
SHORTER_PROMPT_SHARE = 0.5
"""Prompt length tried when history and documents are summarised: half."""
LARGER_MEMORY_RATIO = 1.25
"""A GPU counts as larger from a quarter more memory on: less would hardly move the pool."""
FP8 = "fp8"


@dataclass(frozen=True, kw_only=True)
class Today:
    """The scenario as it is, and what is known about it."""

    scenario: Scenario
    settings: Settings
    memory: MemoryReport
    latency: LatencyReport | None
    limit_load: float | None
    gpus: tuple[Gpu, ...] = ()
    reusable_share: float | None = None
    """Share of prompt tokens that could be reused, when known."""

    @property
    def deployment(self) -> Deployment:
        """Of the scenario."""
        return self.scenario.deployment

    @property
    def held_requests(self) -> float:
        """Requests of this load's mean live length that the pool of one scheduler holds."""
        load = self.scenario.workload
        live = load.prompt_tokens.mean() + load.output_tokens.mean() / 2
        tokens = max(1, min(round(live), self.settings.max_model_len_tokens))
        return sequences_at(self.deployment, self.memory, tokens) / self.deployment.dp

    @property
    def running(self) -> float | None:
        """Requests in one scheduler at today's load, those in the queue left out."""
        if self.latency is None:
            return None
        waiting = self.latency.queue_s * self.latency.request_rate_per_s
        return max(0.0, self.latency.concurrency - waiting) / (self.deployment.replicas * self.deployment.dp)


Change: TypeAlias = tuple[Scenario, ...] | Message
"""Candidates from the smallest step on, the first that carries the load is taken; or why there is none."""


def deployed(today: Today, *deployments: Deployment) -> tuple[Scenario, ...]:
    """The scenario with other deployments."""
    return tuple(replace(today.scenario, deployment=deployment) for deployment in deployments)


def estimated_pool(deployment: Deployment) -> Deployment:
    """A pool given for today's deployment says nothing about a changed one: back to the estimate."""
    return replace(deployment, kv_tokens=None, kv_pool_bytes_per_gpu=None)


def raise_max_seqs(today: Today) -> Change:
    """As many running requests as the pool holds."""
    now, holds = today.settings.max_num_seqs, math.floor(today.held_requests * KV_ROOM_SHARE)
    running = today.running
    if running is None or running < now * SEQS_BIND_SHARE:
        return msg("The limit of {limit:count} running requests is not reached.", limit=now)
    if holds <= now:
        return msg("The pool holds {holds:count} such requests, not more than the limit.", holds=max(holds, 0))
    return deployed(today, replace(today.deployment, max_num_seqs=holds))


def lower_max_seqs(today: Today) -> Change:
    """Only as many running requests as the pool holds without preemption."""
    now, holds = today.settings.max_num_seqs, math.floor(today.held_requests * KV_ROOM_SHARE)
    full = today.latency is not None and today.latency.kv_usage_max_share >= KV_ROOM_SHARE
    if not full or holds >= now:
        return msg("The pool is not full at this load: fewer running requests would only wait longer.")
    return deployed(today, replace(today.deployment, max_num_seqs=max(1, holds)))


def raise_batched_tokens(today: Today) -> Change:
    """Twice the token budget of a step."""
    now = today.settings.max_num_batched_tokens
    if now >= MOST_BATCHED_TOKENS:
        return msg("The budget is {now:tok} already.", now=now)
    return deployed(today, replace(today.deployment, max_num_batched_tokens=min(2 * now, MOST_BATCHED_TOKENS)))


def lower_batched_tokens(today: Today) -> Change:
    """Half the token budget of a step."""
    now = today.settings.max_num_batched_tokens
    if not today.settings.chunked_prefill:
        return msg("Without chunked prefill the budget must hold the longest prompt.")
    if now <= LEAST_BATCHED_TOKENS:
        return msg("The budget is {now:tok} already.", now=now)
    return deployed(today, replace(today.deployment, max_num_batched_tokens=max(now // 2, LEAST_BATCHED_TOKENS)))


def chunk_prefill(today: Today) -> Change:
    """Long prompts in pieces beside running decodes."""
    if today.settings.chunked_prefill:
        return msg("Chunked prefill is on already.")
    return deployed(today, replace(today.deployment, chunked_prefill=True))


def raise_memory_fraction(today: Today) -> Change:
    """As much memory for the engine as leaves the planned margin."""
    memory, now = today.memory, today.settings.memory_fraction
    if today.deployment.engine.fraction_of is FractionOf.FREE:
        return msg("This engine's fraction is of free memory: there is no margin to move.")
    spare = memory.margin_bytes - max(MARGIN_BYTES, MARGIN_SHARE * memory.total_bytes)
    fraction = math.floor((now + spare / memory.total_bytes) * 100) / 100
    if fraction <= now:
        return msg("Only {margin:gib} are left outside the budget.", margin=max(0, memory.margin_bytes))
    return deployed(today, estimated_pool(replace(today.deployment, memory_fraction=min(fraction, 1.0))))


def shorten_context(today: Today) -> Change:
    """The length limit that nearly every request needs, rounded up."""
    if today.memory.fits:
        return msg("The longest request accepted fits: a lower limit gives no more room to the others.")
    load, now = today.scenario.workload, today.settings.max_model_len_tokens
    needed = load.prompt_tokens.quantile(LONGEST_SHARE) + load.output_tokens.quantile(LONGEST_SHARE)
    rounded = math.ceil(needed / LENGTH_STEP_TOKENS) * LENGTH_STEP_TOKENS
    if rounded >= now:
        return msg("Requests need the length of {now:tok}.", now=now)
    return deployed(today, replace(today.deployment, max_model_len_tokens=rounded))


def reuse_prefixes(today: Today) -> Change:
    """Hits up to the share of prompt tokens known to repeat."""
    declared = today.scenario.workload.prefix_hit_share
    # With caching off, the hits the load would allow are declared and not had.
    share = today.reusable_share if today.settings.prefix_caching else today.reusable_share or declared or None
    hit = declared if today.settings.prefix_caching else 0.0
    if share is None:
        return msg("The share of prompt tokens that repeat is not known.")
    if share <= hit:
        return msg("All that repeats is hit already: {hit:pct} of prompt tokens.", hit=hit)
    return (with_hits(today.scenario, share),)


def narrow_kv(today: Today) -> Change:
    """KV in one byte an element."""
    if KV_BYTES[today.settings.kv_dtype] <= KV_BYTES[FP8]:
        return msg("KV is kept in {dtype} already.", dtype=today.settings.kv_dtype)
    return deployed(today, estimated_pool(replace(today.deployment, kv_dtype=FP8)))


def whole_splits(deployment: Deployment) -> list[int]:
    """Degrees of tensor parallelism that leave every rank whole heads."""
    model = deployment.model
    return [tp for tp in divisors(model.heads) if all(heads_fit(group, tp) for group in model.groups)]


def split_wider(today: Today) -> Change:
    """The next tensor-parallel degree the model's heads allow inside one server; wider ones while it does not fit."""
    now = today.deployment.tp
    wider = [tp for tp in whole_splits(today.deployment) if now < tp <= NODE_GPUS]
    if not wider:
        return msg("TP {tp:count} cannot grow inside one server.", tp=now)
    steps = wider[:1] if today.memory.fits else wider
    return deployed(today, *(estimated_pool(replace(today.deployment, tp=tp)) for tp in steps))


def add_replicas(today: Today) -> Change:
    """As many replicas as carry the load with headroom, one more at least."""
    if not today.memory.fits:
        return msg("One replica does not fit: more of them do not either.")
    if today.limit_load == 0.0:
        return msg("One replica misses the SLO at any load: more of them do too.")
    now = today.deployment.replicas
    needed = replicas_needed(today.scenario, today.limit_load) if today.limit_load is not None else 0
    return deployed(today, replace(today.deployment, replicas=max(now + 1, needed)))


def replicas_needed(scenario: Scenario, limit_load: float) -> int:
    """Replicas that carry today's load with headroom, when the present ones carry ``limit_load``."""
    per_replica = limit_load / scenario.deployment.replicas
    return math.ceil(load_of(scenario.workload) / (PLANNED_SHARE * per_replica))


def replicate_instead(today: Today) -> Change:
    """The same GPUs as more replicas of a narrower split: less waiting on the link, weights held more often."""
    now = today.deployment.tp
    narrower = [tp for tp in reversed(whole_splits(today.deployment)) if tp < now and now % tp == 0]
    if not narrower:
        return msg("The model is not split.")
    replicas = today.deployment.replicas
    splits = (replace(today.deployment, tp=tp, replicas=replicas * now // tp) for tp in narrower)
    return deployed(today, *(estimated_pool(split) for split in splits))


def larger_gpu(today: Today) -> Change:
    """The next larger of the given GPUs that is no slower; larger ones while it does not fit. Prices are unknown."""
    now = today.deployment.gpu
    wanted = sorted(
        (gpu for gpu in today.gpus if _is_larger(gpu, now)),
        key=lambda gpu: (gpu.memory_bytes, gpu.bandwidth_bytes_per_s or 0.0),
    )
    if not wanted:
        return msg("No larger GPU with known speed is in the list.")
    steps = wanted[:1] if today.memory.fits else wanted
    unpriced = replace(today.scenario, prices=replace(today.scenario.prices, gpu_hour=None))
    return tuple(replace(unpriced, deployment=estimated_pool(replace(today.deployment, gpu=gpu))) for gpu in steps)


def _is_larger(gpu: Gpu, now: Gpu) -> bool:
    faster = (gpu.bandwidth_bytes_per_s or 0.0) >= (now.bandwidth_bytes_per_s or 0.0)
    as_quick = all(gpu.flops_per_s.get(dtype, 0.0) >= flops for dtype, flops in now.flops_per_s.items())
    known = gpu.bandwidth_bytes_per_s is not None and bool(gpu.flops_per_s)
    return known and gpu.memory_bytes >= now.memory_bytes * LARGER_MEMORY_RATIO and faster and as_quick


def narrow_weights(today: Today) -> Change:
    """Weights in one byte a parameter; matrix products in FP8 where the GPU has them."""
    model = today.deployment.model
    if model.storage.bytes_per_parameter < model.storage.plain_bytes_per_parameter:
        return msg("Weights are stored in {dtype} already.", dtype=model.storage.code)
    if model.weights_bytes_declared is not None or not model.layer_weights:
        return msg("The weights' size was given, not worked out: enter the size in FP8 instead.")
    computes = FP8 if FP8 in today.deployment.gpu.flops_per_s else model.storage.compute_dtype
    changed = replace(today.deployment, model=in_fp8(model, computes), weight_dtype=FP8)
    return deployed(today, estimated_pool(changed))


def in_fp8(model: ModelSpec, compute_dtype: str) -> ModelSpec:
    """``model`` with every matrix in FP8; embeddings, head, norms and routers stay as they are."""
    layers = tuple(_quantised(layer) for layer in model.layer_weights)
    storage = WeightStorage(
        code=FP8,
        bytes_per_parameter=1.0,
        plain_bytes_per_parameter=model.storage.plain_bytes_per_parameter,
        compute_dtype=compute_dtype,
    )
    total = sum(layer.quantised for layer in layers)
    return replace(model, layer_weights=layers, storage=storage, quantised_parameters=total)


def _quantised(layer: LayerWeights) -> LayerWeights:
    return replace(
        layer,
        split_quantised=layer.split_quantised + layer.split_plain,
        split_plain=0,
        kv_quantised=layer.kv_quantised + layer.kv_plain,
        kv_plain=0,
        expert_quantised=layer.expert_quantised + layer.expert_plain,
        expert_plain=0,
    )


def shorten_prompts(today: Today) -> Change:
    """Prompts of half the length, hits in proportion."""
    return (with_prompts(today.scenario, SHORTER_PROMPT_SHARE),)


CHANGES: Mapping[str, Callable[[Today], Change]] = MappingProxyType(
    {
        "raise-max-seqs": raise_max_seqs,
        "lower-max-seqs": lower_max_seqs,
        "raise-batched-tokens": raise_batched_tokens,
        "lower-batched-tokens": lower_batched_tokens,
        "chunked-prefill": chunk_prefill,
        "raise-memory-fraction": raise_memory_fraction,
        "replicas-instead-of-tp": replicate_instead,
        "shorter-context": shorten_context,
        "prefix-cache": reuse_prefixes,
        "fp8-kv": narrow_kv,
        "more-replicas": add_replicas,
        "more-gpus": split_wider,
        "bigger-gpu": larger_gpu,
        "fp8-weights": narrow_weights,
        "shorter-prompts": shorten_prompts,
    }
)
"""Lever code → change, from the least intrusive to the most."""
