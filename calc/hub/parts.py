"""A layer's matrices as parts: how many elements, how parallelism divides them, and what the checkpoint calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from calc.cache.recurrent import StateKind
from calc.hub.families import Family
from calc.hub.quantisation import Storage
from calc.model import LayerWeights


class Split(StrEnum):
    """How parallelism divides a matrix."""

    EVEN = "even"
    """Over TP ranks."""
    KV_HEADS = "kv-heads"
    """Over TP ranks, but never below one KV head."""
    NONE = "none"
    """Every rank holds it in full."""
    EXPERTS = "experts"
    """Over TP, or over TP × DP."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some matrices of a layer that are stored alike."""

    elements: int
    split: Split
    module: str = ""
    """Name within the layer ("mlp.down_proj"); "" = never quantised."""
    active: int | None = None
    """Parameters one token touches; ``None`` = all."""
    copies: int = 0
    """Elements the engine holds beyond the checkpoint's."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """What a family's checkpoints call the blocks of a layer."""

    attention: str = "self_attn"
    state: str = "mamba"
    mlp: str = "mlp"
    experts: str = "mlp.experts"
    shared: str = "mlp.shared_experts"


def names_of(family: Family) -> Names:
    """Names of ``family``; exclusion lists in configs are written in them."""
    if family.hybrid == "nemotron":
        return Names(
            attention="mixer", state="mixer", mlp="mixer", experts="mixer.experts", shared="mixer.shared_experts"
        )
    mlp = _MLP.get(family.experts if family.experts == "llama4" else family.hybrid, "mlp")
    experts = _EXPERTS.get(family.name, f"{mlp}.experts")
    shared = f"{mlp}.shared_expert" if family.experts in ("qwen2", "llama4") else f"{mlp}.shared_experts"
    return Names(state=_STATE.get(family.state or StateKind.MAMBA2, "mamba"), mlp=mlp, experts=experts, shared=shared)


_MLP = {"lfm2": "feed_forward", "llama4": "feed_forward", "jamba": "feed_forward"}
_EXPERTS = dict.fromkeys(
    ("Mixtral", "MiniMax-M2", "MiniMax-Text-01", "Granite MoE", "Granite 4 hybrid", "Kimi Linear"),
    "block_sparse_moe.experts",
) | {"Gemma 4": "moe.experts"}
_STATE = {
    StateKind.GATED_DELTA_NET: "linear_attn",
    StateKind.KDA: "self_attn",
    StateKind.LIGHTNING: "self_attn",
    StateKind.SHORT_CONV: "conv",
}


def weigh(parts: Sequence[Part], storage: Storage, layer: str) -> LayerWeights:
    """``parts`` of the layer called ``layer`` added up by split, quantised and plain apart."""
    usual, plain = storage.weights.bytes_per_parameter, storage.weights.plain_bytes_per_parameter
    quantised = dict.fromkeys(Split, 0)
    unquantised = dict.fromkeys(Split, 0)
    extra = dict.fromkeys(Split, 0.0)
    for part in parts:
        scheme = storage.scheme(f"{layer}.{part.module}") if part.module else None
        (quantised if scheme else unquantised)[part.split] += part.elements
        width = scheme.bytes_per_parameter if scheme else plain
        extra[part.split] += part.copies * width + (part.elements * (width - usual) if scheme else 0.0)
    return _layer(quantised, unquantised, extra, sum(_active(part) for part in parts))


def _active(part: Part) -> int:
    return part.elements if part.active is None else part.active


def _layer(
    quantised: dict[Split, int], plain: dict[Split, int], extra: dict[Split, float], active: int
) -> LayerWeights:
    return LayerWeights(
        split_quantised=quantised[Split.EVEN],
        split_plain=plain[Split.EVEN],
        kv_quantised=quantised[Split.KV_HEADS],
        kv_plain=plain[Split.KV_HEADS],
        replicated_quantised=quantised[Split.NONE],
        replicated_plain=plain[Split.NONE],
        expert_quantised=quantised[Split.EXPERTS],
        expert_plain=plain[Split.EXPERTS],
        active=active,
        split_extra_bytes=extra[Split.EVEN],
        kv_extra_bytes=extra[Split.KV_HEADS],
        replicated_extra_bytes=extra[Split.NONE],
        expert_extra_bytes=extra[Split.EXPERTS],
    )
