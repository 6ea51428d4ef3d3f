"""The runtime zone of a GPU: activations at the profiling peak, memory outside the tensor allocator, CUDA graphs.

Constants are fitted on 37 vLLM 0.19 starts on an H100 (Llama, Qwen, Gemma, Granite, Phi, Mistral, gpt-oss, Qwen-MoE;
TP 1-4, PP 1-4): see ``tests/golden/vllm_0.19_memory.csv`` for the errors they leave.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.deployment import Deployment
from calc.engine import Settings
from calc.units import GIB

LOGIT_BYTES = 14
"""Per logit of the sampler's warm-up: the BF16 logits and three FP32 copies (softmax, sort, probabilities)."""
LOGIT_BYTES_FP32 = 16
ACTIVATION_BASE_BYTES = int(0.103 * GIB)
HIDDEN_COPIES = 1.2
MLP_HIDDEN_COPIES = 2.6
CONTEXT_BYTES = int(0.51 * GIB)
"""CUDA context present before the engine measures; outside its budget."""
NON_TORCH_SINGLE_BYTES = int(0.25 * GIB)
NON_TORCH_TP_BYTES = int(2.07 * GIB)
NON_TORCH_PP_BYTES = int(0.07 * GIB)
NON_TORCH_PER_TP_BYTES = int(0.03 * GIB)
GRAPH_BASE_BYTES = int(0.55 * GIB)
GRAPH_PER_LAYER_BYTES = int(0.011 * GIB)


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Bytes on one GPU of one pipeline stage."""

    activation_bytes: int
    non_torch_bytes: int
    graph_bytes: int
    context_bytes: int


def estimate_runtime(deployment: Deployment, settings: Settings, *, last_stage: bool) -> Runtime:
    """Runtime zone of one stage; the last stage also holds logits for every sequence."""
    return Runtime(
        activation_bytes=activation_peak_bytes(deployment, settings, last_stage=last_stage),
        non_torch_bytes=non_torch_bytes(deployment),
        graph_bytes=GRAPH_BASE_BYTES + GRAPH_PER_LAYER_BYTES * deployment.model.layers // deployment.pp,
        context_bytes=CONTEXT_BYTES,
    )


def activation_peak_bytes(deployment: Deployment, settings: Settings, *, last_stage: bool) -> int:
    """Peak of the dummy run: the wider of the MLP at the full token budget and the sampler at every sequence."""
    model = deployment.model
    element = model.storage.plain_bytes_per_parameter
    hidden = settings.max_num_batched_tokens * model.hidden_size * element
    wide = settings.max_num_batched_tokens * 3 * model.intermediate_size * element / deployment.tp
    mlp = ACTIVATION_BASE_BYTES + wide + MLP_HIDDEN_COPIES * hidden
    per_logit = LOGIT_BYTES if element < 4 else LOGIT_BYTES_FP32  # noqa: PLR2004 - FP32 elements
    sampler = ACTIVATION_BASE_BYTES + HIDDEN_COPIES * hidden + settings.max_num_seqs * model.vocab_size * per_logit
    return round(max(mlp, sampler) if last_stage else mlp)


def non_torch_bytes(deployment: Deployment) -> int:
    """CUDA libraries and NCCL buffers inside the budget; tensor parallelism adds its communication buffers."""
    if deployment.tp > 1:
        return NON_TORCH_TP_BYTES + NON_TORCH_PER_TP_BYTES * (deployment.tp - 2)
    return NON_TORCH_PP_BYTES if deployment.pp > 1 else NON_TORCH_SINGLE_BYTES
