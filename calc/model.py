"""A model as the memory and latency arithmetic needs it, read from a Hub ``config.json``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LayerKind(StrEnum):
    """How a layer keeps its history."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    MLA = "mla"


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


@dataclass(frozen=True, kw_only=True)
class MoE:
    """Experts of a mixture-of-experts model."""

    experts: int
    experts_per_token: int
    moe_layers: int
    expert_parameters: int
    """Parameters of one routed expert in one layer."""
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
    """mha, gqa, mqa or mla: what the page calls it."""
    latent: LatentAttention | None = None
    """Of MLA models only."""
    config_json: str = ""
    """The user's own ``config.json`` this was read from, so that a saved scenario can carry it; empty = catalogue."""
