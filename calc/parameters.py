"""Counting parameters: how many, which a token touches, which are quantised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calc.config import MAX_POSITIONS, Fields
from calc.experts import Experts, read_experts
from calc.families import Family
from calc.layer_weights import layer_weights, mlp_elements
from calc.layers import Heads
from calc.model import LayerGroup, LayerWeights, MoE
from calc.quantisation import Storage


@dataclass(frozen=True, kw_only=True)
class Count:
    """Parameters of a language model."""

    layers: tuple[LayerWeights, ...]
    """One per layer, in order."""
    embedding: int
    """Input embedding, without padding."""
    head: int
    """Output head; 0 when tied."""
    extras: int
    """Final norm, head bias and learned positions."""
    moe: MoE | None

    @property
    def total(self) -> int:
        """All parameters, tied embeddings once."""
        return sum(layer.total for layer in self.layers) + self.embedding + self.head + self.extras

    @property
    def active(self) -> int:
        """Those one token's matrix products touch: without the input embedding, with the output head."""
        return sum(layer.active for layer in self.layers) + (self.head or self.embedding) + self.extras


def count_parameters(
    fields: Fields, family: Family, heads: Heads, layers: Sequence[LayerGroup], storage: Storage
) -> Count:
    """Every parameter of the language model; ``layers`` gives the cache group of each layer in order."""
    vocab = fields.integer("vocab_size")
    experts = read_experts(fields, family)
    tied = fields.flag("tie_word_embeddings", default=family.tied)
    extras = heads.hidden * (2 if family.norm_has_bias else 1) + (vocab if family.head_bias else 0)
    if family.learned_positions is not None:
        extras += (max_positions(fields, family) + family.learned_positions) * heads.hidden
    return Count(
        layers=tuple(
            layer_weights(fields, family, heads, group, storage, experts, i) for i, group in enumerate(layers)
        ),
        embedding=vocab * heads.hidden,
        head=0 if tied else vocab * heads.hidden,
        extras=extras,
        moe=None if experts is None else _moe(experts, heads, family),
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


def _moe(experts: Experts, heads: Heads, family: Family) -> MoE:
    return MoE(
        experts=experts.count,
        experts_per_token=experts.per_token,
        moe_layers=sum(experts.is_moe(i) for i in range(heads.layers)),
        expert_parameters=mlp_elements(family, heads.hidden, experts.size),
        expert_size=experts.size,
        shared_expert_parameters=mlp_elements(family, heads.hidden, experts.shared_size) if experts.shared_size else 0,
    )
