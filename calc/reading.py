"""From a Hub config to a :class:`ModelSpec`: family, layers, storage and counts put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calc.architectures import architecture_name, family_of
from calc.config import Fields, read_fields
from calc.dtypes import PLAIN_BYTES
from calc.encoder import encoder_parameters
from calc.errors import InputError
from calc.families import Family
from calc.layer_weights import dense_size
from calc.layers import Heads, read_heads, read_layers
from calc.messages import msg
from calc.model import LatentAttention, ModelSpec
from calc.parameters import count_parameters, max_positions
from calc.quantisation import Storage, read_storage

MAX_WEIGHT_BYTES = 10**16
"""Most declared bytes accepted; the largest published checkpoint is about 2·10¹²."""
MAX_ROPE_FACTOR = 1000.0
"""Largest stretch of the context accepted; the largest published is 64."""


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
    storage = read_storage(fields, weight_dtype, kv_dtype)
    groups, order = read_layers(fields, family, heads, storage.plain)
    count = count_parameters(fields, family, heads, [groups[index] for index in order], storage)
    encoder = encoder_parameters(fields, heads.hidden)
    return ModelSpec(
        name=name or fields.text("_name_or_path") or family.name,
        architecture=architecture_name(fields),
        layers=heads.layers,
        hidden_size=heads.hidden,
        heads=heads.heads,
        kv_heads=1 if family.mla else heads.kv_heads,
        head_dim=heads.head_dim,
        intermediate_size=dense_size(fields, family, heads.hidden),
        vocab_size=fields.integer("vocab_size"),
        max_position_tokens=max_positions(fields, family),
        groups=groups,
        parameters=count.total + encoder,
        active_parameters=count.active,
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
        encoder_parameters=encoder,
    )


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
    if not heads.kv_heads:
        return "none"
    if heads.kv_heads == heads.heads:
        return "mha"
    return "mqa" if heads.kv_heads == 1 else "gqa"


def _rope_cache_bytes(fields: Fields, family: Family, heads: Heads, storage: Storage) -> int:
    """Cosine and sine tables: positions × rotary width × dtype.

    Linear scaling lengthens the table by its factor (Gemma 3: 8); YaRN runs to original length × factor.
    """
    if family.learned_positions is not None:
        return 0
    width = fields.integer("qk_rope_head_dim") if family.mla else heads.head_dim
    share = _factor(fields.raw("partial_rotary_factor", "rotary_pct"), highest=1.0)
    local = max_positions(fields, family) if family.local_rope else 0
    return int((_rope_positions(fields, family) + local) * width * share * PLAIN_BYTES[storage.plain])


def _rope_positions(fields: Fields, family: Family) -> float:
    scaling, positions = fields.mapping("rope_scaling", "rope_parameters"), max_positions(fields, family)
    kind = str(scaling.get("rope_type") or scaling.get("type") or "")
    factor = _factor(scaling.get("factor"), highest=MAX_ROPE_FACTOR)
    if kind == "linear":
        return positions * factor
    original = scaling.get("original_max_position_embeddings")
    if kind == "yarn" and isinstance(original, int) and 0 < original <= positions:
        return original * factor
    return positions


def _factor(value: object, highest: float) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= highest
    return float(value) if usable and isinstance(value, int | float) else 1.0
