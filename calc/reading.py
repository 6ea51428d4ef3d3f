"""From a Hub config to a :class:`ModelSpec`: family, layers, storage and counts put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calc.architectures import Family, architecture_name, family_of
from calc.config import MAX_POSITIONS, Fields, read_fields
from calc.dtypes import PLAIN_BYTES
from calc.errors import InputError
from calc.layers import Heads, read_heads, read_layers
from calc.messages import msg
from calc.model import LatentAttention, ModelSpec
from calc.parameters import Count, count_parameters
from calc.quantisation import Storage, read_storage

MAX_WEIGHT_BYTES = 10**16


def read_model(
    config: Mapping[str, Any],
    name: str,
    *,
    weight_dtype: str | None,
    kv_dtype: str | None,
    weights_bytes_declared: int | None,
) -> ModelSpec:
    """See :meth:`ModelSpec.from_config`."""
    fields = read_fields(config)
    family = family_of(fields)
    heads = read_heads(fields, family)
    groups, order = read_layers(fields, family, heads)
    storage = read_storage(fields, weight_dtype, kv_dtype)
    count = count_parameters(fields, family, heads, storage)
    return ModelSpec(
        name=name or fields.text("_name_or_path") or family.name,
        architecture=architecture_name(fields),
        layers=heads.layers,
        hidden_size=heads.hidden,
        heads=heads.heads,
        kv_heads=1 if family.mla else heads.kv_heads,
        head_dim=heads.head_dim,
        intermediate_size=_widest(fields),
        vocab_size=fields.integer("vocab_size"),
        max_position_tokens=_max_positions(fields),
        groups=groups,
        parameters=_total(count),
        active_parameters=_active(count),
        quantised_parameters=sum(layer.quantised for layer in count.layers),
        tp_replicated_parameters=sum(x.replicated_quantised + x.replicated_plain for x in count.layers) + count.extras,
        embedding_parameters=count.embedding,
        tied_embeddings=count.head == 0,
        storage=storage.weights,
        kv_dtype=storage.kv,
        moe=count.moe,
        weights_bytes_declared=_declared(weights_bytes_declared),
        attention=_attention_name(family, heads),
        latent=_latent(fields) if family.mla else None,
        layer_order=order,
        layer_weights=count.layers,
        rope_cache_bytes=_rope_cache_bytes(fields, family, heads, storage),
        multimodal=fields.is_multimodal,
    )


def _widest(fields: Fields) -> int:
    return fields.integer("intermediate_size_mlp", "intermediate_size", "n_inner", "moe_intermediate_size")


def _total(count: Count) -> int:
    return sum(layer.total for layer in count.layers) + count.embedding + count.head + count.extras


def _active(count: Count) -> int:
    return sum(layer.active for layer in count.layers) + (count.head or count.embedding) + count.extras


def _max_positions(fields: Fields) -> int:
    return fields.integer("max_position_embeddings", "n_positions", "max_sequence_length", high=MAX_POSITIONS)


def _declared(weights_bytes: int | None) -> int | None:
    if weights_bytes is None:
        return None
    is_number = isinstance(weights_bytes, int | float) and not isinstance(weights_bytes, bool)
    if not is_number or not 1 <= weights_bytes <= MAX_WEIGHT_BYTES:
        raise InputError(
            msg(
                "weight bytes must be a number above 0, got {value!r}: enter bytes of one replica.", value=weights_bytes
            )
        )
    return int(weights_bytes)


def _latent(fields: Fields) -> LatentAttention:
    return LatentAttention(
        q_rank=fields.optional("q_lora_rank"),
        kv_rank=fields.integer("kv_lora_rank"),
        nope_dim=fields.integer("qk_nope_head_dim"),
        rope_dim=fields.integer("qk_rope_head_dim"),
        v_dim=fields.integer("v_head_dim"),
    )


def _attention_name(family: Family, heads: Heads) -> str:
    if family.mla:
        return "mla"
    if heads.kv_heads == heads.heads:
        return "mha"
    return "mqa" if heads.kv_heads == 1 else "gqa"


def _rope_cache_bytes(fields: Fields, family: Family, heads: Heads, storage: Storage) -> int:
    """Cosine and sine tables: positions × rotary width × dtype, one table per kind of rotary embedding.

    Linear scaling lengthens the table by its factor (Gemma 3: 8), YaRN runs to original length × factor.
    """
    width = fields.integer("qk_rope_head_dim") if family.mla else heads.head_dim
    scaling = fields.mapping("rope_scaling")
    positions = _max_positions(fields)
    factor = scaling.get("factor", 1.0)
    kind = str(scaling.get("rope_type") or scaling.get("type") or "")
    if kind == "linear" and isinstance(factor, int | float):
        positions = int(positions * factor)
    table = positions * width * PLAIN_BYTES[storage.plain]
    return int(table)
