"""Seconds it takes to draft the tokens that a speculative step verifies."""

from __future__ import annotations

from calc.deployment import Deployment
from calc.step.efficiency import Efficiency
from calc.step.kernels import GEMM_FLOPS, peak_flops_per_s

LOOKED_UP = ("ngram", "suffix", "lookup")
"""Methods (parts of their names) that find drafts in the text itself, on the CPU and beside the GPU's work."""
PLAIN_BYTES = 2.0
"""Heads of drafters are stored in 16 bits."""


def draft_costs(deployment: Deployment, shares: Efficiency, bandwidth: float) -> tuple[float, float]:
    """Once per step, and per sequence; nothing where drafts are looked up or speculation is not simulated.

    A head (EAGLE, Medusa, multi-token prediction) drafts one token after the other: each reads about one layer and
    the output matrix. A whole model as a drafter takes longer; its size is not known here.
    """
    method, model = deployment.spec_method or "", deployment.model
    drafted = deployment.spec_tokens
    if deployment.serving.accepted_tokens is None or not drafted or any(part in method for part in LOOKED_UP):
        return 0.0, 0.0
    layer = model.active_parameters / model.layers / deployment.tp
    head = model.vocab_size * model.hidden_size / deployment.tp
    read_bytes = layer * model.storage.bytes_per_parameter + head * PLAIN_BYTES
    launch_s = shares.layer_s + (shares.moe_layer_s if model.moe else 0.0)
    peak, code = peak_flops_per_s(deployment.gpu, "bf16")
    flops_per_s = peak * shares.compute_share.get(code, shares.compute_share["bf16"])
    read_s = read_bytes / (bandwidth * shares.bandwidth_share["bf16"])
    return drafted * (read_s + launch_s), drafted * GEMM_FLOPS * (layer + head) / flops_per_s
