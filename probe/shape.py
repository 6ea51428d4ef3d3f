"""One transformer layer as one GPU of a tensor-parallel group holds it, and what its steps cost on paper.

Counts follow the usual convention: a multiply-add is 2 FLOP, causal prefill attends to half of the square, weights are
read once per step. Left out: biases, RoPE, the softmax itself and the communication between GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from calc.errors import InputError
from calc.messages import Message, msg
from calc.model import LatentAttention, LayerGroup, LayerKind, ModelSpec

ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
"""The dtypes a plain torch layer is measured in."""
SERVED_DTYPES = ("bf16", "fp16")
"""What engines run unquantised layers in."""
FALLBACK_DTYPE = "bf16"
"""What all other models are measured in; the result says so."""
GATED_MATRICES = 3
"""Gate, up and down."""
PLAIN_MATRICES = 2
"""Up and down."""
TWO_PROJECTIONS, ONE_PROJECTION = 2, 1
"""Keys and values each by their own, or both by one."""
UNGATED_EXCESS_SHARE = 0.1
"""A gated MLP counted for a plain one overshoots a layer by a third; biases and routers move it by under 1 %."""
SHARED_EXCESS_SHARE = 0.01
"""A value projection counted where keys serve as values overshoots a layer by a few percent (2 % in Gemma 4)."""
ALIKE_SHARE = 0.01
"""Biases and routers move a layer's weights by less."""
FLOP_PER_WEIGHT = 2
"""A multiply and an add."""


@dataclass(frozen=True, kw_only=True)
class LayerShape:
    """Sizes of the part of a layer that one GPU holds."""

    name: str
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    """Of queries and keys; for MLA ``nope_dim + rope_dim``."""
    v_head_dim: int
    intermediate_size: int
    """Width of the MLP one token passes; of a mixture of experts, that of its active experts together."""
    dtype: str
    mlp_matrices: int = GATED_MATRICES
    tp: int = 1
    latent: LatentAttention | None = None
    kv_projections: int = TWO_PROJECTIONS
    """One where it makes the keys that also serve as values; the cache still holds both."""
    notes: tuple[Message, ...] = ()
    """In what this layer differs from the model's own."""

    def __post_init__(self) -> None:
        sizes = (
            ("hidden size", self.hidden_size),
            ("heads", self.heads),
            ("KV heads", self.kv_heads),
            ("head size", self.head_dim),
            ("value head size", self.v_head_dim),
            ("MLP width", self.intermediate_size),
            ("number of MLP matrices", self.mlp_matrices),
            ("number of K and V projections", self.kv_projections),
            ("TP", self.tp),
        )
        for name, value in sizes:
            if value < 1:
                raise InputError(
                    msg("The layer's {name} must be at least 1, got {value}: correct it.", name=name, value=value)
                )
        if self.heads % self.kv_heads:
            raise InputError(
                msg(
                    "{heads} attention heads cannot share {kv_heads} KV heads evenly: choose another TP.",
                    heads=self.heads,
                    kv_heads=self.kv_heads,
                )
            )
        if self.dtype not in ELEMENT_BYTES:
            raise InputError(
                msg(
                    "A layer is measured in {known}, got {dtype}: choose one of these.",
                    known=", ".join(ELEMENT_BYTES),
                    dtype=self.dtype,
                )
            )

    @property
    def element_bytes(self) -> int:
        """Bytes of one number."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def attention_weights(self) -> int:
        """Of the projections around attention: Q, K, V, O, or MLA's down- and up-projections."""
        output = self.heads * self.v_head_dim * self.hidden_size
        if self.latent is None:
            keys_and_values = self.kv_heads * (self.head_dim + (self.kv_projections - 1) * self.v_head_dim)
            return self.hidden_size * (self.heads * self.head_dim + keys_and_values) + output
        return _latent_weights(self.latent, self.hidden_size, self.heads) + output

    @property
    def matmul_weights(self) -> int:
        """Weights that every token is multiplied with."""
        return self.attention_weights + self.mlp_matrices * self.hidden_size * self.intermediate_size

    @property
    def norm_weights(self) -> int:
        """Of the two RMS norms, and for MLA of those inside the down-projections."""
        inner = 0 if self.latent is None else self.latent.kv_rank + (self.latent.q_rank or 0)
        return 2 * self.hidden_size + inner

    @property
    def weights(self) -> int:
        """All weights of the layer on this GPU."""
        return self.matmul_weights + self.norm_weights

    @property
    def weight_bytes(self) -> int:
        """Bytes a step reads whatever its batch."""
        return self.weights * self.element_bytes

    @property
    def kv_bytes_per_token(self) -> int:
        """Cache bytes of one token in this layer on this GPU."""
        if self.latent is not None:
            return (self.latent.kv_rank + self.latent.rope_dim) * self.element_bytes
        return self.kv_heads * (self.head_dim + self.v_head_dim) * self.element_bytes

    def prefill_flops(self, tokens: int) -> int:
        """FLOP to prefill one prompt of ``tokens``: token i attends to the i tokens up to itself."""
        attention = self.heads * (self.head_dim + self.v_head_dim) * tokens * (tokens + 1)
        return FLOP_PER_WEIGHT * self.matmul_weights * tokens + attention

    def prefill_bytes(self, tokens: int) -> int:
        """Least bytes a prefill moves: weights, the cache it writes, hidden state in and out."""
        return self.weight_bytes + tokens * (self.kv_bytes_per_token + self._hidden_bytes)

    def decode_flops(self, batch: int, context_tokens: int) -> int:
        """FLOP to give ``batch`` sequences one token each, with ``context_tokens`` in the cache (the new one included).

        MLA decodes in its latent space, so its attention is as wide as the cached vector.
        """
        width = self.head_dim + self.v_head_dim
        if self.latent is not None:
            width = 2 * self.latent.kv_rank + self.latent.rope_dim
        attention = FLOP_PER_WEIGHT * self.heads * width * context_tokens
        return batch * (FLOP_PER_WEIGHT * self.matmul_weights + attention)

    def decode_bytes(self, batch: int, context_tokens: int) -> int:
        """Least bytes a decode step moves: weights, every sequence's cache, hidden state in and out."""
        return self.weight_bytes + batch * (context_tokens * self.kv_bytes_per_token + self._hidden_bytes)

    @property
    def _hidden_bytes(self) -> int:
        """Per token: the hidden state read and written."""
        return 2 * self.hidden_size * self.element_bytes


def layer_shape(model: ModelSpec, tp: int = 1) -> LayerShape:
    """The layer of ``model`` that stands for most of its work, split over ``tp`` GPUs.

    A full-attention layer is taken where the model has one; experts become one dense MLP as wide as a token's own.
    """
    if tp < 1 or model.heads % tp:
        raise InputError(
            msg(
                "TP {tp} does not divide the {heads} attention heads of {model}: choose another TP.",
                tp=tp,
                heads=model.heads,
                model=model.name,
            )
        )
    whole = _whole_layer(model)
    return replace(
        whole,
        heads=whole.heads // tp,
        kv_heads=max(1, whole.kv_heads // tp),
        intermediate_size=-(-whole.intermediate_size // tp),
        tp=tp,
    )


def _whole_layer(model: ModelSpec) -> LayerShape:
    group = _typical_group(model)
    dtype = model.storage.compute_dtype if model.storage.compute_dtype in SERVED_DTYPES else FALLBACK_DTYPE
    latent = _latent_of(model) if group.kind is LayerKind.MLA else None
    gated = LayerShape(
        name=model.name,
        hidden_size=model.hidden_size,
        heads=model.heads,
        kv_heads=group.kv_heads,
        head_dim=group.head_dim if latent is None else latent.nope_dim + latent.rope_dim,
        v_head_dim=group.v_head_dim if latent is None else latent.v_dim,
        intermediate_size=_mlp_width(model),
        dtype=dtype,
        latent=latent,
        notes=_differences(model, group, dtype),
    )
    return _with_shortfall(model, _fitted(model, gated, is_latent=latent is not None))


def _fitted(model: ModelSpec, gated: LayerShape, *, is_latent: bool) -> LayerShape:
    """Without a gate, or with one projection for keys and values, where the model's own count says so."""
    known = max((layer.active for layer in model.layer_weights), default=None)
    if known is not None and gated.weights > (1 + UNGATED_EXCESS_SHARE) * known:
        return replace(gated, mlp_matrices=PLAIN_MATRICES)
    alike = not is_latent and gated.head_dim == gated.v_head_dim
    if known is not None and alike and gated.weights > (1 + SHARED_EXCESS_SHARE) * known:
        return replace(gated, kv_projections=ONE_PROJECTION)
    return gated


def _with_shortfall(model: ModelSpec, shape: LayerShape) -> LayerShape:
    """Says how far the layer's weights are from the nearest of the model's own, where parts of those are left out."""
    off = min((abs(shape.weights / layer.active - 1) for layer in model.layer_weights if layer.active), default=0.0)
    if off <= ALIKE_SHARE:
        return shape
    note = msg(
        "The layer measured differs by {share:pct} in weights from the nearest of {model}: what is neither attention "
        "nor MLP, say a recurrent state or a gate, is left out.",
        share=off,
        model=model.name,
    )
    return replace(shape, notes=(*shape.notes, note))


def _typical_group(model: ModelSpec) -> LayerGroup:
    whole_history = [group for group in model.groups if group.kind in (LayerKind.FULL, LayerKind.MLA)]
    return max(whole_history or model.groups, key=lambda group: group.layers)


def _latent_of(model: ModelSpec) -> LatentAttention:
    if any(group.caches for group in model.groups):
        raise InputError(
            msg("The compressed attention of {model} is not built in here: measure another model.", model=model.name)
        )
    if model.latent is None:
        raise InputError(
            msg("The latent-attention sizes of {model} are not known: load its config.json again.", model=model.name)
        )
    return model.latent


def _latent_weights(latent: LatentAttention, hidden_size: int, heads: int) -> int:
    query_width = heads * (latent.nope_dim + latent.rope_dim)
    queries = hidden_size * query_width
    if latent.q_rank is not None:
        queries = latent.q_rank * (hidden_size + query_width)
    down = hidden_size * (latent.kv_rank + latent.rope_dim)
    return queries + down + latent.kv_rank * heads * (latent.nope_dim + latent.v_dim)


def _mlp_width(model: ModelSpec) -> int:
    if model.moe is None:
        return model.intermediate_size
    active = model.moe.experts_per_token * model.moe.expert_parameters + model.moe.shared_expert_parameters
    return active // (GATED_MATRICES * model.hidden_size)


def _differences(model: ModelSpec, group: LayerGroup, dtype: str) -> tuple[Message, ...]:
    notes = []
    if model.storage.code != dtype:
        notes.append(
            msg("Weights stored as {stored} were measured as {dtype}.", stored=model.storage.code, dtype=dtype)
        )
    if model.moe is not None:
        notes.append(
            msg(
                "The active experts of a token ({experts}) were measured as one dense MLP: "
                "a batch that spreads over more experts reads more weights.",
                experts=model.moe.experts_per_token,
            )
        )
    if group.kind is LayerKind.MLA:
        notes.append(msg("Latent attention was measured without a fused kernel: an engine decodes faster."))
    if group.sparse_index_bytes_per_token:
        notes.append(msg("Sparse attention was measured as full attention, without its indexer."))
    if group.window_tokens is not None:
        notes.append(msg("The attention window of {tokens:tok} was not applied.", tokens=group.window_tokens))
    return tuple(notes)
