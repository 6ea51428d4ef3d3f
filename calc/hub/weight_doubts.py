"""What a config leaves open about the weights: how many bytes more there may be, and one sentence on each point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calc.hub.config import Fields
from calc.hub.encoder import Encoder
from calc.hub.families import Family
from calc.hub.layers import Heads
from calc.hub.module_patterns import module_set
from calc.hub.parameters import Count, count_parameters
from calc.hub.parts import names_of
from calc.hub.quantisation import EXCLUSION_KEYS, Storage, quantisation_block
from calc.messages import Message, msg
from calc.model import LayerGroup, LayerWeights

SILENT_FORMAT = "nvfp4"
"""Checkpoints in this format often leave attention unquantised, and their full config says so."""


@dataclass(frozen=True, kw_only=True)
class Doubts:
    """Beyond the estimate."""

    more_bytes: int
    notes: tuple[Message, ...]


def weight_doubts(
    fields: Fields,
    family: Family,
    heads: Heads,
    layers: Sequence[LayerGroup],
    storage: Storage,
    count: Count,
    encoder: Encoder,
) -> Doubts:
    """Encoders that are not described, exclusion lists that are missing, expressions that were not followed."""
    more = encoder.doubt_parameters * storage.weights.plain_bytes_per_parameter
    notes = encoder.notes + _unread(storage)
    if storage.weights.code == SILENT_FORMAT and _names_no_exclusions(fields):
        plain = replace(storage, excluded=module_set(_attention_names(family)))
        other = count_parameters(fields, family, heads, layers, plain)
        silent = _stored(other.layers, storage) - _stored(count.layers, storage)
        more += silent
        notes += (_silent_note(silent),)
    return Doubts(more_bytes=int(more), notes=notes)


def _names_no_exclusions(fields: Fields) -> bool:
    block = quantisation_block(fields)
    return bool(block) and not any(block.get(key) for key in (*EXCLUSION_KEYS, "quantized_layers"))


def _attention_names(family: Family) -> tuple[str, ...]:
    name = names_of(family).attention
    return (f"*{name}.*",) if name != names_of(family).mlp else (f"*{name}.?_proj",)


def _stored(layers: Sequence[LayerWeights], storage: Storage) -> float:
    narrow, plain = storage.weights.bytes_per_parameter, storage.weights.plain_bytes_per_parameter
    quantised = sum(layer.quantised for layer in layers)
    return quantised * narrow + (sum(layer.total for layer in layers) - quantised) * plain


def _silent_note(more_bytes: float) -> Message:
    return msg(
        "The quantisation in the config names no unquantised modules: where the checkpoint leaves attention "
        "unquantised, as many do, weights are {more:gib} more.",
        more=more_bytes,
    )


def _unread(storage: Storage) -> tuple[Message, ...]:
    if not storage.unread:
        return ()
    return (
        msg(
            "The expression {text!r} in the config's list of unquantised modules was not followed: what it names is "
            "counted as quantised.",
            text=storage.unread[0],
        ),
    )
