"""From a GPU's memory to the KV pool: what each engine's memory fraction covers, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

from calc.cache.kv import stage_spans
from calc.deployment import Deployment
from calc.engine import FractionOf, Settings, is_large_class
from calc.room.runtime import Runtime, estimate_runtime
from calc.room.weights import stage_weights_bytes
from calc.units import GIB


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One pipeline stage's GPU."""

    weights_bytes: int
    runtime: Runtime
    budget_bytes: int
    """What the engine may use for what its fraction covers."""
    room_bytes: int
    """Left for the pool; below 0 when the rest exceeds the budget."""


def plan_stages(deployment: Deployment, settings: Settings) -> list[Stage]:
    """Weights, runtime and room of every pipeline stage."""
    model = deployment.model
    weights = stage_weights_bytes(model, deployment.tp, deployment.pp, deployment.ep, deployment.dp)
    spans = stage_spans(model, deployment.pp)
    return [
        _stage(
            deployment,
            settings,
            weight,
            estimate_runtime(deployment, settings, stage_layers=len(span), last_stage=index == len(weights) - 1),
        )
        for index, (weight, span) in enumerate(zip(weights, spans, strict=True))
    ]


def _stage(deployment: Deployment, settings: Settings, weights_bytes: int, runtime: Runtime) -> Stage:
    covered = weights_bytes + covered_runtime_bytes(deployment, runtime)
    budget = _budget_bytes(deployment, settings, runtime, covered)
    if deployment.kv_pool_bytes_per_gpu is not None:
        budget = covered + deployment.kv_pool_bytes_per_gpu
    return Stage(weights_bytes=weights_bytes, runtime=runtime, budget_bytes=budget, room_bytes=budget - covered)


def covered_runtime_bytes(deployment: Deployment, runtime: Runtime) -> int:
    """The part of the runtime zone inside what the engine's memory fraction covers."""
    if deployment.engine.fraction_of is FractionOf.STATIC:
        return 0
    graphs = runtime.graph_bytes if deployment.engine.graphs_in_budget else 0
    return runtime.activation_bytes + runtime.non_torch_bytes + graphs


def _budget_bytes(deployment: Deployment, settings: Settings, runtime: Runtime, covered: int) -> int:
    total = deployment.gpu.memory_bytes
    match deployment.engine.fraction_of:
        case FractionOf.TOTAL:
            return int(total * settings.memory_fraction)
        case FractionOf.STATIC:
            # SGLang: pool = free after weights − (1 − fraction) · free before loading.
            return int((total - runtime.context_bytes - runtime.non_torch_bytes) * settings.memory_fraction)
        case FractionOf.FREE:
            free = max(0, total - runtime.context_bytes - covered)
            return covered + int(free * settings.memory_fraction) - max(0, covered + runtime.context_bytes - total)


# Half widths of the 80 % band: they hold 84 % of the models left out of the fit (89 % of the starts) and nine of eleven
# pools that other versions, engines and GPUs logged (docs/accuracy.md).
BAND_BASE_BYTES = int(0.05 * GIB)
BAND_WEIGHT_SHARE = 0.0025
"""Of estimated weights: allocator rounding and kernels that repack weights."""
BAND_ACTIVATION_SHARE = 0.025
"""Of activations where the constants were fitted: vLLM on Hopper class."""
BAND_ACTIVATION_SHARE_ELSEWHERE = 0.15
"""On other GPUs and versions: A100-40, T4 and RTX logs lie within it but for vision models."""
BAND_BUDGET_SHARE_ELSEWHERE = 0.01
"""Of the budget of other engines: two SGLang starts are 0.03 GiB off at 71 and 0.3 at 113."""
BAND_EXPERT_BYTES = int(0.1 * GIB)
BAND_ENCODER_BYTES = int(0.2 * GIB)
BAND_COLLECTIVE_SHARE = 0.05
"""Of the collective buffers of tensor parallelism."""
BAND_GRAPH_SHARE = 0.35
"""Of graphs inside the budget: four in five estimates of 27 starts lie within it."""


def _runtime_doubt_bytes(deployment: Deployment, stage: Stage) -> float:
    if deployment.engine.fraction_of is not FractionOf.TOTAL:
        return BAND_BUDGET_SHARE_ELSEWHERE * stage.budget_bytes
    fitted = deployment.engine.runtime.fitted and is_large_class(deployment.gpu)
    return (BAND_ACTIVATION_SHARE if fitted else BAND_ACTIVATION_SHARE_ELSEWHERE) * stage.runtime.activation_bytes


def band_half_bytes(deployment: Deployment, stage: Stage) -> int:
    """Half width of the 80 % band of the pool: the parts' own uncertainties, added."""
    if deployment.kv_pool_bytes_per_gpu is not None or deployment.kv_tokens is not None:
        return 0
    model, engine = deployment.model, deployment.engine
    half = BAND_BASE_BYTES + _runtime_doubt_bytes(deployment, stage)
    half += 0 if model.weights_bytes_declared else BAND_WEIGHT_SHARE * stage.weights_bytes
    half += 0 if model.weights_bytes_declared else model.weight_doubt_bytes / deployment.tp
    half += BAND_EXPERT_BYTES if model.moe else 0
    half += BAND_ENCODER_BYTES if model.multimodal else 0
    half += BAND_COLLECTIVE_SHARE * stage.runtime.non_torch_bytes if deployment.tp > 1 else 0
    half += BAND_GRAPH_SHARE * stage.runtime.graph_bytes if engine.graphs_in_budget else 0
    return round(half)
