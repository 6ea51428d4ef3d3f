"""The runtime zone of a GPU: activations at the profiling peak, memory outside the tensor allocator, CUDA graphs.

Shapes follow what a warm-up step allocates; the constants come with the engine version (``Engine.runtime``) and say
where they were fitted. ``docs/accuracy.md`` states what they leave, also on models that were left out of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.deployment import Deployment
from calc.engine import Settings, has_nvlink_sharp, is_large_class
from calc.model import ModelSpec

MLP_WIDTHS = 3
"""Gate, up and their product are alive at once."""
PIPELINE_HIDDEN_COPIES = 2
"""Hidden state and residual sent between pipeline stages."""
WIDE_ELEMENT = 4
SAMPLER_ROW_ELEMENT = 4
WIDE_LOGIT_EXTRA_BYTES = 2
"""An FP32 model's logits are twice as wide before the sampler."""


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Bytes on one GPU of one pipeline stage."""

    activation_bytes: int
    non_torch_bytes: int
    graph_bytes: int
    context_bytes: int


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """What a warm-up step allocates on one GPU, before the fitted copies are applied; bytes."""

    hidden_bytes: float
    """One hidden state of every token of the budget."""
    mlp_bytes: float
    """Gate, up and product of the widest MLP every token passes, split over TP."""
    sampler_bytes: float
    """Logits of every sequence the sampler is warmed up with, in all the forms alive at once."""
    pipeline_bytes: float
    expert_bytes: float


def estimate_runtime(deployment: Deployment, settings: Settings, *, stage_layers: int, last_stage: bool) -> Runtime:
    """Runtime zone of one stage; the last stage also holds logits for every sequence."""
    constants = deployment.engine.runtime
    return Runtime(
        activation_bytes=activation_bytes(deployment, settings, last_stage=last_stage),
        non_torch_bytes=non_torch_bytes(deployment),
        graph_bytes=constants.graph_base_bytes + constants.graph_per_layer_bytes * stage_layers,
        context_bytes=context_bytes(deployment),
    )


def context_bytes(deployment: Deployment) -> int:
    """CUDA context, and where GPUs talk to each other their communicators, before the engine measures."""
    constants = deployment.engine.runtime
    split = deployment.tp * deployment.pp > 1 and has_nvlink_sharp(deployment.gpu)
    return constants.context_nvls_bytes if split else constants.context_bytes


def warm_up(deployment: Deployment, settings: Settings) -> WarmUp:
    """Sizes that follow from model and settings alone: T · H · b, 3 · T · I / TP · b, S · V · bytes per logit."""
    model, tokens = deployment.model, settings.max_num_batched_tokens
    element = model.storage.plain_bytes_per_parameter
    hidden = tokens * model.hidden_size * element
    return WarmUp(
        hidden_bytes=hidden,
        mlp_bytes=tokens * MLP_WIDTHS * _dense_width(model) * element / deployment.tp,
        sampler_bytes=model.vocab_size * _sampler_bytes_per_word(deployment, settings),
        pipeline_bytes=PIPELINE_HIDDEN_COPIES * hidden if deployment.pp > 1 else 0,
        expert_bytes=expert_workspace_bytes(deployment, tokens),
    )


def activation_bytes(deployment: Deployment, settings: Settings, *, last_stage: bool) -> int:
    """Peak of the warm-up: the wider of an MLP at the full token budget and the sampler at every sequence.

    MLP: 3 · T · I / TP · b + copies · T · H · b; sampler: S · V · bytes per logit + copies · T · H · b; both + a base.
    Expert workspaces and pipeline buffers are held beside either.
    """
    sizes, constants = warm_up(deployment, settings), deployment.engine.runtime
    mlp = sizes.mlp_bytes + constants.mlp_hidden_copies * sizes.hidden_bytes
    sampler = sizes.sampler_bytes + constants.sampler_hidden_copies * sizes.hidden_bytes
    peak = max(mlp, sampler) if last_stage else mlp
    encoder = constants.encoder_bytes if deployment.model.multimodal else 0
    return round(constants.activation_base_bytes + peak + encoder + sizes.pipeline_bytes + sizes.expert_bytes)


def _sampler_bytes_per_word(deployment: Deployment, settings: Settings) -> float:
    """For one word of the vocabulary: its logit for every sequence, and the kernel's own rows."""
    constants = deployment.engine.runtime
    wide = deployment.model.storage.plain_bytes_per_parameter >= WIDE_ELEMENT
    per_logit = constants.logit_bytes + (WIDE_LOGIT_EXTRA_BYTES if wide else 0)
    return _warm_seqs(deployment, settings) * per_logit + constants.sampler_rows * SAMPLER_ROW_ELEMENT


def _dense_width(model: ModelSpec) -> int:
    """Widest MLP every token passes: where all layers have experts, that of the shared experts."""
    if model.moe is None or model.moe.moe_layers < model.layers:
        return model.intermediate_size
    return model.moe.expert_size * model.moe.shared_expert_parameters // model.moe.expert_parameters


def _warm_seqs(deployment: Deployment, settings: Settings) -> int:
    """Sequences the sampler is warmed up with: all the scheduler may run, or the engine's largest captured batch."""
    limit = deployment.engine.runtime.warm_seqs_limit
    return min(settings.max_num_seqs, limit) if limit else settings.max_num_seqs


def expert_workspace_bytes(deployment: Deployment, tokens: int) -> float:
    """Two buffers of the fused expert kernels: T · k · (max(2 I, H) + I) · b; MXFP4 kernels keep none."""
    model = deployment.model
    if model.moe is None or model.storage.code == "mxfp4":
        return 0.0
    size = model.moe.expert_size / (1 if deployment.ep else deployment.tp)
    rows = tokens * model.moe.experts_per_token
    return rows * (max(2 * size, model.hidden_size) + size) * model.storage.plain_bytes_per_parameter


def non_torch_bytes(deployment: Deployment) -> int:
    """CUDA libraries and collective buffers inside the budget."""
    constants, gpu = deployment.engine.runtime, deployment.gpu
    if deployment.tp > 1:
        pair = constants.non_torch_pair_nvls_bytes if has_nvlink_sharp(gpu) else constants.non_torch_pair_bytes
        return pair + constants.non_torch_per_rank_bytes * (deployment.tp - 2)
    if deployment.pp > 1:
        return constants.non_torch_pipeline_bytes
    return constants.non_torch_large_bytes if is_large_class(gpu) else constants.non_torch_bytes
