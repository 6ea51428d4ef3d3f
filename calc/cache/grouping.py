"""Layers dealt into groups that share a block table, as vLLM's hybrid cache manager does it.

Source: vLLM 0.32 ``kv_cache_utils.py``: ``get_kv_cache_groups`` and what it calls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from calc.cache.specs import CacheSpec
from calc.errors import ImpossibleDeployment
from calc.messages import msg
from calc.model import LayerKind

GROUP_SIZE_SLACK = 1.5
"""Below this ratio of layer counts vLLM pads the shorter kind up instead of splitting the longer
(``_get_kv_cache_groups_uniform_page_size``)."""


@dataclass(frozen=True, kw_only=True)
class Owned:
    """A cache and the position of its layer in the model."""

    layer: int
    spec: CacheSpec


def group_caches(owned: Sequence[Owned], *, window_aware: bool, packed: bool) -> list[list[Owned]]:
    """Groups of caches; ``packed`` = blocks hold pages of different size side by side (DeepSeek-V4)."""
    caches = list(owned) if window_aware else _kept_in_full(owned)
    if len({cache.spec.type_key for cache in caches}) <= 1:
        return [caches] if caches else []
    if packed and len({cache.spec.page_bytes for cache in caches}) > 1:
        return _packed(caches)
    if not _can_share_pages(caches):
        full = _kept_in_full(caches)
        if len({cache.spec.type_key for cache in full}) > 1:
            raise ImpossibleDeployment(
                msg("The caches of this model's layers cannot share blocks of one size: the engine refuses it too.")
            )
        return [full]
    return _dealt(_equal_pages(caches))


def _kept_in_full(owned: Sequence[Owned]) -> list[Owned]:
    """Local layers beside full ones keep every token (hybrid manager off)."""
    if all(cache.spec.window_tokens is not None for cache in owned):
        return list(owned)
    return [
        cache
        if cache.spec.window_tokens is None
        else replace(cache, spec=replace(cache.spec, kind=LayerKind.FULL, window_tokens=None))
        for cache in owned
    ]


def _can_share_pages(caches: Sequence[Owned]) -> bool:
    """MLA rows cannot be padded to any size: their page must divide the largest."""
    largest = max(cache.spec.page_bytes for cache in caches)
    return not any(cache.spec.kind is LayerKind.MLA and largest % cache.spec.page_bytes for cache in caches)


def _equal_pages(caches: Sequence[Owned]) -> list[Owned]:
    """Every page as large as the largest: longer blocks where it divides evenly, padding elsewhere."""
    largest = max(cache.spec.page_bytes for cache in caches)

    def widened(spec: CacheSpec) -> CacheSpec:
        ratio, rest = divmod(largest, spec.page_bytes)
        longer = 1 if rest or spec.kind is LayerKind.RECURRENT else ratio
        return replace(spec, page_bytes=largest, block_tokens=spec.block_tokens * longer)

    wide = {spec: widened(spec) for spec in {cache.spec for cache in caches}}
    return [Owned(layer=cache.layer, spec=wide[cache.spec]) for cache in caches]


def _dealt(caches: Sequence[Owned]) -> list[list[Owned]]:
    """Kind by kind into groups of equal size, every n-th layer to one group."""
    kinds: dict[CacheSpec, list[Owned]] = {}
    for cache in caches:
        kinds.setdefault(cache.spec, []).append(cache)
    fewest, most = min(map(len, kinds.values())), max(map(len, kinds.values()))
    size = most if most < GROUP_SIZE_SLACK * fewest else fewest
    groups = []
    for members in kinds.values():
        count = math.ceil(len(members) / size)
        groups += [members[i::count] for i in range(count)]
    return groups


def _packed(caches: Sequence[Owned]) -> list[list[Owned]]:
    """Pages of different size side by side in a block: types whose sizes repeat in step are split into groups that
    cover equally many repeats (``_get_packed_kv_cache_groups``)."""
    types: dict[tuple[object, ...], list[Owned]] = {}
    for cache in caches:
        types.setdefault(cache.spec.type_key, []).append(cache)
    sizes = [Counter(cache.spec.page_bytes for cache in members) for members in types.values()]
    in_step = [len(set(counts.values())) == 1 for counts in sizes]
    repeats = [max(counts.values()) for counts in sizes]
    least = max((n for n, ok, counts in zip(repeats, in_step, sizes, strict=True) if ok and len(counts) > 1), default=0)
    each = _least_padding([n for n, ok in zip(repeats, in_step, strict=True) if ok], least) if least else 0
    groups = []
    for members, ok, count in zip(types.values(), in_step, repeats, strict=True):
        parts = math.ceil(count / each) if ok and each else 1
        groups += _split_repeats(members, parts)
    return groups


def _split_repeats(members: Sequence[Owned], parts: int) -> list[list[Owned]]:
    by_size: dict[int, list[Owned]] = {}
    for cache in members:
        by_size.setdefault(cache.spec.page_bytes, []).append(cache)
    if parts == 1:
        return [list(members)]
    repeats = list(zip(*by_size.values(), strict=True))
    return [[cache for repeat in repeats[i::parts] for cache in repeat] for i in range(parts)]


def _least_padding(counts: Sequence[int], least: int) -> int:
    """Repeats per group that pad the counts least; of equals the largest (``_approximate_gcd``)."""
    return min(range(least, max(counts) + 1), key=lambda d: (sum(-n % d for n in counts), -d))
