"""The KV cache as engines lay it out: bytes per token and per request, and blocks per pipeline stage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from calc.cache.grouping import Owned, group_caches
from calc.cache.specs import CacheRules, CacheSpec, heads_per_gpu, layer_bytes_per_token, layer_specs, state_copies
from calc.model import LayerGroup, LayerKind, ModelSpec

__all__ = [
    "NULL_BLOCKS",
    "BlockPlan",
    "CacheGroup",
    "fixed_bytes",
    "heads_per_gpu",
    "kv_bytes_per_token",
    "layer_bytes_per_token",
    "layers_per_stage",
    "plan_blocks",
    "request_bytes",
    "shares_across_stages",
    "stage_spans",
]

NULL_BLOCKS = 1
"""Block 0 is never given out; it counts in the admission check, not in the logged total (vLLM 0.32)."""

KEPT_PLANS = 512
"""Block plans kept: a plan is some kilobytes, a search over one model sees some dozens."""
LEAST_BYTES = 1
"""Bytes of a block on a stage whose layers keep nothing (MLPs of Nemotron-H): never what is short."""


def layers_per_stage(layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each pipeline stage: the remainder goes to the second-last stage and back (vLLM ``get_pp_indices``).

    80 layers over 3 stages: 27, 27, 26.
    """
    counts = [layers // pp] * pp
    for back in range(2, layers % pp + 2):
        counts[-back] += 1
    return tuple(counts)


def stage_spans(model: ModelSpec, pp: int) -> list[range]:
    """Positions of each stage's layers in ``layer_order``; draft layers sit on the last stage."""
    counts = list(layers_per_stage(model.layers, pp))
    counts[-1] += len(model.layer_order) - model.layers
    ends = list(itertools.accumulate(counts))
    return [range(end - count, end) for count, end in zip(counts, ends, strict=True)]


def shares_across_stages(model: ModelSpec, pp: int) -> bool:
    """Whether a layer would read the cache of a layer on another pipeline stage, which engines cannot do."""
    for span in stage_spans(model, pp):
        groups = [model.groups[model.layer_order[layer]] for layer in span]
        owned = {group.window_tokens for group in groups if group.kind is not LayerKind.SHARED}
        if any(group.kind is LayerKind.SHARED and group.window_tokens not in owned for group in groups):
            return True
    return False


def kv_bytes_per_token(model: ModelSpec, kv_dtype: str, tp: int, pp: int = 1) -> int:
    """Bytes one more cached token takes on the GPU of the widest pipeline stage, while every layer still holds it.

    Beyond its window a local layer stops growing, and recurrent layers never grow: see :func:`request_bytes`.
    """
    rates = [layer_bytes_per_token(group, kv_dtype, tp) for group in model.groups]
    return round(_widest_stage(model, pp, rates))


def request_bytes(
    model: ModelSpec,
    kv_dtype: str,
    tp: int,
    pp: int,
    tokens: float,
    *,
    prefix_caching: bool = False,
    spec_tokens: int = 0,
) -> float:
    """Bytes of a request with ``tokens`` cached tokens on one GPU of the widest stage; windows cap local layers.

    Recurrent layers add their states, as many copies as the engine reserves for a sequence.
    """
    rules = CacheRules(kv_dtype=kv_dtype, tp=tp, block_tokens=1, prefix_caching=prefix_caching, spec_tokens=spec_tokens)
    return _widest_stage(model, pp, [_layer_bytes(group, rules, tokens) for group in model.groups])


def _layer_bytes(group: LayerGroup, rules: CacheRules, tokens: float) -> float:
    if group.caches:
        sides = ((cache.bytes_per_record / cache.tokens_per_record, cache.window_tokens) for cache in group.caches)
        return sum(rate * _kept(tokens, window) for rate, window in sides)
    kept = layer_bytes_per_token(group, rules.kv_dtype, rules.tp) * _kept(tokens, group.window_tokens)
    if group.state is None:
        return kept
    copies = state_copies(group.state.kind, prefix_caching=rules.prefix_caching, spec_tokens=rules.spec_tokens)
    return kept + copies * group.state.bytes_per_gpu(rules.tp, rules.spec_tokens)


def fixed_bytes(model: ModelSpec, tp: int, pp: int, copies: int, spec_tokens: int = 0) -> int:
    """Bytes of ``copies`` states of every recurrent layer, on one GPU of the stage with the largest."""
    sizes = [0.0 if g.state is None else float(copies * g.state.bytes_per_gpu(tp, spec_tokens)) for g in model.groups]
    return round(_widest_stage(model, pp, sizes))


def _kept(tokens: float, window_tokens: int | None) -> float:
    return tokens if window_tokens is None else min(tokens, window_tokens)


def _widest_stage(model: ModelSpec, pp: int, per_layer: list[float]) -> float:
    return max(sum(per_layer[model.layer_order[layer]] for layer in span) for span in stage_spans(model, pp))


@dataclass(frozen=True, kw_only=True)
class CacheGroup:
    """Layers that share one block table; every group draws from the same pool."""

    kind: LayerKind
    window_tokens: int | None
    layers: tuple[int, ...]
    """Positions of its layers in the model."""
    block_size_tokens: int
    """Tokens of one block; layers with smaller rates take longer blocks where that makes all pages equal."""
    copies: int = 0
    """Blocks of a sequence whatever its length: states of recurrent layers."""

    def blocks(self, tokens: int, in_flight_tokens: int) -> int:
        """Blocks of a sequence of ``tokens`` in this group."""
        spec = CacheSpec(
            kind=self.kind,
            block_tokens=self.block_size_tokens,
            page_bytes=0,
            window_tokens=self.window_tokens,
            copies=self.copies,
        )
        return spec.blocks(tokens, in_flight_tokens)


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """How a model's cache is cut into blocks on each pipeline stage."""

    groups: tuple[CacheGroup, ...]
    stage_bytes_per_block: tuple[float, ...]
    sequences_per_block: float = math.inf
    """Cap on sequences per block, where recurrent states have a pool of their own beside the blocks."""

    def blocks_per_request(self, tokens: int, in_flight_tokens: int) -> int:
        """Blocks vLLM counts for a request of ``tokens``, with ``in_flight_tokens`` not yet out of the window."""
        return sum(group.blocks(tokens, in_flight_tokens) for group in self.groups)

    def sequences(self, num_blocks: int, tokens: int, in_flight_tokens: int) -> float:
        """Sequences of ``tokens`` that ``num_blocks`` blocks hold."""
        by_blocks = num_blocks / self.blocks_per_request(tokens, in_flight_tokens)
        return min(by_blocks, num_blocks * self.sequences_per_block)


def plan_blocks(model: ModelSpec, rules: CacheRules, pp: int, *, window_aware: bool = True) -> BlockPlan:
    """Groups and bytes per block; ``window_aware`` False = every layer kept in full (hybrid manager off).

    A block id holds, on each stage, one page for each layer of the stage's widest group.
    """
    return _plan(model.groups, model.layer_order, rules, tuple(stage_spans(model, pp)), window_aware)


@lru_cache(KEPT_PLANS)
def _plan(
    kinds: tuple[LayerGroup, ...],
    layer_order: tuple[int, ...],
    rules: CacheRules,
    spans: tuple[range, ...],
    window_aware: bool,
) -> BlockPlan:
    """Kept: a decision or a search asks for the plan of the same few layouts hundreds of times."""
    per_group = [list(layer_specs(group, rules)) for group in kinds]
    owned = [Owned(layer=i, spec=spec) for i, index in enumerate(layer_order) for spec in per_group[index]]
    packed = any(group.caches for group in kinds)
    groups = group_caches(owned, window_aware=window_aware, packed=packed)
    return BlockPlan(
        groups=tuple(_cache_group(members) for members in groups),
        stage_bytes_per_block=tuple(float(_widest_page_bytes(groups, span)) for span in spans),
    )


def _widest_page_bytes(groups: Sequence[Sequence[Owned]], span: range) -> int:
    pages = (sum(cache.spec.page_bytes for cache in members if cache.layer in span) for members in groups)
    return max((LEAST_BYTES, *pages))


def _cache_group(members: list[Owned]) -> CacheGroup:
    spec = members[0].spec
    return CacheGroup(
        kind=LayerKind.FULL if spec.kind is LayerKind.MLA else spec.kind,
        window_tokens=spec.window_tokens,
        layers=tuple(cache.layer for cache in members),
        block_size_tokens=spec.block_tokens,
        copies=spec.copies,
    )
