"""Prefixes that requests share: how long, how long-lived, how many start alike, and what a change of content costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.lengths import FloatArray, IntArray
from calc.profile.spread import Spread, spread
from calc.reuse.trace import BlockTrace


@dataclass(frozen=True, kw_only=True)
class ContentUpdate:
    """What is lost when the text of the most used prefix changes: all that was computed on top of it."""

    requests_share: float
    """Of requests that begin with it."""
    prefix_tokens: int
    invalid_blocks: int
    """Distinct blocks that hang on the prefix, it included."""
    invalid_share: float
    """Of all distinct blocks."""
    recomputed_tokens: int
    """Prompt tokens of these blocks: each must be computed once more."""


@dataclass(frozen=True, kw_only=True)
class PrefixProfile:
    """Of a log with block hashes, in a cache that never evicts."""

    block_size_tokens: int
    blocks: int
    distinct_blocks: int
    reused_tokens_share: float
    """Prompt tokens that an earlier request had computed."""
    prefix_tokens: Spread
    """Tokens at the head of each request that an earlier one had computed."""
    lifetime_s: Spread | None
    """From first to last use of each block that was used again."""
    same_start_share: float
    """Of requests whose first block is the most frequent one."""
    update: ContentUpdate | None


def prefix_profile(trace: BlockTrace) -> PrefixProfile | None:
    """``None`` where there is no block or no request."""
    prefix = spread(_shared_tokens(trace)) if trace.blocks else None
    if prefix is None:
        return None
    request = np.repeat(np.arange(trace.requests), np.diff(trace.offsets))
    uses = np.bincount(trace.block_ids, minlength=trace.unique_blocks)
    starts = trace.block_ids[trace.offsets[:-1][np.diff(trace.offsets) > 0]]
    return PrefixProfile(
        block_size_tokens=trace.block_size_tokens,
        blocks=trace.blocks,
        distinct_blocks=trace.unique_blocks,
        reused_tokens_share=prefix.total / max(trace.total_prompt_tokens, 1),
        prefix_tokens=prefix,
        lifetime_s=_lifetimes_s(trace, request, uses),
        same_start_share=float(np.bincount(starts).max()) / trace.requests,
        update=_update(trace, request, uses),
    )


def _first_places(trace: BlockTrace) -> IntArray:
    """Where each id stands first."""
    first = np.full(trace.unique_blocks, trace.blocks, dtype=np.int64)
    first[trace.block_ids[::-1]] = np.arange(trace.blocks - 1, -1, -1)
    return first


def _shared_tokens(trace: BlockTrace) -> IntArray:
    """Ids name all that is before them: those seen earlier are the head of a prompt."""
    begins = np.repeat(trace.offsets[:-1], np.diff(trace.offsets))
    seen = _first_places(trace)[trace.block_ids] < begins
    counted = np.concatenate([[0], np.cumsum(seen)])
    blocks = counted[trace.offsets[1:]] - counted[trace.offsets[:-1]]
    shared: IntArray = np.minimum(blocks * trace.block_size_tokens, trace.prompt_tokens)
    return shared


def _lifetimes_s(trace: BlockTrace, request: IntArray, uses: IntArray) -> Spread | None:
    if trace.arrival_s is None:
        return None
    at_s: FloatArray = trace.arrival_s[request]
    last_s = np.full(trace.unique_blocks, -np.inf)
    first_s = np.full(trace.unique_blocks, np.inf)
    np.maximum.at(last_s, trace.block_ids, at_s)
    np.minimum.at(first_s, trace.block_ids, at_s)
    return spread((last_s - first_s)[uses > 1])


def _update(trace: BlockTrace, request: IntArray, uses: IntArray) -> ContentUpdate | None:
    """The most used prefix: the block that most requests use, and as deep as they go together."""
    most = int(uses.max())
    if most < 2:  # noqa: PLR2004 - shared by two at least
        return None
    deepest = int(np.flatnonzero(uses[trace.block_ids] == most)[0])
    holder = int(request[deepest])
    path = trace.block_ids[trace.offsets[holder] : trace.offsets[holder + 1]]
    depth = int((uses[path] == most).sum())
    users = np.unique(request[trace.block_ids == path[0]])
    hanging = np.unique(trace.block_ids[np.isin(request, users)])
    return ContentUpdate(
        requests_share=len(users) / trace.requests,
        prefix_tokens=min(depth * trace.block_size_tokens, int(trace.prompt_tokens[users].min())),
        invalid_blocks=len(hanging),
        invalid_share=len(hanging) / trace.unique_blocks,
        recomputed_tokens=len(hanging) * trace.block_size_tokens,
    )
