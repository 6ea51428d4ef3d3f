"""The KV cache as engines lay it out: bytes per token, groups of layers, blocks, and what a request takes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from calc.dtypes import INT8_KV_SCALE_BYTES, KV_BYTES
from calc.engine import resolve
from calc.messages import Message, msg
from calc.model import LayerGroup, LayerKind, ModelSpec

if TYPE_CHECKING:
    from calc.deployment import Deployment

SPARSE_FP8_RECORD_BYTES = 656
"""One token in one layer of the FP8 sparse MLA cache: 512 FP8 + four FP32 scales + 64 BF16 RoPE values
(vLLM ``flashmla_sparse.py``)."""
GROUP_SIZE_SLACK = 1.5
"""Below this ratio of layer counts vLLM pads the shorter kind up instead of splitting the longer
(``_get_kv_cache_groups_uniform_page_size``)."""
WINDOW_EXTRA_BLOCKS = 1
"""A window that does not start at a block edge touches one block more (vLLM ``SlidingWindowSpec``)."""
NULL_BLOCKS = 1
"""Block 0 is never given out; it counts in the admission check, not in the logged total (vLLM 0.32)."""


def layers_per_stage(layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each pipeline stage: the remainder goes to the second-last stage and back (vLLM ``get_pp_indices``).

    80 layers over 3 stages: 27, 27, 26.
    """
    counts = [layers // pp] * pp
    for back in range(2, layers % pp + 2):
        counts[-back] += 1
    return tuple(counts)


def heads_per_gpu(kv_heads: int, tp: int) -> int:
    """KV heads one GPU stores: they are replicated, not divided, once TP exceeds their number."""
    return max(1, kv_heads // tp)


def layer_bytes_per_token(group: LayerGroup, kv_dtype: str, tp: int) -> float:
    """Bytes per token of one layer on one GPU: heads × (D_k + D_v) × B, plus index keys and scales.

    MLA keeps one latent on every TP rank; its V is derived (v_head_dim 0).
    """
    if kv_dtype == "fp8" and group.kind is LayerKind.MLA and group.sparse_index_bytes_per_token:
        return SPARSE_FP8_RECORD_BYTES + group.sparse_index_bytes_per_token
    heads = 1 if group.kind is LayerKind.MLA else heads_per_gpu(group.kv_heads, tp)
    scales = INT8_KV_SCALE_BYTES * (1 + bool(group.v_head_dim)) if kv_dtype == "int8" else 0
    per_head = (group.head_dim + group.v_head_dim) * KV_BYTES[kv_dtype] + scales
    return heads * per_head + group.sparse_index_bytes_per_token


def stage_spans(model: ModelSpec, pp: int) -> list[range]:
    """Positions of each stage's layers in ``layer_order``; draft layers sit on the last stage."""
    counts = list(layers_per_stage(model.layers, pp))
    counts[-1] += len(model.layer_order) - model.layers
    ends = list(itertools.accumulate(counts))
    return [range(end - count, end) for count, end in zip(counts, ends, strict=True)]


def kv_bytes_per_token(model: ModelSpec, kv_dtype: str, tp: int, pp: int = 1) -> int:
    """Bytes one cached token takes on the GPU of the widest pipeline stage, while every layer still holds it.

    Beyond its window a sliding or chunked layer stops growing: see :func:`request_bytes`.
    """
    return round(request_bytes(model, kv_dtype, tp, pp, 1))


def request_bytes(model: ModelSpec, kv_dtype: str, tp: int, pp: int, tokens: float) -> float:
    """Bytes of a request with ``tokens`` cached tokens on one GPU of the widest stage; windows cap local layers."""
    rates = []
    for group in model.groups:
        kept = tokens if group.window_tokens is None else min(tokens, group.window_tokens)
        rates.append(layer_bytes_per_token(group, kv_dtype, tp) * kept)
    return max(sum(rates[model.layer_order[layer]] for layer in span) for span in stage_spans(model, pp))


@dataclass(frozen=True, kw_only=True)
class CacheGroup:
    """Layers that share one block table; every group draws from the same pool."""

    kind: LayerKind
    window_tokens: int | None
    layers: tuple[int, ...]
    """Positions of its layers in the model."""
    block_size_tokens: int = 0
    """Tokens of one block; layers with smaller rates take longer blocks, so that all pages are equal."""


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """How a model's cache is cut into blocks on each pipeline stage."""

    groups: tuple[CacheGroup, ...]
    stage_bytes_per_block: tuple[float, ...]

    def blocks_per_request(self, tokens: int, in_flight_tokens: int) -> int:
        """Blocks vLLM counts for a request of ``tokens``, with ``in_flight_tokens`` not yet out of the window."""
        return sum(_group_blocks(group, tokens, in_flight_tokens) for group in self.groups)


def _group_blocks(group: CacheGroup, tokens: int, in_flight: int) -> int:
    block_size = group.block_size_tokens
    if group.window_tokens is None:
        return math.ceil(tokens / block_size)
    if group.kind is LayerKind.CHUNKED:
        return math.ceil(min(group.window_tokens + in_flight, tokens) / block_size)
    return math.ceil(min(group.window_tokens - 1 + in_flight, tokens) / block_size) + WINDOW_EXTRA_BLOCKS


def plan_blocks(
    model: ModelSpec, kv_dtype: str, tp: int, pp: int, block_size_tokens: int, *, window_aware: bool = True
) -> BlockPlan:
    """Groups and bytes per block; ``window_aware`` False = every layer kept in full (hybrid manager off).

    One group: a block holds all layers of the stage. Several: pages are equal, the widest rate sets the page and
    smaller rates take a longer block; a block id holds one page for each layer of a stage's widest group.
    """
    rates = [layer_bytes_per_token(group, kv_dtype, tp) for group in model.groups]
    per_layer = [rates[index] for index in model.layer_order]
    spans = stage_spans(model, pp)
    groups = cache_groups(model) if window_aware else ()
    if len(groups) <= 1:
        one = groups[0] if groups else _one_group(model)
        per_stage = [sum(per_layer[layer] for layer in span) * block_size_tokens for span in spans]
        return BlockPlan(
            groups=(replace(one, block_size_tokens=block_size_tokens),), stage_bytes_per_block=tuple(per_stage)
        )
    page = max(per_layer) * block_size_tokens
    return BlockPlan(
        groups=tuple(
            replace(group, block_size_tokens=_page_tokens(page, per_layer[group.layers[0]], block_size_tokens))
            for group in groups
        ),
        stage_bytes_per_block=tuple(
            page * max(sum(layer in span for layer in group.layers) for group in groups) for span in spans
        ),
    )


def _page_tokens(page_bytes: float, rate: float, block_size_tokens: int) -> int:
    """Block of layers that take ``rate``: as many whole blocks as the common page holds, the rest is padding."""
    return int(page_bytes / (rate * block_size_tokens)) * block_size_tokens


def _one_group(model: ModelSpec) -> CacheGroup:
    return CacheGroup(kind=LayerKind.FULL, window_tokens=None, layers=tuple(range(len(model.layer_order))))


def cache_groups(model: ModelSpec) -> tuple[CacheGroup, ...]:
    """Layers dealt into groups of equal size, kind by kind, every n-th layer to one group (vLLM hybrid manager)."""
    kinds: dict[tuple[bool, LayerKind, int | None], list[int]] = {}
    for layer, index in enumerate(model.layer_order):
        group = model.groups[index]
        local = group.window_tokens is not None
        key = (local, group.kind if local else LayerKind.FULL, group.window_tokens)
        kinds.setdefault(key, []).append(layer)
    fewest, most = min(map(len, kinds.values())), max(map(len, kinds.values()))
    size = most if most < GROUP_SIZE_SLACK * fewest else fewest
    groups = []
    for (_, kind, window), layers in kinds.items():
        count = math.ceil(len(layers) / size)
        groups += [CacheGroup(kind=kind, window_tokens=window, layers=tuple(layers[i::count])) for i in range(count)]
    return tuple(groups)


@dataclass(frozen=True, kw_only=True)
class KvFormula:
    """2 · L · H_kv · D · B with a deployment's numbers, per GPU; MLA: L · (R + P) · B with latent R and RoPE part P."""

    is_mla: bool
    layers: int
    kv_heads: int
    """Per GPU; 1 for MLA."""
    head_dim: int
    """D; for MLA the latent and RoPE part together."""
    bytes_per_element: float
    bytes_per_token: int
    """Of all layers. Where layers differ, or keep scales or index keys, it is not the plain product."""

    @property
    def text(self) -> Message:
        """The formula with its numbers put in."""
        return _formula_text(self)


def kv_formula_parts(deployment: Deployment) -> KvFormula:
    """The numbers of the formula for all layers of the model on one GPU of a TP group."""
    model, settings = deployment.model, resolve(deployment)
    group = model.groups[0]
    is_mla = group.kind is LayerKind.MLA
    return KvFormula(
        is_mla=is_mla,
        layers=len(model.layer_order),
        kv_heads=1 if is_mla else heads_per_gpu(group.kv_heads, deployment.tp),
        head_dim=group.head_dim,
        bytes_per_element=settings.kv_bytes_per_element,
        bytes_per_token=kv_bytes_per_token(model, settings.kv_dtype, deployment.tp),
    )


def _formula_text(parts: KvFormula) -> Message:
    sides = 1 if parts.is_mla else 2
    product = sides * parts.layers * parts.kv_heads * parts.head_dim * parts.bytes_per_element
    numbers = {
        "layers": parts.layers,
        "heads": parts.kv_heads,
        "dim": parts.head_dim,
        "element": parts.bytes_per_element,
        "total": parts.bytes_per_token,
    }
    if round(product) != parts.bytes_per_token:
        each = parts.bytes_per_token / parts.layers
        return msg(
            "L · bytes per layer = {layers} · {each:.0f} = {total:count} bytes per token and GPU (mean of the layers)",
            each=each,
            **numbers,
        )
    if parts.is_mla:
        return msg(
            "L · (R + P) · B = {layers} · {dim} · {element:g} = {total:count} bytes per token and GPU", **numbers
        )
    return msg(
        "2 · L · H_kv · D · B = 2 · {layers} · {heads} · {dim} · {element:g} = {total:count} bytes per token and GPU",
        **numbers,
    )


def kv_formula(deployment: Deployment) -> Message:
    """The cache formula with the deployment's numbers put in."""
    return kv_formula_parts(deployment).text
