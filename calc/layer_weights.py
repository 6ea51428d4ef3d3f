"""Parameters of one layer: attention, MLP or experts, norms; how parallelism divides each and how it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from calc.config import MAX_HEADS, Fields
from calc.experts import Experts
from calc.families import Family
from calc.layers import Heads
from calc.model import FeedForward, LayerGroup, LayerKind, LayerWeights
from calc.quantisation import Storage


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
    """Some matrices of a layer."""

    elements: int
    split: Split
    quantised: bool = False
    active: int | None = None
    """Parameters one token touches; ``None`` = all."""


_WITH_EXPERTS = (FeedForward.USUAL, FeedForward.EXPERTS)
_WITH_MLP = (FeedForward.USUAL, FeedForward.DENSE)


def _mixer(fields: Fields, family: Family, heads: Heads, group: LayerGroup, quantised: bool) -> list[Part]:
    """Attention, recurrent projections, both or neither."""
    parts = []
    if group.state is not None:
        # In and out projections of the state's channels: a first count.
        parts.append(Part(elements=2 * heads.hidden * group.state.conv_channels, split=Split.EVEN, quantised=quantised))
    if group.kind in (LayerKind.RECURRENT, LayerKind.NONE):
        return parts
    return parts + (
        _latent(fields, heads, quantised) if family.mla else _attention(fields, family, heads, group, quantised)
    )


def layer_weights(
    fields: Fields, family: Family, heads: Heads, group: LayerGroup, storage: Storage, experts: Experts | None, i: int
) -> LayerWeights:
    """Layer ``i`` of the model."""
    name = f"model.layers.{i}"
    quantised = storage.quantises(f"{name}.self_attn.o_proj")
    parts = _mixer(fields, family, heads, group, quantised)
    has_experts = experts is not None and experts.is_moe(i) and group.feed_forward in _WITH_EXPERTS
    if experts is not None and has_experts:
        parts += _moe(family, heads, storage, experts, name)
    if (not has_experts and group.feed_forward in _WITH_MLP) or family.experts_beside_mlp:
        size = mlp_elements(family, heads.hidden, dense_size(fields, family, heads.hidden))
        parts.append(Part(elements=size, split=Split.EVEN, quantised=storage.quantises(f"{name}.mlp.down_proj")))
    norms = family.norms_per_layer * heads.hidden * (2 if family.norm_has_bias else 1)
    parts.append(Part(elements=norms, split=Split.NONE))
    return _sum(parts)


def _sum(parts: Sequence[Part]) -> LayerWeights:
    def total(split: Split, quantised: bool) -> int:
        return sum(part.elements for part in parts if part.split is split and part.quantised == quantised)

    return LayerWeights(
        split_quantised=total(Split.EVEN, True),
        split_plain=total(Split.EVEN, False),
        kv_quantised=total(Split.KV_HEADS, True),
        kv_plain=total(Split.KV_HEADS, False),
        replicated_quantised=total(Split.NONE, True),
        replicated_plain=total(Split.NONE, False),
        expert_quantised=total(Split.EXPERTS, True),
        expert_plain=total(Split.EXPERTS, False),
        active=sum(part.elements if part.active is None else part.active for part in parts),
    )


def mlp_elements(family: Family, hidden: int, size: int) -> int:
    """Gate, up and down (or up and down) of width ``size``, with biases where the family has them."""
    matrices = 3 if family.gated_mlp else 2
    bias = ((matrices - 1) * size + hidden) if family.mlp_bias else 0
    return matrices * hidden * size + bias


def dense_size(fields: Fields, family: Family, hidden: int) -> int:
    """Width of a dense MLP."""
    usual = hidden * family.mlp_times_hidden or None
    if family.experts and usual is None:
        # Models whose every layer has experts may name no dense width.
        usual = fields.optional("moe_intermediate_size")
    return fields.integer(
        "intermediate_size_mlp", "intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner", default=usual
    )


def _moe(family: Family, heads: Heads, storage: Storage, experts: Experts, name: str) -> list[Part]:
    one = mlp_elements(family, heads.hidden, experts.size)
    shared = mlp_elements(family, heads.hidden, experts.shared_size) if experts.shared_size else 0
    return [
        Part(
            elements=one * experts.count,
            split=Split.EXPERTS,
            quantised=storage.quantises(f"{name}.mlp.experts.0.down_proj"),
            active=one * experts.per_token,
        ),
        Part(elements=shared, split=Split.EVEN, quantised=storage.quantises(f"{name}.mlp.shared_experts.down_proj")),
        Part(elements=heads.hidden * experts.count + experts.router_extras, split=Split.NONE),
    ]


def _attention(fields: Fields, family: Family, heads: Heads, group: LayerGroup, quantised: bool) -> list[Part]:
    query, key = heads.heads * group.head_dim, group.kv_heads * group.head_dim
    value, output = group.kv_heads * group.v_head_dim, heads.heads * group.v_head_dim
    if group.kind is LayerKind.FULL and fields.flag("attention_k_eq_v", default=False):
        value = 0
    bias = fields.flag("attention_bias", "qkv_bias", "use_qkv_bias", default=family.qkv_bias)
    sinks = heads.heads if family.experts == "gpt-oss" else 0
    split = heads.hidden * (query + output) + (query if bias else 0) + sinks
    kv = heads.hidden * (key + value) + (key + value if bias else 0)
    return [
        Part(elements=split, split=Split.EVEN, quantised=quantised),
        Part(elements=kv, split=Split.KV_HEADS, quantised=quantised),
        Part(elements=heads.hidden if family.output_bias else 0, split=Split.NONE, quantised=quantised),
        Part(elements=_norms(fields, family, group, query + key), split=Split.NONE),
    ]


def _norms(fields: Fields, family: Family, group: LayerGroup, width: int) -> int:
    style = family.qk_norm or ("head" if fields.flag("use_qk_norm", default=False) and family.experts else "")
    return {"head": group.head_dim * 2, "full": width}.get(style, 0)


def _latent(fields: Fields, heads: Heads, quantised: bool) -> list[Part]:
    latent, rope = fields.integer("kv_lora_rank"), fields.integer("qk_rope_head_dim")
    nope, value = fields.integer("qk_nope_head_dim"), fields.integer("v_head_dim")
    query_latent = fields.optional("q_lora_rank") or 0
    query_in = query_latent or heads.hidden
    up = heads.heads * (query_in * (nope + rope) + latent * (nope + value) + value * heads.hidden)
    down = heads.hidden * (latent + rope + query_latent) + _indexer(fields, heads.hidden, query_in)
    return [
        Part(elements=up, split=Split.EVEN, quantised=quantised),
        Part(elements=down, split=Split.NONE, quantised=quantised),
        Part(elements=latent + query_latent, split=Split.NONE),
    ]


def _indexer(fields: Fields, hidden: int, query_in: int) -> int:
    dim = fields.optional("index_head_dim")
    if dim is None:
        return 0
    index_heads = fields.integer("index_n_heads", high=MAX_HEADS)
    return query_in * index_heads * dim + hidden * dim + hidden * index_heads + 2 * dim
