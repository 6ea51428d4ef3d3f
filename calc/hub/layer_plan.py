"""Which layers attend, which keep a recurrent state, which do neither: read from the words each hybrid family uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from types import MappingProxyType

from calc.errors import InputError, UnknownArchitecture
from calc.hub.config import MAX_LAYERS, Fields
from calc.hub.per_layer import Block
from calc.messages import Message, msg
from calc.model import FeedForward


class Mixer(StrEnum):
    """What mixes the tokens of a layer."""

    ATTENTION = "attention"
    STATE = "state"
    BOTH = "both"
    """Attention and a state side by side."""
    NONE = "none"


Plan = list[tuple[Mixer, FeedForward]]
JAMBA_PERIOD, JAMBA_OFFSET = 8, 4
"""Defaults of ``attn_layer_period`` and ``attn_layer_offset`` (transformers class default)."""
_USUAL, _ALONE = FeedForward.USUAL, FeedForward.ABSENT
_NAMES = MappingProxyType(
    {
        "full_attention": (Mixer.ATTENTION, _USUAL),
        "attention": (Mixer.ATTENTION, _USUAL),
        "linear_attention": (Mixer.STATE, _USUAL),
        "mamba": (Mixer.STATE, _USUAL),
        "conv": (Mixer.STATE, _USUAL),
        "hybrid": (Mixer.BOTH, _USUAL),
    }
)
_NEMOTRON = MappingProxyType(
    {
        "M": (Mixer.STATE, _ALONE),
        "*": (Mixer.ATTENTION, _ALONE),
        "-": (Mixer.NONE, FeedForward.DENSE),
        "E": (Mixer.NONE, FeedForward.EXPERTS),
        "mamba": (Mixer.STATE, _ALONE),
        "attention": (Mixer.ATTENTION, _ALONE),
        "mlp": (Mixer.NONE, FeedForward.DENSE),
        "moe": (Mixer.NONE, FeedForward.EXPERTS),
    }
)


_BLOCKS: MappingProxyType[str, tuple[Mixer, FeedForward]] = MappingProxyType(
    {
        Block.BOTH: (Mixer.ATTENTION, _USUAL),
        Block.ATTENTION: (Mixer.ATTENTION, _ALONE),
        Block.MLP: (Mixer.NONE, _USUAL),
        Block.NOTHING: (Mixer.NONE, _ALONE),
    }
)


def count_layers(fields: Fields) -> int:
    """Layers of the model; newer Nemotron-H configs give only the list of them."""
    listed = fields.raw("layers_block_type", "hybrid_override_pattern")
    usable = isinstance(listed, Sequence) and 0 < len(listed) <= MAX_LAYERS
    default = len(listed) if usable else None
    return fields.integer("num_hidden_layers", "n_layer", "num_layers", "n_layers", default=default, high=MAX_LAYERS)


def plan_layers(fields: Fields, style: str, layers: int) -> Plan:
    """For each layer its mixer and what follows it; ``style`` is :attr:`calc.hub.families.Family.hybrid`."""
    return _STYLES[style](fields, layers)


def _named(names: Sequence[object], table: MappingProxyType[str, tuple[Mixer, FeedForward]]) -> Plan:
    unknown = [str(name) for name in names if str(name) not in table]
    if unknown:
        raise UnknownArchitecture(
            msg(
                "layers of type {name!r} are not modelled in this family: it has {known}.",
                name=unknown[0],
                known=", ".join(table),
            )
        )
    return [table[str(name)] for name in names]


def _attending(is_attention: Callable[[int], bool], layers: int) -> Plan:
    return [(Mixer.ATTENTION if is_attention(i) else Mixer.STATE, _USUAL) for i in range(layers)]


def _layer_types(fields: Fields, layers: int) -> Plan:
    for key in ("layer_types", "layers_block_type"):
        named = fields.listing(key, layers)
        if named is not None:
            return _named(named, _NAMES)
    if fields.raw("full_attention_interval") is None:
        raise InputError(_unsaid("layer_types", layers))
    every = fields.integer("full_attention_interval")
    return _attending(lambda i: (i + 1) % every == 0, layers)


def _nemotron(fields: Fields, layers: int) -> Plan:
    pattern = fields.raw("hybrid_override_pattern", "layers_block_type")
    if not isinstance(pattern, Sequence) or len(pattern) < layers:
        raise InputError(msg("hybrid_override_pattern must name each of the {layers} layers: add it.", layers=layers))
    return _named(list(pattern)[:layers], _NEMOTRON)


def _blocks(fields: Fields, layers: int) -> Plan:
    """What each layer of a Puzzle model kept."""
    kept = fields.listing("blocks", layers)
    if kept is None:
        raise InputError(msg("the config has no block_configs: use the model's full config.json."))
    return _named(kept, _BLOCKS)


def _listed(*keys: str) -> Callable[[Fields, int], Plan]:
    """Attention in the layers listed by index, a state in the others."""

    def plan(fields: Fields, layers: int) -> Plan:
        named = fields.listing("layer_types", layers) or fields.listing("layers_block_type", layers)
        if named is not None:
            return _named(named, _NAMES)
        indices = _indices(fields, layers, *keys)
        return _attending(lambda i: i in indices, layers)

    return plan


def _indices(fields: Fields, layers: int, *keys: str) -> list[object]:
    found = fields.raw(*keys)
    if not isinstance(found, list):
        raise InputError(_unsaid(keys[0], layers))
    return found


def _unsaid(name: str, layers: int) -> Message:
    return msg(
        "the config does not say which of its {layers} layers attend: add {name}, or use the model's full config.json.",
        layers=layers,
        name=name,
    )


def _jamba(fields: Fields, layers: int) -> Plan:
    period = fields.integer("attn_layer_period", default=JAMBA_PERIOD)
    offset = fields.integer("attn_layer_offset", default=JAMBA_OFFSET, low=0)
    return _attending(lambda i: i % period == offset, layers)


def _kimi(fields: Fields, layers: int) -> Plan:
    """``linear_attn_config`` counts layers from 1."""
    states = fields.mapping("linear_attn_config").get("kda_layers")
    if not isinstance(states, list):
        raise InputError(msg("linear_attn_config must list kda_layers: use the model's full config.json."))
    return _attending(lambda i: i + 1 not in states, layers)


def _minimax(fields: Fields, layers: int) -> Plan:
    """``attn_type_list``: 0 lightning attention, 1 full attention."""
    marks = fields.listing("attn_type_list", layers)
    if marks is None:
        return _layer_types(fields, layers)
    return _attending(lambda i: marks[i] == 1, layers)


def _zamba(fields: Fields, layers: int) -> Plan:
    """A Mamba layer everywhere, beside a shared attention block in the hybrid ones."""
    named = fields.listing("layers_block_type", layers)
    if named is not None:
        return _named(named, _NAMES)
    hybrids = _indices(fields, layers, "hybrid_layer_ids")
    return [(Mixer.BOTH if i in hybrids else Mixer.STATE, _USUAL) for i in range(layers)]


def _grouped(fields: Fields, layers: int) -> Plan:
    """Every ``layer_group_size``-th layer attends."""
    every = fields.integer("layer_group_size")
    return _attending(lambda i: (i + 1) % every == 0, layers)


_STYLES: MappingProxyType[str, Callable[[Fields, int], Plan]] = MappingProxyType(
    {
        "layer-types": _layer_types,
        "nemotron": _nemotron,
        "blocks": _blocks,
        "bamba": _listed("attn_layer_indices"),
        "lfm2": _listed("full_attn_idxs"),
        "jamba": _jamba,
        "kimi": _kimi,
        "minimax": _minimax,
        "zamba": _zamba,
        "grouped": _grouped,
        "parallel": lambda _fields, layers: [(Mixer.BOTH, _USUAL)] * layers,
        "pure": lambda _fields, layers: [(Mixer.STATE, _ALONE)] * layers,
    }
)
