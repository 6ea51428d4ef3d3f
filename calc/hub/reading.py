"""From a Hub config to a :class:`ModelSpec`: family, layers, storage and counts put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calc.dtypes import is_auto, kv_code
from calc.errors import InputError
from calc.hub.architectures import architecture_name, family_of
from calc.hub.class_defaults import with_class_defaults
from calc.hub.config import Fields, read_fields
from calc.hub.encoder import WHOLE_ENCODERS, read_encoder
from calc.hub.families import Family
from calc.hub.layer_weights import dense_size
from calc.hub.layers import Heads, read_heads, read_layers
from calc.hub.parameters import count_parameters, max_positions
from calc.hub.per_layer import in_usual_fields
from calc.hub.quantisation import read_storage
from calc.hub.rotary import rope_cache_bytes
from calc.hub.weight_doubts import weight_doubts
from calc.messages import msg
from calc.model import LatentAttention, LayerGroup, LayerKind, ModelSpec
from calc.room.stage_vocab import vocab_copies

MAX_WEIGHT_BYTES = 10**16
"""Most declared bytes accepted; the largest published checkpoint is about 2·10¹²."""
MAX_PARAMETERS = 10**14
"""Most parameters believed; fifty times the largest published model."""
MAX_CACHE_WIDTH = 2**24
"""Widest K or V of a layer believed, in elements; published ones stay below 2**15."""
MAX_STATE_ELEMENTS = 2**34
"""Largest recurrent state of a layer believed, in elements; published ones stay below 2**24."""


def read_model(
    config: Mapping[str, Any],
    name: str,
    *,
    weight_dtype: str | None,
    kv_dtype: str | None,
    weights_bytes_declared: int | None,
) -> ModelSpec:
    """See :meth:`ModelSpec.from_config`."""
    fields = in_usual_fields(read_fields(config))
    family = family_of(fields)
    fields, config_notes = with_class_defaults(fields.renamed(family.aliases), family)
    heads = read_heads(fields, family)
    storage = read_storage(fields, weight_dtype, kv_dtype)
    groups, order = read_layers(fields, family, heads, storage.plain)
    in_order = [groups[index] for index in order]
    count = count_parameters(fields, family, heads, in_order, storage)
    _check_plausible(count.total, groups)
    encoder = read_encoder(fields, family, heads.hidden)
    doubts = weight_doubts(fields, family, heads, in_order, storage, count, encoder)
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
        parameters=count.total + encoder.parameters,
        active_parameters=count.active,
        quantised_parameters=sum(layer.quantised for layer in count.layers),
        tp_replicated_parameters=sum(x.replicated_quantised + x.replicated_plain for x in count.layers) + count.extras,
        embedding_parameters=count.embedding,
        tied_embeddings=count.head == 0,
        storage=storage.weights,
        kv_dtype=_compressed_dtype(kv_dtype) if family.compressed else storage.kv,
        moe=count.moe,
        weights_bytes_declared=_declared(weights_bytes_declared),
        attention=_attention_name(family, heads),
        latent=_latent(fields) if family.mla else None,
        layer_order=order,
        layer_weights=count.layers,
        rope_cache_bytes=rope_cache_bytes(fields, family, heads, groups, storage),
        multimodal=fields.is_multimodal,
        encoder_parameters=encoder.parameters,
        whole_encoder=family.name in WHOLE_ENCODERS,
        weight_doubt_bytes=doubts.more_bytes,
        weight_notes=doubts.notes,
        config_notes=config_notes,
        first_stage_parameters=count.first_stage,
        vocab_copies=vocab_copies(family, count.head == 0),
        extra_parameters=count.extras,
        draft_parameters=count.draft,
        draft_layer=count.draft_layer,
    )


def _compressed_dtype(kv_dtype: str | None) -> str:
    """Compressed caches have one layout: FP8 records with a BF16 rotary part (vLLM ``models/deepseek_v4``)."""
    if not is_auto(kv_dtype) and kv_code(str(kv_dtype)) != "fp8":
        raise InputError(
            msg("compressed caches are kept in FP8, {dtype} was asked for: choose auto or fp8.", dtype=kv_dtype)
        )
    return "fp8"


def _check_plausible(parameters: int, groups: Sequence[LayerGroup]) -> None:
    """Each width alone may be within bounds and the model they make together still be a slip of the pen."""
    if all(group.kind in (LayerKind.SHARED, LayerKind.NONE) for group in groups):
        raise InputError(msg("no layer of the config keeps a cache or a state: use the model's full config.json."))
    widest = max(group.kv_heads * max(group.head_dim, group.v_head_dim) for group in groups)
    largest = max(group.state.matrix_elements if group.state else 0 for group in groups)
    if parameters <= MAX_PARAMETERS and widest <= MAX_CACHE_WIDTH and largest <= MAX_STATE_ELEMENTS:
        return
    raise InputError(
        msg(
            "The sizes of the config make a model of {count:.1e} parameters and caches {width:count} wide, beyond any "
            "there is: look for a width with digits too many.",
            count=float(parameters),
            width=widest,
        )
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
