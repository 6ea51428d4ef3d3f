"""What one layer keeps on one GPU: bytes per token or per sequence, in blocks or pages of which size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from calc.cache.recurrent import StateKind
from calc.dtypes import INT8_KV_SCALE_BYTES, KV_BYTES
from calc.model import LayerGroup, LayerKind, ModelSpec, SideCache

SPARSE_FP8_RECORD_BYTES = 656
"""One token in one layer of the FP8 sparse MLA cache: 512 FP8 + four FP32 scales + 64 BF16 RoPE values
(vLLM ``flashmla_sparse.py``)."""
WINDOW_EXTRA_BLOCKS = 1
"""A window that does not start at a block edge touches one block more (vLLM ``SlidingWindowSpec``)."""


@dataclass(frozen=True, kw_only=True)
class CacheSpec:
    """One cache of one layer on one GPU; layers whose specs are equal may share a block table."""

    kind: LayerKind
    block_tokens: int
    """Tokens of one block; for states not used."""
    page_bytes: int
    """Of one block in one layer, padding included."""
    window_tokens: int | None = None
    copies: int = 0
    """Blocks a sequence holds whatever its length: states."""
    widths: tuple[int, ...] = ()
    """Heads and their widths: layers that differ here never share a table unless all layers are of one type."""

    @property
    def type_key(self) -> tuple[object, ...]:
        """Layers with the same key always need the same number of blocks (vLLM ``UniformTypeKVCacheSpecs``)."""
        if self.kind is LayerKind.RECURRENT:
            return (self.kind, self.page_bytes, self.copies)
        if self.window_tokens is None:
            return (LayerKind.FULL, self.block_tokens)
        return (self.kind, self.block_tokens, self.window_tokens)

    def blocks(self, tokens: int, in_flight_tokens: int) -> int:
        """Blocks of a sequence of ``tokens``, with ``in_flight_tokens`` not yet out of the window."""
        if self.copies:
            return self.copies
        if self.window_tokens is None:
            return math.ceil(tokens / self.block_tokens)
        if self.kind is LayerKind.CHUNKED:
            return math.ceil(min(self.window_tokens + in_flight_tokens, tokens) / self.block_tokens)
        kept = min(self.window_tokens - 1 + in_flight_tokens, tokens)
        return math.ceil(kept / self.block_tokens) + WINDOW_EXTRA_BLOCKS


@dataclass(frozen=True, kw_only=True)
class CacheRules:
    """The settings that shape caches on one GPU."""

    kv_dtype: str
    tp: int
    block_tokens: int
    prefix_caching: bool = False
    spec_tokens: int = 0
    """Speculated tokens per step."""


def heads_per_gpu(kv_heads: int, tp: int) -> int:
    """KV heads one GPU stores: they are replicated, not divided, once TP exceeds their number."""
    return max(1, kv_heads // tp)


def layer_bytes_per_token(group: LayerGroup, kv_dtype: str, tp: int) -> float:
    """Bytes per token of one layer on one GPU: heads × (D_k + D_v) × B, plus index keys and scales.

    MLA keeps one latent on every TP rank; its V is derived (v_head_dim 0). Layers without a cache of their own: 0.
    Of several caches those count that grow without end: what a window or a running state keeps is a fixed part.
    """
    return 0.0 if group.kind is LayerKind.SHARED else read_bytes_per_token(group, kv_dtype, tp)


def read_bytes_per_token(group: LayerGroup, kv_dtype: str, tp: int) -> float:
    """Bytes attention reads per earlier token in one layer on one GPU, from its own cache or from a shared one."""
    if group.caches:
        return sum(cache.bytes_per_record / cache.tokens_per_record for cache in endless_caches(group))
    if not group.head_dim:
        return 0.0
    is_sparse = group.sparse_index_bytes_per_token > 0 or group.follows_index
    if kv_dtype == "fp8" and group.kind is LayerKind.MLA and is_sparse:
        return SPARSE_FP8_RECORD_BYTES + group.sparse_index_bytes_per_token
    heads = 1 if group.kind is LayerKind.MLA else heads_per_gpu(group.kv_heads, tp)
    scales = INT8_KV_SCALE_BYTES * (1 + bool(group.v_head_dim)) if kv_dtype == "int8" else 0
    per_head = (group.head_dim + group.v_head_dim) * KV_BYTES[kv_dtype] + scales
    return heads * per_head + group.sparse_index_bytes_per_token


def endless_caches(group: LayerGroup) -> list[SideCache]:
    """Of a layer with several caches, those without a window."""
    return [cache for cache in group.caches if cache.window_tokens is None]


def state_copies(kind: StateKind, *, prefix_caching: bool, spec_tokens: int = 0) -> int:
    """States an engine reserves for a sequence: 1, one more per speculated token; with prefix caching one more to
    resume from, and for Mamba-2 one for a checkpoint within a prompt (vLLM 0.32 ``MambaSpec``)."""
    if not prefix_caching:
        return 1 + spec_tokens
    return 2 + spec_tokens + (kind is StateKind.MAMBA2)


def states_per_sequence(model: ModelSpec, *, prefix_caching: bool, spec_tokens: int = 0) -> int:
    """States reserved for a sequence in each recurrent layer; 0 where there is none."""
    kinds = {group.state.kind for group in model.groups if group.state is not None}
    counts = (state_copies(kind, prefix_caching=prefix_caching, spec_tokens=spec_tokens) for kind in kinds)
    return max(counts, default=0)


def state_bytes(model: ModelSpec, tp: int, spec_tokens: int = 0) -> int:
    """One state of every recurrent layer together, on one GPU that holds all layers: what one sequence adds."""
    return sum(
        group.layers * group.state.bytes_per_gpu(tp, spec_tokens) for group in model.groups if group.state is not None
    )


def hybrid_block_tokens(model: ModelSpec, rules: CacheRules, mla_align_tokens: int) -> int:
    """Block of attention beside recurrent layers: the usual one, raised until its page holds a state.

    align · ceil(state / (align · bytes per token)), align the usual block, for MLA at least ``mla_align_tokens``
    (vLLM ``_align_hybrid_block_size``): Qwen3.6-35B-A3B with FP8 cache: 2,096.
    """
    states = [g.state.bytes_per_gpu(rules.tp, rules.spec_tokens) for g in model.groups if g.state is not None]
    rates = {g.kind: layer_bytes_per_token(g, rules.kv_dtype, rules.tp) for g in model.groups if g.head_dim}
    block = rules.block_tokens
    if not states or not rates:
        return block
    align = max(block, mla_align_tokens) if LayerKind.MLA in rates else block
    return max(block, align * math.ceil(max(states) / (align * max(rates.values()))))


def layer_specs(group: LayerGroup, rules: CacheRules) -> Iterator[CacheSpec]:
    """The caches of one layer: none, one, or several."""
    yield from (_side_spec(cache, rules) for cache in group.caches)
    rate = 0.0 if group.caches else layer_bytes_per_token(group, rules.kv_dtype, rules.tp)
    if rate:
        yield CacheSpec(
            kind=group.kind,
            block_tokens=rules.block_tokens,
            page_bytes=round(rate * rules.block_tokens),
            window_tokens=group.window_tokens,
            widths=(group.kv_heads, group.head_dim, group.v_head_dim, group.sparse_index_bytes_per_token),
        )
    if group.state is not None:
        yield CacheSpec(
            kind=LayerKind.RECURRENT,
            block_tokens=rules.block_tokens,
            page_bytes=group.state.bytes_per_gpu(rules.tp, rules.spec_tokens),
            copies=state_copies(group.state.kind, prefix_caching=rules.prefix_caching, spec_tokens=rules.spec_tokens),
        )


def _side_spec(cache: SideCache, rules: CacheRules) -> CacheSpec:
    block = cache.block_tokens or rules.block_tokens
    raw = block // cache.tokens_per_record * cache.bytes_per_record
    return CacheSpec(
        kind=LayerKind.FULL if cache.window_tokens is None else LayerKind.SLIDING,
        block_tokens=block,
        page_bytes=math.ceil(raw / cache.align_bytes) * cache.align_bytes,
        window_tokens=cache.window_tokens,
        widths=(cache.bytes_per_record, cache.tokens_per_record),
    )
