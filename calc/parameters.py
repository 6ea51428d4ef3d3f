"""Counting parameters: how many, which a token touches, which are quantised, and how parallelism divides them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calc.config import MAX_EXPERTS, MAX_HEADS, MAX_POSITIONS, Fields
from calc.errors import InputError
from calc.families import Family
from calc.layers import Heads
from calc.messages import msg
from calc.model import LayerWeights, MoE
from calc.quantisation import Storage

VOCAB_PADDING = 64
"""Engines pad the vocabulary to a multiple of this (vLLM ``vocab_parallel_embedding.py``)."""
QWEN2_MOE_SHARED_SIZE = 5632
"""Default ``shared_expert_intermediate_size`` of Qwen2-MoE (transformers class default)."""


@dataclass(frozen=True, kw_only=True)
class Experts:
    """Experts of a config, before they are counted."""

    count: int
    per_token: int
    size: int
    shared_size: int
    router_extras: int
    """Beside the router's matrix: corrections per expert, the gate of the shared expert."""
    is_moe: Callable[[int], bool]
    """Whether layer i has experts."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """Parameters of a whole model."""

    layers: tuple[LayerWeights, ...]
    """One per layer, in order."""
    embedding: int
    """Input embedding, without padding."""
    head: int
    """Output head; 0 when tied."""
    extras: int
    """Final norm, head bias and learned positions."""
    moe: MoE | None


def count_parameters(fields: Fields, family: Family, heads: Heads, storage: Storage) -> Count:
    """Every parameter of the language model, layer by layer."""
    vocab = fields.integer("vocab_size")
    experts = read_experts(fields, family) if family.experts else None
    if experts is not None and experts.count == 0:
        experts = None
    layers = tuple(_layer(fields, family, heads, storage, experts, i) for i in range(heads.layers))
    tied = fields.flag("tie_word_embeddings", default=family.tied)
    extras = heads.hidden * (2 if family.norm_has_bias else 1) + (vocab if family.head_bias else 0)
    if family.learned_positions is not None:
        extras += (max_positions(fields, family) + family.learned_positions) * heads.hidden
    return Count(
        layers=layers,
        embedding=vocab * heads.hidden,
        head=0 if tied else vocab * heads.hidden,
        extras=extras,
        moe=_moe(experts, heads, family),
    )


def max_positions(fields: Fields, family: Family) -> int:
    """Longest context the model was made for, in tokens."""
    return fields.integer(
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "seq_length",
        default=family.positions_default,
        high=MAX_POSITIONS,
    )


def read_experts(fields: Fields, family: Family) -> Experts:
    """Number, size and placement of experts, by the key names of the family."""
    names = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
    count = fields.integer(*names, default=0 if family.mla else None, low=0, high=MAX_EXPERTS)
    per_token = fields.integer("num_experts_per_tok", "experts_per_token", "moe_k", high=MAX_EXPERTS, default=1)
    if count and per_token > count:
        raise InputError(
            msg(
                "{used} experts per token are more than the {count} there are: correct it.", used=per_token, count=count
            )
        )
    size = fields.integer("moe_intermediate_size", "intermediate_size")
    return Experts(
        count=count,
        per_token=per_token,
        size=size,
        shared_size=_shared_size(fields, family, size),
        router_extras=_router_extras(fields, family, count),
        is_moe=_placement(fields, family),
    )


def _router_extras(fields: Fields, family: Family, count: int) -> int:
    if family.experts == "qwen2":
        return fields.integer("hidden_size")
    is_plain_top_k = fields.text("topk_method") in ("greedy", "group_limited_greedy")
    return count if family.router_bias and not is_plain_top_k else 0


def _shared_size(fields: Fields, family: Family, size: int) -> int:
    if family.experts == "qwen2":
        return fields.integer("shared_expert_intermediate_size", default=QWEN2_MOE_SHARED_SIZE, low=0)
    if family.experts == "deepseek":
        return size * fields.integer("n_shared_experts", "moe_num_shared_experts", default=0, low=0, high=MAX_EXPERTS)
    return size if family.experts == "llama4" else 0


def _placement(fields: Fields, family: Family) -> Callable[[int], bool]:
    if family.experts == "deepseek":
        dense_first = fields.integer("first_k_dense_replace", "moe_layer_start_index", default=0, low=0)
        every = fields.integer("moe_layer_freq", default=1)
        return lambda i: i >= dense_first and i % every == 0
    if family.experts == "llama4":
        step = fields.integer("interleave_moe_layer_step", default=1)
        return lambda i: (i + 1) % step == 0
    if family.experts in ("qwen2", "qwen3"):
        step = fields.integer("decoder_sparse_step", default=1)
        dense = fields.raw("mlp_only_layers")
        dense_layers = set(dense) if isinstance(dense, list) and all(isinstance(i, int) for i in dense) else set()
        return lambda i: i not in dense_layers and (i + 1) % step == 0
    return lambda _i: True


def _moe(experts: Experts | None, heads: Heads, family: Family) -> MoE | None:
    if experts is None:
        return None
    return MoE(
        experts=experts.count,
        experts_per_token=experts.per_token,
        moe_layers=sum(experts.is_moe(i) for i in range(heads.layers)),
        expert_parameters=_mlp(family, heads.hidden, experts.size),
        shared_expert_parameters=_mlp(family, heads.hidden, experts.shared_size) if experts.shared_size else 0,
    )


def _mlp(family: Family, hidden: int, size: int) -> int:
    matrices = 3 if family.gated_mlp else 2
    bias = ((matrices - 1) * size + hidden) if family.mlp_bias else 0
    return matrices * hidden * size + bias


def _layer(
    fields: Fields, family: Family, heads: Heads, storage: Storage, experts: Experts | None, i: int
) -> LayerWeights:
    prefix = f"model.layers.{i}"
    attention = _mla_attention(fields, heads) if family.mla else _attention(fields, family, heads)
    parts = {True: dict.fromkeys(("split", "kv", "replicated", "expert"), 0)}
    parts[False] = dict(parts[True])
    attention_is_quantised = storage.quantises(f"{prefix}.self_attn.o_proj")
    parts[attention_is_quantised]["split"] += attention.split
    parts[attention_is_quantised]["kv"] += attention.kv
    parts[attention_is_quantised]["replicated"] += attention.replicated
    norms = family.norms_per_layer * heads.hidden * (2 if family.norm_has_bias else 1)
    parts[False]["replicated"] += attention.norms + norms
    active = attention.split + attention.kv + attention.replicated + attention.norms + norms
    if experts is not None and experts.is_moe(i):
        one = _mlp(family, heads.hidden, experts.size)
        shared = _mlp(family, heads.hidden, experts.shared_size) if experts.shared_size else 0
        router = heads.hidden * experts.count + experts.router_extras
        parts[storage.quantises(f"{prefix}.mlp.experts.0.down_proj")]["expert"] += one * experts.count
        parts[storage.quantises(f"{prefix}.mlp.shared_experts.down_proj")]["split"] += shared
        parts[False]["replicated"] += router
        active += one * experts.per_token + shared + router
    else:
        dense = _mlp(family, heads.hidden, dense_size(fields, family, heads.hidden))
        parts[storage.quantises(f"{prefix}.mlp.down_proj")]["split"] += dense
        active += dense
    quantised, plain = parts[True], parts[False]
    return LayerWeights(
        split_quantised=quantised["split"],
        split_plain=plain["split"],
        kv_quantised=quantised["kv"],
        kv_plain=plain["kv"],
        replicated_quantised=quantised["replicated"],
        replicated_plain=plain["replicated"],
        expert_quantised=quantised["expert"],
        expert_plain=plain["expert"],
        active=active,
    )


def dense_size(fields: Fields, family: Family, hidden: int) -> int:
    """Width of a dense MLP."""
    usual = hidden * family.mlp_times_hidden or None
    return fields.integer(
        "intermediate_size_mlp", "intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner", default=usual
    )


@dataclass(frozen=True, kw_only=True)
class _Attention:
    split: int
    kv: int
    replicated: int
    norms: int


def _attention(fields: Fields, family: Family, heads: Heads) -> _Attention:
    query, key = heads.heads * heads.head_dim, heads.kv_heads * heads.head_dim
    value, output = heads.kv_heads * heads.v_head_dim, heads.heads * heads.v_head_dim
    bias = fields.flag("attention_bias", "qkv_bias", "use_qkv_bias", default=family.qkv_bias)
    output_bias = heads.hidden if family.output_bias else 0
    style = family.qk_norm or ("head" if fields.flag("use_qk_norm", default=False) and family.experts else "")
    norms = {"head": heads.head_dim * 2, "full": query + key}.get(style, 0)
    sinks = heads.heads if family.experts == "gpt-oss" else 0
    return _Attention(
        split=heads.hidden * (query + output) + (query if bias else 0) + sinks,
        kv=heads.hidden * (key + value) + (key + value if bias else 0),
        replicated=output_bias,
        norms=norms,
    )


def _mla_attention(fields: Fields, heads: Heads) -> _Attention:
    latent, rope = fields.integer("kv_lora_rank"), fields.integer("qk_rope_head_dim")
    nope, value = fields.integer("qk_nope_head_dim"), fields.integer("v_head_dim")
    query_latent = fields.optional("q_lora_rank")
    query_in = query_latent or heads.hidden
    split = query_in * heads.heads * (nope + rope) + latent * heads.heads * (nope + value)
    split += heads.heads * value * heads.hidden
    replicated = heads.hidden * (latent + rope + (query_latent or 0)) + _indexer(fields, heads.hidden, query_in)
    return _Attention(split=split, kv=0, replicated=replicated, norms=latent + (query_latent or 0))


def _indexer(fields: Fields, hidden: int, query_in: int) -> int:
    dim = fields.optional("index_head_dim")
    if dim is None:
        return 0
    index_heads = fields.integer("index_n_heads", high=MAX_HEADS)
    return query_in * index_heads * dim + hidden * dim + hidden * index_heads + 2 * dim
