"""The runtime zone of a GPU: activations at the profiling peak, memory outside the tensor allocator, CUDA graphs.

Shapes follow what a warm-up step allocates; the constants are fitted on 37 vLLM 0.19 starts on an H100 (Llama, Qwen,
Gemma, Granite, Phi, Mistral, gpt-oss and Qwen-MoE; TP 1-4, PP 1-4). ``tests/test_memory.py`` states what they leave.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.deployment import Deployment
from calc.engine import FractionOf, Settings, is_large_class
from calc.model import ModelSpec
from calc.units import GIB

LOGIT_BYTES = 14
"""Per logit of the sampler's warm-up: 16-bit logits and three FP32 copies (softmax, sort, cumulated)."""
LOGIT_BYTES_FP32 = 16
ACTIVATION_BASE_BYTES = int(0.103 * GIB)
"""What every warm-up needs whatever the model: positions, slots, sampling state. Fitted."""
SAMPLER_HIDDEN_COPIES = 1.2
"""Hidden states alive while the sampler runs. Fitted."""
MLP_HIDDEN_COPIES = 2.6
"""Hidden states alive while a layer's MLP runs: input, residual, output in part. Fitted."""
MLP_WIDTHS = 3
"""Gate, up and their product are alive at once."""
PIPELINE_HIDDEN_COPIES = 2
"""Hidden state and residual sent between pipeline stages."""
ENCODER_BYTES = int(0.2 * GIB)
"""Profiling run of a vision encoder; Gemma 3 and Mistral 3.1 left 0.08-0.27 GiB beside the language model."""
CONTEXT_BYTES = int(0.51 * GIB)
"""CUDA context that exists before the engine measures; outside its budget (init log of 0.19)."""
NON_TORCH_SINGLE_BYTES = int(0.25 * GIB)
"""CUDA libraries on one GPU."""
NON_TORCH_PIPELINE_BYTES = int(0.07 * GIB)
"""With pipeline stages the libraries are loaded before the measurement begins."""
NON_TORCH_NVLS_BYTES = int(2.07 * GIB)
"""Collective buffers with NVLink SHARP: Hopper class and later, TP 2."""
NON_TORCH_TP_BYTES = int(0.34 * GIB)
"""Collective buffers elsewhere: 0.20-0.43 GiB in logs of A100-40 and RTX 3090 / 4090."""
NON_TORCH_PER_RANK_BYTES = int(0.03 * GIB)
"""For each rank beyond two."""
GRAPH_BASE_BYTES = int(0.44 * GIB)
GRAPH_PER_LAYER_BYTES = int(0.0145 * GIB)
"""Captured CUDA graphs; base and per layer of the stage, fitted with a mean error of 0.09 GiB."""
LARGEST_CAPTURED_BATCH = 256
"""SGLang's ``cuda_graph_max_bs`` on 80 GB GPUs (``server_args.py``)."""
WIDE_ELEMENT = 4


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Bytes on one GPU of one pipeline stage."""

    activation_bytes: int
    non_torch_bytes: int
    graph_bytes: int
    context_bytes: int


def estimate_runtime(deployment: Deployment, settings: Settings, *, stage_layers: int, last_stage: bool) -> Runtime:
    """Runtime zone of one stage; the last stage also holds logits for every sequence."""
    return Runtime(
        activation_bytes=activation_bytes(deployment, settings, last_stage=last_stage),
        non_torch_bytes=non_torch_bytes(deployment),
        graph_bytes=GRAPH_BASE_BYTES + GRAPH_PER_LAYER_BYTES * stage_layers,
        context_bytes=CONTEXT_BYTES,
    )


def activation_bytes(deployment: Deployment, settings: Settings, *, last_stage: bool) -> int:
    """Peak of the warm-up: the wider of an MLP at the full token budget and the sampler at every sequence.

    MLP: T · 3 · I / TP · b + 2.6 · T · H · b; sampler: S · V · 14 + 1.2 · T · H · b; both + 0.1 GiB. Expert
    workspaces and pipeline buffers are held beside either.
    """
    model, tokens = deployment.model, settings.max_num_batched_tokens
    element = model.storage.plain_bytes_per_parameter
    hidden = tokens * model.hidden_size * element
    width = tokens * MLP_WIDTHS * _dense_width(model) * element / deployment.tp
    mlp = width + MLP_HIDDEN_COPIES * hidden
    per_logit = LOGIT_BYTES_FP32 if element >= WIDE_ELEMENT else LOGIT_BYTES
    sampler = _warm_seqs(deployment, settings) * model.vocab_size * per_logit + SAMPLER_HIDDEN_COPIES * hidden
    peak = max(mlp, sampler) if last_stage else mlp
    pipeline = PIPELINE_HIDDEN_COPIES * hidden if deployment.pp > 1 else 0
    encoder = ENCODER_BYTES if model.multimodal else 0
    return round(ACTIVATION_BASE_BYTES + peak + pipeline + encoder + expert_workspace_bytes(deployment, tokens))


def _dense_width(model: ModelSpec) -> int:
    """Widest MLP every token passes: where all layers have experts, that of the shared experts."""
    if model.moe is None or model.moe.moe_layers < model.layers:
        return model.intermediate_size
    return model.moe.expert_size * model.moe.shared_expert_parameters // model.moe.expert_parameters


def _warm_seqs(deployment: Deployment, settings: Settings) -> int:
    """Sequences the sampler is warmed up with: vLLM all it may run, others their largest captured batch."""
    if deployment.engine.fraction_of is FractionOf.TOTAL:
        return settings.max_num_seqs
    return min(settings.max_num_seqs, LARGEST_CAPTURED_BATCH)


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
    if deployment.tp > 1:
        pair = NON_TORCH_NVLS_BYTES if is_large_class(deployment.gpu) else NON_TORCH_TP_BYTES
        return pair + NON_TORCH_PER_RANK_BYTES * (deployment.tp - 2)
    return NON_TORCH_PIPELINE_BYTES if deployment.pp > 1 else NON_TORCH_SINGLE_BYTES
