"""What can be changed so that a deployment fits: each lever's steps, from the smallest on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from calc.deployment import Deployment
from calc.dtypes import KV_BYTES
from calc.engine import FractionOf, resolve
from calc.judge.lever_changes import (
    LEAST_BATCHED_TOKENS,
    LENGTH_STEP_TOKENS,
    LONGEST_SHARE,
    MARGIN_BYTES,
    MARGIN_SHARE,
    NODE_GPUS,
    Today,
    estimated_pool,
    narrow_kv,
    whole_splits,
)
from calc.memory import MemoryReport
from calc.messages import Message, msg
from calc.model import LayerKind, ModelSpec
from calc.scenario import Scenario
from calc.ways.gap import Peak, longest_length

MOST_STAGES = 8
"""Pipeline stages tried at most."""
BATCH_STEPS = 3
"""Halvings of the token budget tried."""
HIGHEST_FREE_FRACTION = 0.95
"""Of free memory (TensorRT-LLM), whose own default of 0.9 leaves a tenth for what profiling did not see."""
LEAST_SEQS = 8


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a lever is pulled: a scenario, its memory, and what is known around it."""

    scenario: Scenario
    memory: MemoryReport
    peak: Peak
    formats: Mapping[str, ModelSpec] = field(default_factory=dict)
    """The model as it would be stored in other weight formats."""

    @property
    def deployment(self) -> Deployment:
        """Of the scenario."""
        return self.scenario.deployment


Steps: TypeAlias = tuple[Deployment, ...] | Message
"""Deployments from the smallest change on, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class Lever:
    """One kind of change; ``severity`` orders what it does besides: 0 nothing, 3 and more may be felt in answers."""

    code: str
    axis: str
    """Levers of one axis exclude each other."""
    severity: int
    side_effect: Message
    steps: Callable[[Place], Steps]


def _deployments(*changed: Deployment) -> Steps:
    return tuple(estimated_pool(deployment) for deployment in changed)


def _raise_fraction(place: Place) -> Steps:
    """As much for the engine as leaves the planned margin outside its budget."""
    memory, deployment = place.memory, place.deployment
    now = resolve(deployment).memory_fraction
    if deployment.engine.fraction_of is FractionOf.FREE:
        most = HIGHEST_FREE_FRACTION
    else:
        outside = memory.total_bytes - memory.budget_bytes - (memory.runtime_bytes - memory.runtime_in_budget_bytes)
        spare = outside - max(MARGIN_BYTES, MARGIN_SHARE * memory.total_bytes)
        most = min(1.0, math.floor((now + spare / memory.total_bytes) * 100) / 100)
    if most <= now:
        return msg("The memory fraction leaves no more than the planned margin already.")
    return _deployments(replace(deployment, memory_fraction=most))


def _fewer_batched(place: Place) -> Steps:
    settings = resolve(place.deployment)
    if not settings.chunked_prefill:
        return msg("Without chunked prefill the token budget must hold the longest prompt.")
    halved = (settings.max_num_batched_tokens // 2**step for step in range(1, BATCH_STEPS + 1))
    budgets = [tokens for tokens in halved if tokens >= LEAST_BATCHED_TOKENS]
    if not budgets:
        return msg("The token budget of a step is small already.")
    return _deployments(*(replace(place.deployment, max_num_batched_tokens=tokens) for tokens in budgets))


def _fewer_sequences(place: Place) -> Steps:
    """No more running requests than the planned peak, where that is known, rounded up to a power of two."""
    deployment, now = place.deployment, resolve(place.deployment).max_num_seqs
    if place.peak.requests is None:
        wanted = float(now // 4)
    else:
        wanted = place.peak.requests / (deployment.replicas * deployment.dp)
    fewer = max(LEAST_SEQS, 2 ** math.ceil(math.log2(max(wanted, 1))))
    if fewer >= now:
        return msg("The limit of running requests is no larger than the load needs.")
    return _deployments(replace(deployment, max_num_seqs=fewer))


def _shorter(place: Place) -> Steps:
    """The length that nearly every request needs; then the longest that fits."""
    if place.memory.fits:
        return msg("The longest request accepted fits: a lower limit gives no more room to the others.")
    load, now = place.scenario.workload, resolve(place.deployment).max_model_len_tokens
    needed = load.prompt_tokens.quantile(LONGEST_SHARE) + load.output_tokens.quantile(LONGEST_SHARE)
    rounded = math.ceil(needed / LENGTH_STEP_TOKENS) * LENGTH_STEP_TOKENS
    fitting = longest_length(place.deployment, place.memory)
    lengths = [tokens for tokens in (rounded, fitting) if tokens is not None and tokens < now]
    if fitting is None or not lengths:
        return msg("Weights and runtime leave no room for a sequence of any length.")
    lengths = [min(rounded, fitting)] if rounded <= fitting else lengths
    return _deployments(*(replace(place.deployment, max_model_len_tokens=tokens) for tokens in lengths))


def _fp8_kv(place: Place) -> Steps:
    if missing := _unsupported(place.deployment, "fp8"):
        return missing
    today = Today(
        scenario=place.scenario,
        settings=resolve(place.deployment),
        memory=place.memory,
        latency=None,
        limit_load=None,
    )
    change = narrow_kv(today)
    return change if isinstance(change, Message) else tuple(scenario.deployment for scenario in change)


def _nvfp4_kv(place: Place) -> Steps:
    deployment, code = place.deployment, resolve(place.deployment).kv_dtype
    if missing := _unsupported(deployment, "fp4"):
        return missing
    if deployment.gpu.nvlink_bytes_per_s is None or deployment.engine.id == "sglang":
        return msg("NVFP4 caches run on data-centre Blackwell under vLLM and TensorRT-LLM only.")
    if any(group.kind is LayerKind.MLA for group in deployment.model.groups):
        return msg("The latent cache of this model has no NVFP4 form here.")
    if KV_BYTES[code] <= KV_BYTES["nvfp4"]:
        return msg("KV is kept in {dtype} already.", dtype=code)
    return _deployments(replace(deployment, kv_dtype="nvfp4"))


def _unsupported(deployment: Deployment, code: str) -> Message | None:
    """A GPU whose peaks are known, this one not among them."""
    if not deployment.gpu.flops_per_s or code in deployment.gpu.flops_per_s:
        return None
    return msg("{gpu} does not compute in {dtype}.", gpu=deployment.gpu.name, dtype=code)


def _weights_in(code: str) -> Callable[[Place], Steps]:
    def steps(place: Place) -> Steps:
        model, other = place.deployment.model, place.formats.get(code)
        if model.weights_bytes_declared is not None or other is None:
            return msg("The weights' size was given, not worked out: enter the size in {dtype} instead.", dtype=code)
        if model.storage.bytes_per_parameter <= other.storage.bytes_per_parameter:
            return msg("Weights are stored in {dtype} already.", dtype=model.storage.code)
        return _deployments(replace(place.deployment, model=other, weight_dtype=code))

    return steps


def tp_sizes(deployment: Deployment) -> list[int]:
    """Degrees of tensor parallelism that the heads allow inside one server; 1 alone without a known link."""
    if deployment.gpu.link_bytes_per_s is None:
        return [1]
    return [tp for tp in whole_splits(deployment) if tp <= NODE_GPUS]


def _wider(place: Place) -> Steps:
    deployment = place.deployment
    wider = [tp for tp in tp_sizes(deployment) if tp > deployment.tp and tp % deployment.tp == 0]
    if not wider:
        return msg("TP {tp:count} cannot grow inside one server.", tp=deployment.tp)
    return _deployments(*(replace(deployment, tp=tp) for tp in wider))


def _more_stages(place: Place) -> Steps:
    deployment = place.deployment
    stages = [deployment.pp * factor for factor in (2, 4, 8)]
    allowed = [pp for pp in stages if pp <= min(MOST_STAGES, deployment.model.layers)]
    if not allowed:
        return msg("PP {pp:count} cannot grow further.", pp=deployment.pp)
    return _deployments(*(replace(deployment, pp=pp) for pp in allowed))


def _fewer_replicas(place: Place) -> Steps:
    """The GPUs of replicas or DP ranks joined to wider ones: weights are held less often."""
    deployment, found = place.deployment, []
    wider = [tp for tp in tp_sizes(deployment) if tp > deployment.tp and tp % deployment.tp == 0]
    for factor in (tp // deployment.tp for tp in wider):
        if deployment.replicas % factor == 0:
            found.append(replace(deployment, tp=deployment.tp * factor, replicas=deployment.replicas // factor))
        elif deployment.dp % factor == 0:
            found.append(replace(deployment, tp=deployment.tp * factor, dp=deployment.dp // factor))
    if not found:
        return msg("There are no further replicas or ranks whose GPUs could be joined.")
    return _deployments(*found)


def _spread_experts(place: Place) -> Steps:
    deployment = place.deployment
    if deployment.model.moe is None or deployment.ep or deployment.dp == 1:
        return msg("There are no experts held by every DP rank.")
    return _deployments(replace(deployment, ep=True))


def _more_replicas(place: Place) -> Steps:
    """As many replicas as hold the planned peak together."""
    deployment, memory, peak = place.deployment, place.memory, place.peak.requests
    if not memory.fits or peak is None or memory.peak_concurrency <= 0:
        return msg("One replica must fit, and the peak be known, before more of them are counted.")
    each = memory.peak_concurrency * memory.kv_pool_bytes / max(memory.kv_demand_bytes, 1)
    needed = math.ceil(peak / max(each, 1e-9))
    more = max(deployment.replicas + 1, needed)
    return _deployments(replace(deployment, replicas=more))


LEVERS: Mapping[str, Lever] = MappingProxyType(
    {
        lever.code: lever
        for lever in (
            Lever(
                code="raise-memory-fraction",
                axis="fraction",
                severity=1,
                steps=_raise_fraction,
                side_effect=msg(
                    "Less margin: a burst beyond the profiled peak ends every request of the replica. Speed unchanged."
                ),
            ),
            Lever(
                code="same-gpus-wider",
                axis="width",
                severity=1,
                steps=_fewer_replicas,
                side_effect=msg("Steps get shorter, more goes over the link; fewer replicas to fail over to."),
            ),
            Lever(
                code="spread-experts",
                axis="experts",
                severity=1,
                steps=_spread_experts,
                side_effect=msg("Every step exchanges tokens between all ranks: slower on a slow link."),
            ),
            Lever(
                code="lower-batched-tokens",
                axis="batched",
                severity=1,
                steps=_fewer_batched,
                side_effect=msg("Long prompts take more steps: TTFT up, ITL steadier."),
            ),
            Lever(
                code="lower-max-seqs",
                axis="seqs",
                severity=1,
                steps=_fewer_sequences,
                side_effect=msg("Bursts beyond the limit wait in the queue: TTFT up at peaks."),
            ),
            Lever(
                code="fp8-kv",
                axis="kv",
                severity=2,
                steps=_fp8_kv,
                side_effect=msg("Check answer quality on your own tasks. Long contexts decode a little faster."),
            ),
            Lever(
                code="fp8-weights",
                axis="weights",
                severity=2,
                steps=_weights_in("fp8"),
                side_effect=msg("Check answer quality on your own tasks. Steps get shorter where the GPU has FP8."),
            ),
            Lever(
                code="nvfp4-kv",
                axis="kv",
                severity=3,
                steps=_nvfp4_kv,
                side_effect=msg("Check answer quality first: four bits for the cache. Decode may get slower."),
            ),
            Lever(
                code="int4-weights",
                axis="weights",
                severity=3,
                steps=_weights_in("int4"),
                side_effect=msg(
                    "Check answer quality first; needs a checkpoint in INT4. Decode faster, long prefills often slower."
                ),
            ),
            Lever(
                code="shorter-context",
                axis="length",
                severity=2,
                steps=_shorter,
                side_effect=msg("Longer requests are refused. Speed of the others unchanged."),
            ),
            Lever(
                code="more-gpus",
                axis="width",
                severity=1,
                steps=_wider,
                side_effect=msg("Steps get shorter, more goes over the link: pays only with a fast one."),
            ),
            Lever(
                code="more-stages",
                axis="stages",
                severity=2,
                steps=_more_stages,
                side_effect=msg("Tokens pass the stages one after the other: ITL a little up; no fast link needed."),
            ),
            Lever(
                code="more-replicas",
                axis="replicas",
                severity=0,
                steps=_more_replicas,
                side_effect=msg("Less waiting. Route by prefix, or each replica warms its own cache."),
            ),
        )
    }
)
"""Lever code → lever, the mildest first."""
GROWING = frozenset({"more-gpus", "more-stages", "more-replicas"})
"""Levers that take more GPUs."""
