"""Seconds of one engine step: what the kernels must read and compute, against what the GPU can, plus fixed costs.

    step(n tokens, b sequences, C context tokens, P pairs) =
        Σ_class soft-max(FLOPs(n) / (share · peak), bytes(n) / (share · bandwidth)) + all-reduce(n) + layers + step
        + b · sequence + C · KV bytes / (share · bandwidth) + P · pair

The part in n is tabulated once (:meth:`StepModel.tokens_s`); for a fixed batch the rest is affine in the context, which
is what lets the simulator leap. A pipeline of ``pp`` stages works on ``pp`` micro-batches at once: each stage sees 1/pp
of the tokens, and a token passes all layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from calc.deployment import Deployment
from calc.efficiency import Efficiency, efficiency_of, for_ranks
from calc.engine import Settings, resolve
from calc.errors import InputError
from calc.hardware import Gpu
from calc.kv import layer_bytes_per_token
from calc.messages import Message, msg
from calc.model import LayerGroup, LayerKind, ModelSpec
from calc.simulate import StepCosts
from calc.workload import FloatArray

SOFT_MAX_POWER = 4
"""(c⁴ + m⁴)^¼ of compute and memory seconds reproduces the measured bend: H100 BF16 at 128 / 256 / 512 rows reaches
.35 / .65 / .81 of peak (measured .35 / .65 / .82)."""
ACTIVATION_PASSES = 12
"""Hidden-size vectors read or written per token and layer by norms, residuals, rotary and activation kernels."""
ACTIVATION_BYTES = 2
ALLREDUCES_PER_LAYER = 2
"""After attention and after the feed-forward block."""
TABLE_TOKENS = 32_768
"""Largest step tabulated; beyond it the cost is linear (compute-bound)."""
GEMM_FLOPS = 2
"""Multiply and add."""
NARROW_BYTES = 1.5
"""Weights narrower than this count as FP8 for the bandwidth share, below 0.9 as FP4."""
FP4_BYTES = 0.9
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
        touched = np.ones_like(tokens)
        if self.experts:
            miss = 1 - self.experts_per_token / self.experts
            touched = 1 - miss ** (tokens * self.token_factor)
        return touched * (self.weight_bytes / self.bytes_per_s)

    def seconds(self, tokens: FloatArray) -> FloatArray:
        """Compute and memory overlap; near the bend neither hides the other fully."""
        compute, memory = self.compute_s(tokens), self.memory_s(tokens)
        power = SOFT_MAX_POWER
        total: FloatArray = (compute**power + memory**power) ** (1 / power)
        return total


@dataclass(frozen=True, kw_only=True)
class StepModel:
    """Coefficients of one step on one replica (one DP rank), in seconds; see the module for the formula."""

    classes: tuple[KernelClass, ...]
    pp: int
    fixed_s: float
    """Layers' launches and the engine's own code, once per step."""
    allreduce_s: float
    """Latency of all all-reduces of a step."""
    allreduce_token_s: float
    """Transfer per token in the step."""
    activation_token_s: float
    """Element-wise kernels, per token."""
    sequence_s: float
    context_s: float
    window_s: float
    window_tokens: int
    pair_s: float
    window_pair_s: float
    prefill_s: float
    http_s: float
    queued_step: bool
    """Asynchronous scheduling: an arrival waits one step more."""
    max_tokens: int
    max_seqs: int
    bandwidth_bytes_per_s: float
    kv_bytes_per_token: float
    weight_bytes: float
    notes: tuple[Message, ...] = ()

    def tokens_s(self, tokens: FloatArray) -> FloatArray:
        """Everything that depends on the number of tokens in the step, and the fixed costs."""
        share = tokens / self.pp
        total = self.fixed_s + self.allreduce_s + share * (self.allreduce_token_s + self.activation_token_s)
        for kernel in self.classes:
            total = total + kernel.seconds(share)
        return total

    def decode_s(self, sequences: float, context_tokens: float) -> float:
        """One pure decode step: ``sequences`` running, ``context_tokens`` in all of them together."""
        within = min(context_tokens, sequences * self.window_tokens) if self.window_tokens else 0.0
        return (
            float(self.tokens_s(np.array([sequences]))[0])
            + self.sequence_s * sequences
            + self.context_s * context_tokens
            + self.window_s * within
        )

    def prefill_only_s(self, prompt_tokens: float, cached_tokens: float = 0.0) -> float:
        """One prompt alone in one step, in seconds (chunking adds a weight read per chunk)."""
        fresh = prompt_tokens - cached_tokens
        pairs = fresh * (cached_tokens + (fresh + 1) / 2)
        near = min(prompt_tokens, self.window_tokens)
        return (
            float(self.tokens_s(np.array([fresh]))[0])
            + self.sequence_s
            + self.prefill_s
            + self.context_s * prompt_tokens
            + self.pair_s * pairs
            + self.window_pair_s * near * fresh
        )

    def costs(self) -> StepCosts:
        """As the simulator takes them."""
        grid = np.arange(min(self.max_tokens, TABLE_TOKENS) + 2, dtype=np.float64)
        table = self.tokens_s(grid)
        return StepCosts(
            tokens_s=table,
            token_beyond_s=float(table[-1] - table[-2]),
            sequence_s=self.sequence_s,
            prefill_s=self.prefill_s,
            context_s=self.context_s,
            window_s=self.window_s,
            pair_s=self.pair_s,
            window_pair_s=self.window_pair_s,
            window_tokens=self.window_tokens,
        )

    def parts_s(self, tokens: float, sequences: float, context_tokens: float, pairs: float = 0.0) -> dict[str, float]:
        """One step split by what it waits for: compute, memory_bandwidth, communication, overhead (seconds)."""
        share = np.array([tokens / self.pp])
        parts = dict.fromkeys(("compute", "memory_bandwidth", "communication", "overhead"), 0.0)
        for kernel in self.classes:
            wins = "compute" if kernel.compute_s(share)[0] > kernel.memory_s(share)[0] else "memory_bandwidth"
            parts[wins] += float(kernel.seconds(share)[0])
        parts["compute"] += self.pair_s * pairs
        within = min(context_tokens, sequences * self.window_tokens)
        parts["memory_bandwidth"] += self.context_s * context_tokens + self.window_s * within
        parts["memory_bandwidth"] += float(share[0]) * self.activation_token_s
        parts["communication"] += self.allreduce_s + float(share[0]) * self.allreduce_token_s
        parts["overhead"] += self.fixed_s + self.sequence_s * sequences
        return parts

    def intensity(self, tokens: float, context_tokens: float) -> float:
        """FLOPs per byte of a step on one GPU: below the GPU's ridge point it waits for memory."""
        share = np.array([tokens / self.pp])
        flops = sum(kernel.flops_per_token * float(share[0]) for kernel in self.classes)
        read = sum(float(kernel.memory_s(share)[0]) * kernel.bytes_per_s for kernel in self.classes)
        return flops / (read + context_tokens / self.pp * self.kv_bytes_per_token)


def step_model(deployment: Deployment, *, efficiency: Efficiency | None = None, http: bool = True) -> StepModel:
    """The step model of one replica; refuses when the GPU's bandwidth, peak or link is not known."""
    gpu, model = deployment.gpu, deployment.model
    shares = efficiency or efficiency_of(gpu)
    settings = resolve(deployment)
    bandwidth = _needed(gpu.bandwidth_bytes_per_s, gpu, "memory bandwidth (GB/s)")
    reads = _attention(deployment, settings, shares, bandwidth)
    latency_s, token_s = _allreduce(deployment, shares)
    classes = _classes(deployment, shares, bandwidth)
    layer_parts = model.layers * shares.layer_s
    return StepModel(
        classes=classes,
        pp=deployment.pp,
        fixed_s=layer_parts + (shares.step_s if settings.async_scheduling else shares.sync_step_s),
        allreduce_s=latency_s,
        allreduce_token_s=token_s,
        activation_token_s=model.layers * model.hidden_size * ACTIVATION_PASSES * ACTIVATION_BYTES / bandwidth,
        sequence_s=shares.sequence_s + shares.layer_sequence_s * model.layers / deployment.pp,
        prefill_s=shares.prefill_s,
        http_s=shares.http_s if http else 0.0,
        queued_step=settings.async_scheduling,
        max_tokens=settings.max_num_batched_tokens,
        max_seqs=min(settings.max_num_seqs, settings.max_num_batched_tokens),
        bandwidth_bytes_per_s=bandwidth,
        kv_bytes_per_token=sum(
            group.layers * layer_bytes_per_token(group, settings.kv_dtype, deployment.tp) for group in model.groups
        ),
        weight_bytes=sum(kernel.weight_bytes for kernel in classes),
        notes=_notes(gpu, shares),
        **reads,
    )


def binding(model: StepModel, *, tokens: float, sequences: float, context_tokens: float, pairs: float = 0.0) -> str:
    """What a step at this point mostly waits for: compute, memory_bandwidth, communication or overhead."""
    parts = model.parts_s(tokens, sequences, context_tokens, pairs)
    return max(parts, key=lambda name: parts[name])


def _notes(gpu: Gpu, shares: Efficiency) -> tuple[Message, ...]:
    if shares.row != "generic":
        return ()
    return (
        msg(
            "No kernel measurements of {gpu} are known: the median shares of other GPUs are applied.",
            gpu=gpu.name,
        ),
    )


def _needed(value: float | None, gpu: Gpu, what: str) -> float:
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


def _classes(deployment: Deployment, shares: Efficiency, bandwidth: float) -> tuple[KernelClass, ...]:
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


class _Attention(TypedDict):
    context_s: float
    window_s: float
    pair_s: float
    window_pair_s: float
    window_tokens: int


def _attention(deployment: Deployment, settings: Settings, shares: Efficiency, bandwidth: float) -> _Attention:
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
        bytes_per_token = layer_bytes_per_token(group, settings.kv_dtype, deployment.tp)
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
    return width, width


def _allreduce(deployment: Deployment, shares: Efficiency) -> tuple[float, float]:
    """Seconds of all all-reduces of one step: latency, and per token in it (ring: 2(n−1)/n of the message)."""
    ranks, gpu = deployment.tp, deployment.gpu
    if ranks == 1:
        return 0.0, 0.0
    link = _needed(gpu.link_bytes_per_s, gpu, "NVLink or PCIe bandwidth (GB/s)")
    if gpu.nvlink_bytes_per_s:
        latency, share = for_ranks(shares.allreduce_s, ranks), shares.allreduce_share
    else:
        latency, share = for_ranks(shares.pcie_allreduce_s, ranks), for_ranks(shares.pcie_allreduce_share, ranks)
    calls = ALLREDUCES_PER_LAYER * deployment.model.layers
    message_bytes = deployment.model.hidden_size * ACTIVATION_BYTES * 2 * (ranks - 1) / ranks
    return calls * latency, calls * message_bytes / (link * share)
