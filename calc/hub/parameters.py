"""Counting parameters: how many, which a token touches, which are quantised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calc.hub.compressed_weights import compression_ratio, hyper_head
from calc.hub.config import MAX_POSITIONS, Fields
from calc.hub.experts import Experts, read_experts
from calc.hub.families import Family
from calc.hub.gemma_weights import gemma_extras
from calc.hub.layer_weights import dense_size, draft_weights, layer_weights, mlp_elements
from calc.hub.layers import Heads
from calc.hub.quantisation import Storage
from calc.model import FeedForward, LayerGroup, LayerKind, LayerWeights, MoE

DRAFT_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
"""How many layers of multi-token prediction the checkpoint holds."""
MAX_DRAFT_LAYERS = 16
OWN_DRAFT_VOCABULARY = ("deepseek_v3", "deepseek_v32", "glm4_moe", "glm4_moe_lite")
"""Types whose checkpoints repeat embedding and head for their draft layers; engines share the model's."""

UNBOUNDED_POSITIONS = 2048
"""Length engines assume for a model without attention, whose config names no limit (vLLM ``config/model.py``)."""


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
    first_stage: int
    """Per-layer embeddings and what projects them (Gemma 3n, 4)."""
    moe: MoE | None
    draft_layer: LayerWeights | None
    draft: int
    """Of the layers of multi-token prediction, not part of the total."""

    @property
    def total(self) -> int:
        """All parameters, tied embeddings once."""
        beside = self.embedding + self.head + self.extras + self.first_stage
        return sum(layer.total for layer in self.layers) + beside

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
    beside = gemma_extras(fields, family, heads.hidden, heads.layers, vocab)
    drafts = draft_count(fields)
    draft_layer = draft_weights(fields, family, heads, _draft_group(layers), storage, experts) if drafts else None
    own_vocabulary = 2 * vocab * heads.hidden if fields.text("model_type") in OWN_DRAFT_VOCABULARY else 0
    return Count(
        layers=_layers(fields, family, heads, layers, storage, experts),
        embedding=vocab * heads.hidden,
        head=0 if tied else vocab * heads.hidden,
        extras=_extras(fields, family, heads, vocab) + beside.replicated,
        first_stage=beside.first_stage,
        moe=None if experts is None else _moe(experts, heads, family, layers),
        draft_layer=draft_layer,
        draft=drafts * (draft_layer.total + own_vocabulary) if draft_layer else 0,
    )


def _layers(
    fields: Fields,
    family: Family,
    heads: Heads,
    layers: Sequence[LayerGroup],
    storage: Storage,
    experts: Experts | None,
) -> tuple[LayerWeights, ...]:
    """Every layer; those of one shape are counted once, and equal ones are one object."""
    counted: dict[tuple[object, ...], LayerWeights] = {}
    alike: dict[LayerWeights, LayerWeights] = {}
    found = []
    for i, group in enumerate(layers):
        shape = (group, experts is not None and experts.is_moe(i), dense_size(fields, family, heads.hidden, i))
        is_alike = storage.is_same_in_every_layer and family.hybrid != "zamba"
        key = (*shape, compression_ratio(fields, i) if is_alike else i)
        if key not in counted:
            weights = layer_weights(fields, family, heads, group, storage, experts, i)
            counted[key] = alike.setdefault(weights, weights)
        found.append(counted[key])
    return tuple(found)


def _extras(fields: Fields, family: Family, heads: Heads, vocab: int) -> int:
    extras = heads.hidden * (2 if family.norm_has_bias else 1) + (vocab if family.head_bias else 0)
    if family.learned_positions is not None:
        extras += (max_positions(fields, family) + family.learned_positions) * heads.hidden
    return extras + (hyper_head(fields, heads.hidden) if family.compressed else 0)


def draft_count(fields: Fields) -> int:
    """Layers of multi-token prediction in the checkpoint."""
    count = fields.optional(*DRAFT_KEYS)
    return min(count, MAX_DRAFT_LAYERS) if count else 0


def _draft_group(layers: Sequence[LayerGroup]) -> LayerGroup:
    """Draft layers attend; in hybrids they are like the last layer that does, with the usual experts behind it.

    Where an index over keys belongs to some layers only (GLM-5.2), the draft layer has one.
    """
    attending = [group for group in layers if group.kind not in (LayerKind.RECURRENT, LayerKind.NONE)]
    if not attending:
        return layers[-1]
    group = next((group for group in reversed(attending) if group.sparse_index_bytes_per_token), attending[-1])
    after = FeedForward.USUAL if group.feed_forward is FeedForward.ABSENT else group.feed_forward
    return replace(group, feed_forward=after)


def max_positions(fields: Fields, family: Family) -> int:
    """Longest context the model was made for, in tokens."""
    return fields.integer(
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "seq_length",
        "model_max_length",
        default=UNBOUNDED_POSITIONS if family.hybrid == "pure" else family.positions_default,
        high=MAX_POSITIONS,
    )


def _moe(experts: Experts, heads: Heads, family: Family, layers: Sequence[LayerGroup]) -> MoE:
    with_experts = (FeedForward.USUAL, FeedForward.EXPERTS)
    return MoE(
        experts=experts.count,
        experts_per_token=experts.per_token,
        moe_layers=sum(experts.is_moe(i) and group.feed_forward in with_experts for i, group in enumerate(layers)),
        expert_parameters=mlp_elements(family, experts.latent or heads.hidden, experts.size),
        expert_size=experts.size,
        shared_expert_parameters=mlp_elements(family, heads.hidden, experts.shared_size) if experts.shared_size else 0,
    )
