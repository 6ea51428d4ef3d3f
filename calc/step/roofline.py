"""Seconds of one engine step: what the kernels must read and compute, against what the GPU can, plus fixed costs.

    step(n tokens, b sequences, C context tokens, P pairs) =
        Σ_class soft-max(FLOPs(n) / (share · peak), bytes(n) / (share · bandwidth)) + all-reduce(n) + layers + step
        + b · sequence + C · KV bytes / (share · bandwidth) + P · pair

The part in n is tabulated once (:meth:`StepModel.tokens_s`); for a fixed batch the rest is affine in the context, which
is what lets the simulator leap. A pipeline of ``pp`` stages works on ``pp`` micro-batches at once: each stage sees 1/pp
of the tokens, and a token passes all layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calc.cache.kv import layer_bytes_per_token
from calc.deployment import Deployment
from calc.engine import resolve
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.model import LayerKind, ModelSpec
from calc.simulator.simulate import StepCosts
from calc.step.collectives import Collective, collectives
from calc.step.draft import draft_costs
from calc.step.efficiency import Efficiency, efficiency_of
from calc.step.kernels import (
    KernelClass,
    activation_bytes,
    attention_reads,
    kernel_classes,
    needed,
    recurrent_costs,
)
from calc.workload import FloatArray

GRAPH_TOKENS = 512
"""Largest step replayed as a captured graph (vLLM ``max_cudagraph_capture_size``); larger ones prefill, launched kernel
by kernel."""
TABLE_TOKENS = 32_768
"""Largest step tabulated; beyond it the cost is linear (compute-bound)."""


@dataclass(frozen=True, kw_only=True)
class StepModel:
    """Coefficients of one step on one replica (one DP rank), in seconds; see the module for the formula."""

    classes: tuple[KernelClass, ...]
    pp: int
    fixed_s: float
    """Layers' launches and the engine's own code, once per step."""
    eager_s: float
    """Host time to launch all kernels of a step one by one."""
    draft_s: float = 0.0
    """Drafting the tokens of the next step, once per step."""
    draft_sequence_s: float = 0.0
    """The same per sequence."""
    collectives: tuple[Collective, ...]
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
    http_token_s: float
    """More outside the engine for each prompt token."""
    queued_step: bool
    """Asynchronous scheduling: an arrival waits one step more."""
    prefill_alone: bool = False
    """Prompts are prefilled in steps of their own."""
    max_tokens: int
    max_seqs: int
    bandwidth_bytes_per_s: float
    kv_bytes_per_token: float
    weight_bytes: float
    notes: tuple[Message, ...] = ()

    def tokens_s(self, tokens: FloatArray) -> FloatArray:
        """Everything that depends on the number of tokens in the step, and the fixed costs."""
        share = tokens / self.pp
        total = self.fixed_s + share * self.activation_token_s + self.collective_s(share)
        for kernel in self.classes:
            total = total + kernel.seconds(share)
        eager: FloatArray = np.where(tokens > GRAPH_TOKENS, np.maximum(total, self.eager_s), total)
        return eager + self.draft_s

    def mixed_s(self, decoding: FloatArray, fresh: FloatArray) -> FloatArray:
        """The same for sequences that decode and prompt tokens beside them: one step, or with ``prefill_alone`` two."""
        if self.prefill_alone:
            return self.tokens_s(decoding) + self.tokens_s(fresh)
        return self.tokens_s(decoding + fresh)

    def collective_s(self, tokens: FloatArray) -> FloatArray:
        """What ranks exchange for ``tokens`` of one stage."""
        total = np.zeros(tokens.shape)
        for collective in self.collectives:
            total = total + collective.seconds(tokens)
        return total

    def with_prompts(self, mean_tokens: float) -> StepModel:
        """The same with what prompts of this mean length take on their way in."""
        return replace(self, http_s=self.http_s + mean_tokens * self.http_token_s)

    def decode_s(self, sequences: float, context_tokens: float) -> float:
        """One pure decode step: ``sequences`` running, ``context_tokens`` in all of them together."""
        within = min(context_tokens, sequences * self.window_tokens) if self.window_tokens else 0.0
        return (
            float(self.tokens_s(np.array([sequences]))[0])
            + (self.sequence_s + self.draft_sequence_s) * sequences
            + self.context_s * context_tokens
            + self.window_s * within
        )

    def prefill_only_s(self, prompt_tokens: FloatArray, cached_tokens: FloatArray) -> FloatArray:
        """Seconds of prompts each alone in one step (chunking adds a weight read per chunk)."""
        fresh = prompt_tokens - cached_tokens
        pairs = fresh * (cached_tokens + (fresh + 1) / 2)
        near = np.minimum(prompt_tokens, self.window_tokens)
        total: FloatArray = (
            self.tokens_s(fresh)
            + self.sequence_s
            + self.prefill_s
            + self.context_s * prompt_tokens
            + self.pair_s * pairs
            + self.window_pair_s * near * fresh
        )
        return total

    def costs(self) -> StepCosts:
        """As the simulator takes them."""
        grid = np.arange(min(self.max_tokens, TABLE_TOKENS) + 2, dtype=np.float64)
        table = self.tokens_s(grid)
        return StepCosts(
            tokens_s=table,
            token_beyond_s=float(table[-1] - table[-2]),
            sequence_s=self.sequence_s + self.draft_sequence_s,
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
        parts["communication"] += float(self.collective_s(share)[0])
        parts["memory_bandwidth"] += self.draft_s
        parts["compute"] += self.draft_sequence_s * sequences
        parts["overhead"] += self.fixed_s + self.sequence_s * sequences
        if tokens > GRAPH_TOKENS:
            parts["overhead"] += max(0.0, self.eager_s - sum(parts.values()))
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
    bandwidth = needed(gpu.bandwidth_bytes_per_s, gpu, msg("memory bandwidth (GB/s)"))
    reads = attention_reads(deployment, settings, shares, bandwidth)
    classes = kernel_classes(deployment, shares, bandwidth)
    state_s, state_token_s = recurrent_costs(deployment, shares, bandwidth)
    draft_s, draft_sequence_s = draft_costs(deployment, shares, bandwidth)
    return StepModel(
        classes=classes,
        pp=deployment.pp,
        fixed_s=_layers_s(model, shares, deployment.engine.layer_launch_share)
        + (shares.step_s if settings.async_scheduling else shares.sync_step_s * deployment.engine.step_host_factor),
        eager_s=_eager_s(model, shares) * deployment.engine.host_launch_factor,
        collectives=collectives(deployment, shares),
        activation_token_s=state_token_s + activation_bytes(deployment) / (bandwidth * shares.activation_share),
        sequence_s=state_s + shares.sequence_s + shares.layer_sequence_s * model.layers / deployment.pp,
        draft_s=draft_s,
        draft_sequence_s=draft_sequence_s,
        prefill_s=shares.prefill_s,
        http_s=shares.http_s if http else 0.0,
        http_token_s=shares.http_token_s if http else 0.0,
        queued_step=settings.async_scheduling,
        prefill_alone=deployment.engine.prefill_alone,
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
    if shares.is_alike:
        return (
            msg(
                "No kernel measurements of {gpu} are known: those of {other}, a GPU of its kind, are applied.",
                gpu=gpu.name,
                other=shares.row.upper(),
            ),
        )
    if shares.row != "generic":
        return ()
    return (
        msg(
            "No kernel measurements of {gpu} are known: the median shares of other GPUs are applied.",
            gpu=gpu.name,
        ),
    )


def _layers_s(model: ModelSpec, shares: Efficiency, launch_share: float) -> float:
    """Launch latency of all kernels of a step."""
    latent_layers = sum(group.layers for group in model.groups if group.kind is LayerKind.MLA)
    total_s = model.layers * shares.layer_s * launch_share + latent_layers * shares.mla_layer_s
    if model.moe:
        shared_s = shares.shared_expert_s if model.moe.shared_expert_parameters else 0.0
        total_s += model.moe.moe_layers * (shares.moe_layer_s + shared_s)
    return total_s


def _eager_s(model: ModelSpec, shares: Efficiency) -> float:
    """Host time of a step launched kernel by kernel."""
    moe_layers = model.moe.moe_layers if model.moe else 0
    return model.layers * shares.eager_layer_s + moe_layers * shares.eager_moe_layer_s
