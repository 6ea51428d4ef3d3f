"""Parameters of one layer: attention, recurrent state, MLP or experts, norms; how parallelism divides each."""

from __future__ import annotations

from calc.hub.compressed_weights import compressed_parts
from calc.hub.config import MAX_HEADS, Fields
from calc.hub.experts import Experts
from calc.hub.families import Family
from calc.hub.gemma_weights import gemma_parts
from calc.hub.layers import Heads
from calc.hub.parts import Names, Part, Split, names_of, weigh
from calc.hub.quantisation import Storage
from calc.hub.state_weights import state_parts
from calc.hub.zamba_weights import zamba_parts
from calc.model import FeedForward, LayerGroup, LayerKind, LayerWeights

_WITH_EXPERTS = (FeedForward.USUAL, FeedForward.EXPERTS)
_WITH_MLP = (FeedForward.USUAL, FeedForward.DENSE)
LFM2_MULTIPLE = 256
"""Default ``block_multiple_of`` of LFM2 (transformers class default)."""


def layer_weights(
    fields: Fields, family: Family, heads: Heads, group: LayerGroup, storage: Storage, experts: Experts | None, i: int
) -> LayerWeights:
    """Layer ``i`` of the model."""
    if family.hybrid == "zamba":
        return weigh(zamba_parts(fields, heads.hidden, group, heads.layers, i), storage, f"layers.{i}")
    parts = _mixer(fields, family, heads, group, i) + _feed_forward(fields, family, heads, group, experts, i)
    norms = _norm_count(fields, family) * heads.hidden * (2 if family.norm_has_bias else 1)
    parts.append(Part(elements=norms, split=Split.NONE))
    return weigh(parts, storage, f"layers.{i}")


def _norm_count(fields: Fields, family: Family) -> int:
    if family.name == "Falcon" and fields.flag("new_decoder_architecture", default=False):
        return fields.integer("num_ln_in_parallel_attn", default=2)
    return family.norms_per_layer


def draft_weights(
    fields: Fields, family: Family, heads: Heads, group: LayerGroup, storage: Storage, experts: Experts | None
) -> LayerWeights:
    """A layer of multi-token prediction: like the last, behind a projection of hidden state and embedding together."""
    parts = _mixer(fields, family, heads, group, heads.layers)
    parts += _feed_forward(fields, family, heads, group, experts, heads.layers)
    parts.append(Part(elements=2 * heads.hidden * heads.hidden, split=Split.NONE))
    # Norms of both inputs and of the output, beside those of its attention and of its experts.
    parts.append(Part(elements=(max(2, family.norms_per_layer) + 3) * heads.hidden, split=Split.NONE))
    return weigh(parts, storage, f"layers.{heads.layers}")


def _mixer(fields: Fields, family: Family, heads: Heads, group: LayerGroup, i: int) -> list[Part]:
    """Attention, recurrent projections, both or neither."""
    names = names_of(family)
    parts = [] if group.state is None else state_parts(fields, heads.hidden, group.state, names.state)
    if group.kind in (LayerKind.RECURRENT, LayerKind.NONE):
        return parts
    if family.compressed:
        return compressed_parts(fields, heads, i, names.attention)
    if family.mla:
        return parts + _latent(fields, heads, group, names.attention)
    return parts + _attention(fields, family, heads, group, names.attention)


def _feed_forward(
    fields: Fields, family: Family, heads: Heads, group: LayerGroup, experts: Experts | None, i: int
) -> list[Part]:
    names, parts = names_of(family), gemma_parts(fields, family, heads.hidden)
    has_experts = experts is not None and experts.is_moe(i) and group.feed_forward in _WITH_EXPERTS
    if experts is not None and has_experts:
        parts += _moe(family, heads, experts, names)
    if (not has_experts and group.feed_forward in _WITH_MLP) or family.experts_beside_mlp:
        parts.append(_mlp(fields, family, heads.hidden, names.mlp, i))
    return parts


def _mlp(fields: Fields, family: Family, hidden: int, name: str, i: int) -> Part:
    size = dense_size(fields, family, hidden, i)
    return Part(elements=mlp_elements(family, hidden, size), split=Split.EVEN, module=f"{name}.down_proj")


def mlp_elements(family: Family, hidden: int, size: int) -> int:
    """Gate, up and down (or up and down) of width ``size``, with biases where the family has them."""
    matrices = 3 if family.gated_mlp else 2
    bias = ((matrices - 1) * size + hidden) if family.mlp_bias else 0
    return matrices * hidden * size + bias


def dense_size(fields: Fields, family: Family, hidden: int, layer: int = 0) -> int:
    """Width of a dense MLP; of layer ``layer`` where a config lists them or widens its last layers (Gemma 4)."""
    listed = fields.raw("intermediate_size")
    if isinstance(listed, list) and listed:
        fields = Fields({**fields.inner, "intermediate_size": listed[min(layer, len(listed) - 1)]}, fields.outer)
    usual = hidden * family.mlp_times_hidden or None
    if family.hybrid == "pure":
        usual = 2 * hidden
    if family.experts and usual is None:
        # Models whose every layer has experts may name no dense width.
        usual = fields.optional("moe_intermediate_size")
    first = ("shared_intermediate_size",) if family.hybrid == "layer-types" and family.experts == "granite" else ()
    names = (*first, "intermediate_size_mlp", "intermediate_size", "block_ff_dim", "ffn_dim", "ffn_hidden_size")
    size = fields.integer(*names, "n_inner", "d_ff", default=usual)
    if family.hybrid == "lfm2" and not family.experts:
        return _lfm2_size(fields, size)
    return size * 2 if layer and _is_double_wide(fields, layer) else size


def _is_double_wide(fields: Fields, layer: int) -> bool:
    shared = fields.optional("num_kv_shared_layers")
    if shared is None or not fields.flag("use_double_wide_mlp", default=False):
        return False
    return layer >= fields.integer("num_hidden_layers") - shared


def _lfm2_size(fields: Fields, size: int) -> int:
    """LFM2 narrows the width it names to two thirds, rounded up."""
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return size
    factor = fields.raw("block_ffn_dim_multiplier")
    usable = isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor < LFM2_MULTIPLE
    narrowed = int((factor if usable else 1) * int(2 * size / 3))
    multiple = fields.integer("block_multiple_of", default=LFM2_MULTIPLE)
    return -(-narrowed // multiple) * multiple


def _moe(family: Family, heads: Heads, experts: Experts, names: Names) -> list[Part]:
    width = experts.latent or heads.hidden
    one = mlp_elements(family, width, experts.size)
    shared = mlp_elements(family, heads.hidden, experts.shared_size) if experts.shared_size else 0
    return [
        Part(
            elements=one * experts.count,
            split=Split.EXPERTS,
            module=f"{names.experts}.0.down_proj",
            active=one * experts.per_token,
        ),
        Part(elements=shared, split=Split.EVEN, module=f"{names.shared}.down_proj"),
        Part(elements=2 * heads.hidden * experts.latent, split=Split.NONE, module=f"{names.mlp}.fc1_latent_proj"),
        Part(elements=heads.hidden * experts.count + experts.router_extras, split=Split.NONE),
    ]


def _attention(fields: Fields, family: Family, heads: Heads, group: LayerGroup, name: str) -> list[Part]:
    query, output = heads.heads * group.head_dim, heads.heads * group.v_head_dim
    gates = 2 if family.output_gate and fields.flag("attn_output_gate", default=True) else 1
    bias = fields.flag("attention_bias", "qkv_bias", "use_qkv_bias", default=family.qkv_bias)
    sinks = heads.heads if family.experts == "gpt-oss" else 0
    return [
        Part(
            elements=heads.hidden * query * gates + (query * gates if bias else 0) + sinks,
            split=Split.EVEN,
            module=f"{name}.q_proj",
        ),
        _keys_and_values(fields, heads, group, name, bias),
        Part(elements=heads.hidden * output, split=Split.EVEN, module=f"{name}.o_proj"),
        Part(elements=heads.hidden if family.output_bias else 0, split=Split.NONE, module=f"{name}.o_proj"),
        Part(elements=_norms(fields, family, group, query + group.kv_heads * group.head_dim), split=Split.NONE),
    ]


def _keys_and_values(fields: Fields, heads: Heads, group: LayerGroup, name: str, bias: bool) -> Part:
    """K and V projections; where the checkpoint lacks one, engines still hold a copy in its place (Gemma 4)."""
    key, value = group.kv_heads * group.head_dim, group.kv_heads * group.v_head_dim
    stored, copied = key + value, 0
    if group.kind is LayerKind.FULL and fields.flag("attention_k_eq_v", default=False):
        stored, copied = key, value
    if group.kind is LayerKind.SHARED and fields.raw("attention_k_eq_v") is not None:
        stored, copied = 0, key + value
    elements = heads.hidden * stored + (stored if bias else 0)
    return Part(elements=elements, split=Split.KV_HEADS, module=f"{name}.k_proj", copies=heads.hidden * copied)


def _norms(fields: Fields, family: Family, group: LayerGroup, width: int) -> int:
    asked = "head" if family.experts else "full" if family.name.startswith("Command") else ""
    style = family.qk_norm or (asked if fields.flag("use_qk_norm", default=False) else "")
    return {"head": group.head_dim * 2, "full": width}.get(style, 0)


def _latent(fields: Fields, heads: Heads, group: LayerGroup, name: str) -> list[Part]:
    latent, rope = fields.integer("kv_lora_rank"), fields.integer("qk_rope_head_dim")
    nope, value = fields.integer("qk_nope_head_dim"), fields.integer("v_head_dim")
    query_latent = fields.optional("q_lora_rank") or 0
    query_in = query_latent or heads.hidden
    return [
        Part(elements=heads.heads * query_in * (nope + rope), split=Split.EVEN, module=f"{name}.q_b_proj"),
        Part(elements=heads.heads * latent * (nope + value), split=Split.EVEN, module=f"{name}.kv_b_proj"),
        Part(elements=heads.heads * value * heads.hidden, split=Split.EVEN, module=f"{name}.o_proj"),
        Part(
            elements=heads.hidden * (latent + rope + query_latent),
            split=Split.NONE,
            module=f"{name}.kv_a_proj_with_mqa",
        ),
        *(_indexer(fields, heads.hidden, query_in, name) if group.sparse_index_bytes_per_token else ()),
        Part(elements=latent + query_latent, split=Split.NONE),
    ]


def _indexer(fields: Fields, hidden: int, query_in: int, name: str) -> list[Part]:
    dim = fields.optional("index_head_dim")
    if dim is None:
        return []
    index_heads = fields.integer("index_n_heads", high=MAX_HEADS)
    return [
        Part(elements=query_in * index_heads * dim + hidden * dim, split=Split.NONE, module=f"{name}.indexer.wq_b"),
        Part(elements=hidden * index_heads + 2 * dim, split=Split.NONE),
    ]
