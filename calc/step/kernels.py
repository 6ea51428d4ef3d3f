"""What the kernels of one step read, compute and send: matrix products, attention, collectives.

One GPU's share each, all layers together. Peaks come from the GPU, the shares of them that kernels reach from
:mod:`calc.step.efficiency`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from calc.cache.specs import endless_caches, read_bytes_per_token, state_bytes
from calc.deployment import Deployment
from calc.engine import Settings
from calc.errors import InputError
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.model import LayerGroup, LayerKind, ModelSpec
from calc.step.efficiency import Efficiency, for_ranks
from calc.workload import FloatArray

ACTIVATION_BYTES = 2
ALLREDUCES_PER_LAYER = 2
"""After attention and after the feed-forward block."""
GATHER_AND_SCATTER = 2
GEMM_FLOPS = 2
"""Multiply and add."""
NARROW_BYTES = 1.5
"""Weights narrower than this count as FP8 for the bandwidth share, below 0.9 as FP4."""
FP4_BYTES = 0.9
STATE_MOVES = 2
"""A decode step reads a recurrent state and writes it back."""
STATE_FLOPS_PER_ELEMENT = 6
"""Per token and element of the matrix: decay, outer product and product with the query, multiply and add each."""
FALLBACK_COMPUTE = ("bf16", "fp16")
"""Peaks a dtype without hardware support runs at: the engine widens the weights in the kernel (Marlin)."""


@dataclass(frozen=True, kw_only=True)
class KernelClass:
    """Matrix products of one kind, on one GPU, all layers together."""

    name: str
    flops_per_token: float
    weight_bytes: float
    flops_per_s: float
    """Peak × share."""
    bytes_per_s: float
    experts: int = 0
    experts_per_token: int = 0
    token_factor: int = 1
    """DP ranks whose tokens meet in the experts."""

    def compute_s(self, tokens: FloatArray) -> FloatArray:
        """Seconds of arithmetic for ``tokens`` in the step."""
        return tokens * (self.flops_per_token / self.flops_per_s)

    def memory_s(self, tokens: FloatArray) -> FloatArray:
        """Seconds of weight reads: of experts only those touched, E·(1 − (1 − k/E)^n) expected."""
        all_s = self.weight_bytes / self.bytes_per_s
        if not self.experts:
            return np.full(tokens.shape, all_s)
        miss = 1 - self.experts_per_token / self.experts
        touched: FloatArray = 1 - miss ** (tokens * self.token_factor)
        return touched * all_s

    def seconds(self, tokens: FloatArray) -> FloatArray:
        """(c⁴ + m⁴)^¼: compute and memory overlap, but near the bend neither hides the other fully.

        H100 BF16 at 128 / 256 / 512 rows then reaches .35 / .65 / .81 of peak; the kernel table says .35 / .65 / .82.
        """
        compute, memory = self.compute_s(tokens), self.memory_s(tokens)
        compute2, memory2 = compute * compute, memory * memory
        total: FloatArray = np.sqrt(np.sqrt(compute2 * compute2 + memory2 * memory2))
        return total


def needed(value: float | None, gpu: Gpu, what: Message) -> float:
    """A figure of the GPU that is never guessed."""
    if value is None or value <= 0:
        raise InputError(
            msg("{what} of {gpu} is not known, so latency cannot be computed: enter it.", what=what, gpu=gpu.name)
        )
    return value


def peak_flops_per_s(gpu: Gpu, dtype: str) -> tuple[float, str]:
    """Peak and the dtype it belongs to; a dtype the GPU lacks runs as BF16 or FP16."""
    for code in (dtype, *FALLBACK_COMPUTE):
        if gpu.flops_per_s.get(code):
            return gpu.flops_per_s[code], code
    raise InputError(
        msg(
            "The {dtype} FLOP/s of {gpu} are not known, so latency cannot be computed: enter them.",
            dtype=dtype,
            gpu=gpu.name,
        )
    )


def _width(bytes_per_parameter: float) -> str:
    if bytes_per_parameter < FP4_BYTES:
        return "fp4"
    return "fp8" if bytes_per_parameter < NARROW_BYTES else "bf16"


def kernel_classes(deployment: Deployment, shares: Efficiency, bandwidth: float) -> tuple[KernelClass, ...]:
    """Quantised and plain dense products, and routed experts."""
    model, storage = deployment.model, deployment.model.storage
    moe = model.moe
    routed = moe.moe_layers * moe.expert_parameters if moe else 0
    dense = model.active_parameters - (moe.experts_per_token * routed if moe else 0)
    experts = moe.experts * routed if moe else 0
    quantised = min(max(model.quantised_parameters - experts, 0), dense)
    expert_width = storage.bytes_per_parameter if model.quantised_parameters else storage.plain_bytes_per_parameter

    def kernel(name: str, parameters: float, width: float, ranks: int, active: float, **routing: int) -> KernelClass:
        peak, code = peak_flops_per_s(deployment.gpu, storage.compute_dtype if name != "plain" else "bf16")
        return KernelClass(
            name=name,
            flops_per_token=GEMM_FLOPS * active / ranks,
            weight_bytes=parameters * width / ranks,
            flops_per_s=peak * shares.compute_share.get(code, shares.compute_share["bf16"]),
            bytes_per_s=bandwidth * shares.bandwidth_share[_width(width)],
            **routing,
        )

    found = []
    if quantised:
        found.append(kernel("quantised", quantised, storage.bytes_per_parameter, deployment.tp, quantised))
    if dense > quantised:
        rest = dense - quantised
        found.append(kernel("plain", rest, storage.plain_bytes_per_parameter, deployment.tp, rest))
    if moe:
        found.append(
            kernel(
                "experts",
                experts,
                expert_width,
                deployment.tp * deployment.dp,
                moe.experts_per_token * routed * deployment.dp,
                experts=moe.experts,
                experts_per_token=moe.experts_per_token,
                token_factor=deployment.dp,
            )
        )
    return tuple(found)


class AttentionReads(TypedDict):
    """Seconds per context token read and per prefill pair, in full and in windowed layers."""

    context_s: float
    window_s: float
    pair_s: float
    window_pair_s: float
    window_tokens: int


def attention_reads(deployment: Deployment, settings: Settings, shares: Efficiency, bandwidth: float) -> AttentionReads:
    """Seconds per context token read and per prefill pair, for full and for windowed layers."""
    peak = peak_flops_per_s(deployment.gpu, "bf16")[0] * shares.attention_compute_share
    read_s = {True: 0.0, False: 0.0}
    pair_s = {True: 0.0, False: 0.0}
    windows = []
    for group in deployment.model.groups:
        local = group.window_tokens is not None
        if group.window_tokens is not None:
            windows.append((group.window_tokens, group.layers))
        decode_flops, prefill_flops = _attention_flops(deployment.model, group, deployment.tp)
        bytes_per_token = read_bytes_per_token(group, settings.kv_dtype, deployment.tp)
        per_token = max(bytes_per_token / (bandwidth * shares.attention_bandwidth_share), decode_flops / peak)
        read_s[local] += group.layers * per_token / deployment.pp
        pair_s[local] += group.layers * prefill_flops / peak / deployment.pp
    mean_window = sum(w * n for w, n in windows) / sum(n for _, n in windows) if windows else 0
    return {
        "context_s": read_s[False],
        "window_s": read_s[True],
        "pair_s": pair_s[False],
        "window_pair_s": pair_s[True],
        "window_tokens": round(mean_window),
    }


def _attention_flops(model: ModelSpec, group: LayerGroup, tp: int) -> tuple[float, float]:
    """FLOPs per (new token, earlier token) of one layer on one GPU: in decode and in prefill."""
    if group.kind is LayerKind.MLA and model.latent is not None:
        latent = model.latent
        decode = 2 * latent.kv_rank + latent.rope_dim
        prefill = latent.nope_dim + latent.rope_dim + latent.v_dim
        return GEMM_FLOPS * model.heads * decode / tp, GEMM_FLOPS * model.heads * prefill / tp
    width = GEMM_FLOPS * model.heads * (group.head_dim + (group.v_head_dim or group.head_dim)) / tp
    if group.caches:
        width *= max((1 / cache.tokens_per_record for cache in endless_caches(group)), default=0.0)
    return width, width


def recurrent_costs(deployment: Deployment, shares: Efficiency, bandwidth: float) -> tuple[float, float]:
    """Seconds per decoding sequence and step, which reads and writes its state, and per token, which updates it."""
    model, tp, pp = deployment.model, deployment.tp, deployment.pp
    moved = STATE_MOVES * state_bytes(model, tp) / pp
    elements = sum(group.layers * group.state.matrix_elements for group in model.groups if group.state is not None)
    peak = peak_flops_per_s(deployment.gpu, "bf16")[0] * shares.attention_compute_share
    flops = STATE_FLOPS_PER_ELEMENT * elements / tp
    return moved / (bandwidth * shares.attention_bandwidth_share), flops / peak


def communication(deployment: Deployment, shares: Efficiency) -> tuple[float, float]:
    """Seconds of all collectives of one step: latency, and per token in it.

    Two all-reduces a layer over the TP ranks; with DP the experts of a MoE layer are shared by TP × DP ranks, which
    gather all ranks' tokens and scatter the results: together as much as one all-reduce of them.
    """
    model, tp, dp = deployment.model, deployment.tp, deployment.dp
    per_call_s, per_token_s = _allreduce(deployment.gpu, shares, model.hidden_size, tp)
    calls = ALLREDUCES_PER_LAYER * model.layers
    latency_s, token_s = calls * per_call_s, calls * per_token_s
    if dp > 1 and model.moe:
        per_call_s, per_token_s = _allreduce(deployment.gpu, shares, model.hidden_size, tp * dp)
        latency_s += model.moe.moe_layers * GATHER_AND_SCATTER * per_call_s
        token_s += model.moe.moe_layers * dp * per_token_s
    return latency_s, token_s


def _allreduce(gpu: Gpu, shares: Efficiency, hidden_size: int, ranks: int) -> tuple[float, float]:
    """Latency of one all-reduce and its seconds per token (ring: 2(n−1)/n of the message)."""
    if ranks == 1:
        return 0.0, 0.0
    link = needed(gpu.link_bytes_per_s, gpu, msg("NVLink or PCIe bandwidth (GB/s)"))
    if gpu.nvlink_bytes_per_s:
        latency, share = for_ranks(shares.allreduce_s, ranks), shares.allreduce_share
    else:
        latency, share = for_ranks(shares.pcie_allreduce_s, ranks), for_ranks(shares.pcie_allreduce_share, ranks)
    return latency, hidden_size * ACTIVATION_BYTES * 2 * (ranks - 1) / ranks / (link * share)
