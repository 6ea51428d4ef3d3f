"""What the kernels of one step read and compute: matrix products, attention, and what lies between them.

One GPU's share each, all layers together. Peaks come from the GPU, the shares of them that kernels reach from
:mod:`calc.step.efficiency`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lgamma
from typing import TypedDict

import numpy as np

from calc.cache.specs import endless_caches, read_bytes_per_token, state_bytes
from calc.deployment import Deployment
from calc.engine import Settings
from calc.errors import InputError
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.model import LayerGroup, LayerKind, ModelSpec, MoE
from calc.step.efficiency import Efficiency, for_ranks
from calc.workload import FloatArray

ACTIVATION_BYTES = 2
ACTIVATION_PASSES = 12
"""Hidden-size vectors read or written per token and layer by norms, residuals, rotary and activation kernels."""
GATED_PASSES = 3
"""Of the feed-forward width: the gate kernel reads two vectors and writes one."""
ROUTED_PASSES = 3
"""Of the hidden size, for each routed expert of a token: gathered, written back, and read again by the weighted sum."""
GEMM_FLOPS = 2
"""Multiply and add."""
NARROW_BYTES = 1.5
"""Weights narrower than this count as FP8 for the bandwidth share, below 0.9 as FP4."""
FP4_BYTES = 0.9
EXPECTED_LARGEST = {1: 0.0, 2: 0.56, 4: 1.03, 8: 1.42, 16: 1.77, 32: 2.07, 64: 2.34}
"""Mean of the largest of so many standard normal draws (order statistics)."""
BEST_SHARE = 0.95
"""Of bandwidth: more no kernel reaches."""
HOPPER = ("h100", "h800", "h200")
"""Rows of efficiencies of that generation."""
HALF_LOG_TAU = 0.9189385332046727
"""½·ln 2π."""
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
    apart: int = 1
    """Ranks that hold whole experts of their own (expert parallelism): the step waits for the busiest."""
    evenness: float = 2.0
    """How evenly tokens take to experts: 1 over the squared coefficient of variation of their popularity."""

    def compute_s(self, tokens: FloatArray) -> FloatArray:
        """Seconds of arithmetic for ``tokens`` in the step."""
        return tokens * (self.flops_per_token / self.flops_per_s)

    def memory_s(self, tokens: FloatArray) -> FloatArray:
        """Seconds of weight reads: of experts only those touched; of ``apart`` ranks the busiest touches more.

        The largest of so many normal draws lies :data:`EXPECTED_LARGEST` standard deviations above the mean; the
        variance of the share a rank's E/ranks experts have touched is p(1 − p)·ranks/E.
        """
        all_s = self.weight_bytes / self.bytes_per_s
        if not self.experts:
            return np.full(tokens.shape, all_s)
        touched = touched_share(self.experts_per_token / self.experts, self.evenness, tokens * self.token_factor)
        spread = np.sqrt(touched * (1 - touched) * self.apart / self.experts)
        busiest: FloatArray = np.minimum(1.0, touched + for_ranks(EXPECTED_LARGEST, self.apart) * spread)
        return busiest * all_s

    def seconds(self, tokens: FloatArray) -> FloatArray:
        """(c⁴ + m⁴)^¼: compute and memory overlap, but near the bend neither hides the other fully.

        H100 BF16 at 128 / 256 / 512 rows then reaches .35 / .65 / .81 of peak; the kernel table says .35 / .65 / .82.
        """
        compute, memory = self.compute_s(tokens), self.memory_s(tokens)
        compute2, memory2 = compute * compute, memory * memory
        total: FloatArray = np.sqrt(np.sqrt(compute2 * compute2 + memory2 * memory2))
        return total


def touched_share(taken_share: float, evenness: float, tokens: FloatArray) -> FloatArray:
    """Share of the experts that ``tokens`` tokens touch, when an expert's share of tokens is beta distributed.

    E[1 − (1 − q)^n] = 1 − Γ(β + n)·Γ(α + β) / (Γ(β)·Γ(α + β + n)) with mean α/(α + β) = k/E. With equally popular
    experts (α → ∞) it is 1 − (1 − k/E)^n, which no router's choices are.
    """
    if taken_share >= 1:
        return np.ones(tokens.shape)
    both = evenness / taken_share
    beta = both - evenness
    missed = log_gamma(beta + tokens) - log_gamma(both + tokens) + (lgamma(both) - lgamma(beta))
    touched: FloatArray = 1 - np.exp(missed)
    return touched


def log_gamma(values: FloatArray) -> FloatArray:
    """ln Γ by Stirling's series to 1/x³: better than 1e-3 from 1 on, 1e-5 from 2."""
    inverse = 1 / values
    tail = HALF_LOG_TAU + inverse * (1 / 12 - inverse * inverse / 360)
    total: FloatArray = (values - 0.5) * np.log(values) - values + tail
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
    gain = deployment.engine.weight_bandwidth_gain
    quantised = min(max(model.quantised_parameters - experts, 0), dense)
    expert_width = storage.bytes_per_parameter if model.quantised_parameters else storage.plain_bytes_per_parameter

    def kernel(name: str, parameters: float, width: float, ranks: int, active: float) -> KernelClass:
        peak, code = peak_flops_per_s(deployment.gpu, storage.compute_dtype if name != "plain" else "bf16")
        return KernelClass(
            name=name,
            flops_per_token=GEMM_FLOPS * active / ranks,
            weight_bytes=parameters * width / ranks,
            flops_per_s=peak * shares.compute_share.get(code, shares.compute_share["bf16"]),
            bytes_per_s=bandwidth * min(BEST_SHARE, shares.bandwidth_share[_width(width)] * gain),
        )

    found = []
    if quantised:
        found.append(kernel("quantised", quantised, storage.bytes_per_parameter, deployment.tp, quantised))
    if dense > quantised:
        rest = dense - quantised
        found.append(kernel("plain", rest, storage.plain_bytes_per_parameter, deployment.tp, rest))
    if moe:
        ranks, active = deployment.tp * deployment.dp, moe.experts_per_token * routed * deployment.dp
        found.append(_grouped(kernel("experts", experts, expert_width, ranks, active), deployment, moe, shares))
    return tuple(found)


def _grouped(kernel: KernelClass, deployment: Deployment, moe: MoE, shares: Efficiency) -> KernelClass:
    """Products over routed experts: which are touched, and on which rank they are."""
    return replace(
        kernel,
        bytes_per_s=kernel.bytes_per_s * shares.expert_bandwidth_share,
        experts=moe.experts,
        experts_per_token=moe.experts_per_token,
        token_factor=deployment.dp,
        apart=deployment.tp * deployment.dp if deployment.ep else 1,
        evenness=shares.expert_evenness,
    )


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
        reached = shares.attention_bandwidth_share * _narrow_share(deployment, settings, shares, group)
        per_token = max(bytes_per_token / (bandwidth * reached), decode_flops / peak)
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


def _narrow_share(deployment: Deployment, settings: Settings, shares: Efficiency, group: LayerGroup) -> float:
    """What the engine's attention kernels lose on caches narrower than BF16."""
    is_narrow = settings.kv_bytes_per_element < ACTIVATION_BYTES and group.kind is not LayerKind.MLA
    return deployment.engine.hopper_narrow_cache_share if is_narrow and shares.row in HOPPER else 1.0


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


def activation_bytes(deployment: Deployment) -> float:
    """Bytes per token that the kernels between the matrix products move on one GPU, all layers together.

    The hidden state is whole on every TP rank, the feed-forward width divided. Routed experts gather a token's hidden
    state once for each of its experts on every rank that holds a slice of them; with expert parallelism a rank sees
    only its share of them.
    """
    model, tp = deployment.model, deployment.tp
    moe_layers = model.moe.moe_layers if model.moe else 0
    elements: float = ACTIVATION_PASSES * model.hidden_size * model.layers
    elements += GATED_PASSES * model.intermediate_size * (model.layers - moe_layers) / tp
    if model.moe:
        ranks = tp * deployment.dp if deployment.ep else 1
        width = ROUTED_PASSES * model.hidden_size / ranks + GATED_PASSES * model.moe.expert_size / tp
        elements += moe_layers * model.moe.experts_per_token * width
    return ACTIVATION_BYTES * elements
