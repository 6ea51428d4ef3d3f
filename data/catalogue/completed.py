"""A config that is only the language part of a catalogue model: what the whole checkpoint adds, said aloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calc.messages import msg
from calc.model import ModelSpec
from data.catalogue.tables import ModelEntry, models

_SHAPE = ("layers", "hidden_size", "heads", "kv_heads", "head_dim", "intermediate_size")
"""What must agree before a config counts as a catalogue model's language part."""


def completed(spec: ModelSpec, config: Mapping[str, Any]) -> ModelSpec:
    """``spec`` with encoder and rotary scaling of the catalogue model of this name, where it is its text part.

    Engines load the checkpoint behind the name, encoder included; without such a model ``spec`` comes back as it is.
    """
    entry = _named(spec.name)
    if entry is None or spec.multimodal or spec.encoder_parameters:
        return spec
    whole = entry.spec()
    if not whole.multimodal or any(getattr(whole, name) != getattr(spec, name) for name in _SHAPE):
        return spec
    says_rotary = any(config.get(name) for name in ("rope_scaling", "rope_parameters"))
    note = msg(
        "The config given for {model} is its language part: the encoder, {count:count} million parameters, is counted "
        "from the catalogue.",
        model=spec.name,
        count=round(whole.encoder_parameters / 10**6),
    )
    return replace(
        spec,
        parameters=spec.parameters + whole.encoder_parameters,
        encoder_parameters=whole.encoder_parameters,
        rope_cache_bytes=spec.rope_cache_bytes if says_rotary else whole.rope_cache_bytes,
        multimodal=True,
        weight_doubt_bytes=0,
        weight_notes=(note,),
    )


def _named(name: str) -> ModelEntry | None:
    """By Hub id or the part after its slash; case does not matter."""
    wanted = name.strip().lower()
    return next((entry for entry in models().values() if wanted in (entry.id.lower(), entry.name.lower())), None)
