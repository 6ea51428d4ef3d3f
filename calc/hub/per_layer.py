"""Configs that describe every layer apart, said in the usual fields: Puzzle models (Llama-Nemotron) and Hunyuan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from calc.errors import UnknownArchitecture
from calc.hub.config import MAX_HEADS, Fields
from calc.messages import msg

MULTIPLE = 256
"""MLPs of Puzzle models are rounded up to a multiple of this (``modeling_decilm.py`` of Llama-Nemotron)."""
SAID_ONCE = ("moe_topk", "moe_intermediate_size", "num_shared_expert", "num_experts")
"""Fields Hunyuan writes as a list of one number repeated for each layer."""


class Block(StrEnum):
    """What a layer of a Puzzle model kept."""

    BOTH = "both"
    ATTENTION = "attention"
    MLP = "mlp"
    NOTHING = "nothing"


_UNEVEN = msg(
    "block_configs gives its layers different KV heads, experts or linear layers, which is not modelled: "
    "size it from the engine's own log."
)


def in_usual_fields(fields: Fields) -> Fields:
    """The same config with one value for what all layers share, and plain lists for what they do not."""
    inner = {name: _once(value) if name in SAID_ONCE else value for name, value in fields.inner.items()}
    blocks = inner.get("block_configs")
    if isinstance(blocks, list) and blocks and all(isinstance(block, Mapping) for block in blocks):
        inner |= _of_blocks(Fields(inner, fields.outer), blocks)
    outer = fields.outer if fields.is_multimodal else inner
    return Fields(inner, outer)


def _once(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value and all(item == value[0] for item in value) else value


def _of_blocks(fields: Fields, blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    attention = [Fields(part, part) for part in (_part(block, "attention") for block in blocks)]
    mlps = [Fields(part, part) for part in (_part(block, "ffn") for block in blocks)]
    heads = fields.integer("num_attention_heads", high=MAX_HEADS)
    return {
        "num_key_value_heads": _kv_heads([part for part in attention if not _is_gone(part)], heads),
        "intermediate_size": [_width(part, fields.integer("hidden_size")) for part in mlps],
        "blocks": [_kept(*pair) for pair in zip(attention, mlps, strict=True)],
    }


def _part(block: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = block.get(name)
    if not isinstance(part, Mapping) or part.get("replace_with_linear") or part.get("moe"):
        raise UnknownArchitecture(_UNEVEN)
    return part


def _is_gone(part: Fields) -> bool:
    return part.flag("no_op", default=False)


def _kept(attention: Fields, mlp: Fields) -> Block:
    if _is_gone(attention):
        return Block.NOTHING if _is_gone(mlp) else Block.MLP
    return Block.ATTENTION if _is_gone(mlp) else Block.BOTH


def _kv_heads(parts: Sequence[Fields], heads: int) -> int:
    """``n_heads_in_group`` query heads share one KV head."""
    found = {
        part.optional("num_key_value_heads") or heads // part.integer("n_heads_in_group", high=heads) for part in parts
    }
    if len(found) != 1:
        raise UnknownArchitecture(_UNEVEN)
    return found.pop()


def _width(mlp: Fields, hidden: int) -> int:
    if _is_gone(mlp):
        return MULTIPLE
    times = mlp.raw("ffn_mult")
    if isinstance(times, int | float) and 0 < times < MULTIPLE:
        return -(-int(2 * times * hidden / 3) // MULTIPLE) * MULTIPLE
    return mlp.integer("intermediate_size")
