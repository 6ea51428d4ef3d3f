"""A model as the memory and latency arithmetic needs it, read from a Hub ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from calc.cache.recurrent import RecurrentState
from calc.messages import Message


class LayerKind(StrEnum):
    """How a layer keeps its history."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    MLA = "mla"
    RECURRENT = "recurrent"
    """No attention: a state of fixed size per sequence."""
    SHARED = "shared"
    """Attention over the cache of an earlier layer; keeps nothing of its own."""
    NONE = "none"
    """Neither attention nor state: MLP or experts only."""


ATTENTION = (LayerKind.FULL, LayerKind.SLIDING, LayerKind.CHUNKED, LayerKind.MLA)
"""Layers that attend and keep a cache of their own."""


class FeedForward(StrEnum):
    """What follows a layer's attention or state."""

    USUAL = "usual"
    """Whatever the family's rules say: a dense MLP or experts."""
    ABSENT = "absent"
    """Nothing: attention or Mamba alone (Nemotron-H)."""
    DENSE = "dense"
    EXPERTS = "experts"


@dataclass(frozen=True, kw_only=True)
class SideCache:
    """One of several caches of a layer (DeepSeek-V4): compressed keys, a window, the compressor's running state."""

    bytes_per_record: int
    tokens_per_record: int = 1
    """Tokens compressed into one record."""
    window_tokens: int | None = None
    block_tokens: int | None = None
    """``None`` = the engine's block."""
    align_bytes: int = 1
    """A block is padded to a multiple of this."""


@dataclass(frozen=True, kw_only=True)
class LayerGroup:
    """Layers that keep their cache in the same way."""

    kind: LayerKind
    layers: int
    kv_heads: int
    """KV heads over all GPUs; 1 for MLA, whose latent every TP rank keeps."""
    head_dim: int
    """Width of K per head; for MLA the latent plus the RoPE part."""
    v_head_dim: int
    """Width of V per head; 0 for MLA, which derives V from the latent."""
    window_tokens: int | None = None
    """Window or chunk length of SLIDING and CHUNKED layers."""
    sparse_index_bytes_per_token: int = 0
    """Per layer, for sparse-attention indexers (DeepSeek-V3.2)."""
    follows_index: bool = False
    """Attends to what an earlier layer's index chose: no index keys of its own, the same record (GLM-5.2)."""
    state: RecurrentState | None = None
    """Of RECURRENT layers, and of layers with attention and Mamba side by side (Falcon-H1)."""
    feed_forward: FeedForward = FeedForward.USUAL
    caches: tuple[SideCache, ...] = ()
    """Of layers that keep several caches, in place of the one the widths above describe."""


@dataclass(frozen=True, kw_only=True)
class MoE:
    """Experts of a mixture-of-experts model."""

    experts: int
    experts_per_token: int
    moe_layers: int
    expert_parameters: int
    """Parameters of one routed expert in one layer."""
    expert_size: int = 1
    """Width of one routed expert's MLP."""
    shared_expert_parameters: int = 0
    """Of the shared experts in one MoE layer, which every token passes."""


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Sizes of MLA as the config names them; the cache keeps ``kv_rank + rope_dim`` numbers per token and layer."""

    q_rank: int | None
    """Rank of the query down-projection; ``None`` where queries come straight from the hidden state."""
    kv_rank: int
    nope_dim: int
    """Per head, of queries and keys, without position."""
    rope_dim: int
    v_dim: int
    """Per head, of values."""


@dataclass(frozen=True, kw_only=True)
class WeightStorage:
    """How the checkpoint stores its weights."""

    code: str
    """bf16, fp16, fp32, fp8, int8, int4, mxfp4, nvfp4 …"""
    bytes_per_parameter: float
    """Of the quantised matrices, scales included."""
    plain_bytes_per_parameter: float = 2.0
    """Of everything left unquantised: embeddings, norms, output head, excluded modules."""
    compute_dtype: str = "bf16"
    """Dtype code of the GPU's peak the matrix products run at."""


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """Parameters of one layer by how parallelism divides them, quantised and plain apart."""

    split_quantised: int = 0
    """Divided over TP ranks."""
    split_plain: int = 0
    kv_quantised: int = 0
    """K and V projections: divided, but never below one KV head per rank."""
    kv_plain: int = 0
    replicated_quantised: int = 0
    """Held in full by every TP rank."""
    replicated_plain: int = 0
    expert_quantised: int = 0
    """Routed experts: divided over TP, or over TP × DP with expert parallelism."""
    expert_plain: int = 0
    active: int = 0
    """Parameters one token touches in this layer."""
    split_extra_bytes: float = 0.0
    """Beyond counts × storage widths: matrices of a mixed-precision checkpoint in another format, and copies."""
    kv_extra_bytes: float = 0.0
    replicated_extra_bytes: float = 0.0
    expert_extra_bytes: float = 0.0

    @property
    def quantised(self) -> int:
        """Parameters stored quantised."""
        return self.split_quantised + self.kv_quantised + self.replicated_quantised + self.expert_quantised

    @property
    def total(self) -> int:
        """All parameters of the layer."""
        return self.quantised + self.split_plain + self.kv_plain + self.replicated_plain + self.expert_plain


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One model; parameters count elements, not bytes."""

    name: str
    architecture: str
    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_tokens: int
    groups: tuple[LayerGroup, ...]
    parameters: int
    """All parameters, embeddings included (tied ones once)."""
    active_parameters: int
    """Parameters one token's matrix products touch (without the input embedding)."""
    quantised_parameters: int
    """Those stored at ``storage.bytes_per_parameter``; the rest at ``plain_bytes_per_parameter``."""
    tp_replicated_parameters: int
    """Those every TP rank holds in full (norms, routers, MLA down-projections …)."""
    embedding_parameters: int
    tied_embeddings: bool
    storage: WeightStorage
    kv_dtype: str
    """Default cache dtype code: bf16, fp16, fp32 or fp8."""
    moe: MoE | None = None
    weights_bytes_declared: int | None = None
    """Bytes of one replica when the user states them; overrides the estimate."""
    attention: str = "gqa"
    """mha, gqa, mqa, mla or none (no attention at all): what the page calls it."""
    latent: LatentAttention | None = None
    """Of MLA models only."""
    config_json: str = ""
    """The user's own ``config.json`` this was read from, so that a saved scenario can carry it; empty = catalogue."""
    layer_order: tuple[int, ...] = ()
    """For each layer in order, the index of its entry in ``groups``."""
    layer_weights: tuple[LayerWeights, ...] = ()
    """For each layer in order."""
    rope_cache_bytes: int = 0
    """Precomputed rotary tables an engine keeps beside the weights, on every rank."""
    multimodal: bool = False
    """True when the checkpoint holds more than the language model."""
    encoder_parameters: int = 0
    """Of a vision encoder and its projector, counted in ``parameters``, kept unquantised."""
    whole_encoder: bool = False
    """The encoder is held in full by every TP rank instead of being divided."""
    first_stage_parameters: int = 0
    """Beside the embedding, divided over TP: per-layer embeddings (Gemma 3n, 4) and their projections."""
    vocab_copies: int = 0
    """Matrices over the vocabulary on pipeline stages that need none: some classes create them on every stage."""
    extra_parameters: int = 0
    """Final norm, head bias and learned positions: held in full by every rank of the last stage."""
    draft_parameters: int = 0
    """In the checkpoint beyond ``parameters``: layers of multi-token prediction, loaded only for speculation."""
    draft_layer: LayerWeights | None = None
    """One such layer; ``None`` = like the last layer."""
    weight_doubt_bytes: int = 0
    """How much more the loaded model may weigh than the config tells, say an encoder it leaves out."""
    weight_notes: tuple[Message, ...] = ()
    """What about the weights had to be assumed."""
    config_notes: tuple[Message, ...] = ()
    """Sizes the config does not name and how they were read."""

    def with_draft_layers(self, count: int) -> ModelSpec:
        """The model with ``count`` draft layers (multi-token prediction), each like its last attention layer.

        DeepSeek-V3 with one: 62 layers that keep a cache in place of 61.
        """
        if count == 0:
            return self
        groups, last = self._with_draft_group()
        return replace(
            self,
            groups=tuple(replace(g, layers=g.layers + count) if i == last else g for i, g in enumerate(groups)),
            layer_order=self.layer_order + (last,) * count,
            layer_weights=self.layer_weights + (self.draft_layer or self.layer_weights[-1],) * count,
        )

    def _with_draft_group(self) -> tuple[tuple[LayerGroup, ...], int]:
        """Groups and the one a draft layer belongs to; of several caches (DeepSeek-V4) it keeps the window alone."""
        attending = [index for index in self.layer_order if self.groups[index].kind in ATTENTION]
        last = attending[-1] if attending else self.layer_order[-1]
        drafted = replace(self.groups[last], caches=self.groups[last].caches[:1])
        same = [i for i, group in enumerate(self.groups) if replace(group, layers=drafted.layers) == drafted]
        if same:
            return self.groups, same[0]
        return (*self.groups, replace(drafted, layers=0)), len(self.groups)

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        name: str = "",
        *,
        weight_dtype: str | None = None,
        kv_dtype: str | None = None,
        weights_bytes_declared: int | None = None,
    ) -> ModelSpec:
        """Read a Hub ``config.json``; dtypes ``None`` or "auto" = what the config says.

        Unknown architectures raise :class:`calc.errors.UnknownArchitecture`; nothing is guessed.
        """
        from calc.hub.reading import read_model

        return read_model(
            config,
            name,
            weight_dtype=weight_dtype,
            kv_dtype=kv_dtype,
            weights_bytes_declared=weights_bytes_declared,
        )
