"""What Gemma 3n and Gemma 4 have beside the usual layer: per-layer embeddings, AltUp, LAuReL, routers with scales."""

from __future__ import annotations

from dataclasses import dataclass

from calc.hub.config import Fields
from calc.hub.families import Family
from calc.hub.parts import Part, Split

ALTUP_INPUTS = 4
"""Default ``altup_num_inputs`` of Gemma 3n (transformers class default)."""
LAUREL_RANK = 64
"""Default ``laurel_rank`` of Gemma 3n (transformers class default)."""
MOE_NORMS = 3
"""Norms around Gemma 4's experts, beside the layer's four."""


@dataclass(frozen=True, kw_only=True)
class ModelExtras:
    """Parameters outside the layers."""

    first_stage: int = 0
    """Divided over TP ranks, on the first stage."""
    replicated: int = 0


def gemma_parts(fields: Fields, family: Family, hidden: int) -> list[Part]:
    """Parts of one layer beyond attention, MLP, experts and the family's norms."""
    parts = []
    width = fields.optional("hidden_size_per_layer_input") if family.name.startswith("Gemma") else None
    if width is not None:
        # Gate and projection of the per-layer input, and its norm: engines keep them whole on every rank.
        parts.append(Part(elements=2 * hidden * width + hidden, split=Split.NONE))
    if family.name == "Gemma 3n":
        parts.append(_altup(fields, hidden))
        rank = fields.integer("laurel_rank", default=LAUREL_RANK)
        parts.append(Part(elements=2 * hidden * rank, split=Split.EVEN))
        parts.append(Part(elements=hidden, split=Split.NONE))
    if family.name == "Gemma 4":
        # A scalar for the whole layer; with experts a scale per channel before the router and one per expert.
        experts = fields.optional("num_experts") or 0
        parts.append(Part(elements=1 + ((MOE_NORMS + 1) * hidden + experts if experts else 0), split=Split.NONE))
    return parts


def _altup(fields: Fields, hidden: int) -> Part:
    """Prediction and correction coefficients, a router over the inputs with its norm, and an output scale."""
    inputs = fields.integer("altup_num_inputs", default=ALTUP_INPUTS)
    return Part(elements=inputs**2 + inputs**3 + hidden * inputs + 2 * hidden, split=Split.NONE)


def gemma_extras(fields: Fields, family: Family, hidden: int, layers: int, vocab: int) -> ModelExtras:
    """Per-layer embeddings of all layers with their projection, and AltUp's projections in and out."""
    width = fields.optional("hidden_size_per_layer_input") if family.name.startswith("Gemma") else None
    if width is None:
        return ModelExtras()
    rows = fields.integer("vocab_size_per_layer_input", default=vocab)
    inputs = fields.integer("altup_num_inputs", default=ALTUP_INPUTS) if family.name == "Gemma 3n" else 1
    projections = 2 * (inputs - 1) * hidden * hidden + hidden * layers * width
    return ModelExtras(first_stage=rows * layers * width + projections, replicated=width)
