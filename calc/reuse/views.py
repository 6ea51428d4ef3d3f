"""The same trace as other caches would see it: full blocks only, coarser blocks, tenants apart, one part of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calc.errors import InputError
from calc.messages import msg
from calc.reuse.trace import BlockTrace, IntArray, renumbered

BoolArray: TypeAlias = npt.NDArray[np.bool_]


def full_blocks_only(trace: BlockTrace) -> BlockTrace:
    """Without the last block of a prompt that it does not fill, as vLLM caches: only full blocks have a hash."""
    full = np.minimum(trace.looked_up, trace.prompt_tokens // trace.block_size_tokens)
    place, counts = _place_in_request(trace), np.diff(trace.offsets)
    keep = (place < np.repeat(full, counts)) | (place >= np.repeat(trace.looked_up, counts))
    return replace(_kept(trace, keep), answer_blocks=trace.answer_blocks)


def told_apart(trace: BlockTrace, owner: IntArray) -> BlockTrace:
    """Blocks of different owners (tenants: shape (n), 0 …) never match, as with a cache salt, in one shared cache."""
    of_block = np.repeat(owner, np.diff(trace.offsets))
    ids, unique = renumbered(of_block * trace.unique_blocks + trace.block_ids)
    return replace(trace, block_ids=ids, unique_blocks=unique)


def of_owner(trace: BlockTrace, owner: IntArray, which: int) -> BlockTrace:
    """The requests of one owner (replica, tenant), in their order."""
    mine = owner == which
    ids, unique = renumbered(trace.block_ids[np.repeat(mine, np.diff(trace.offsets))])
    return BlockTrace(
        block_size_tokens=trace.block_size_tokens,
        offsets=_offsets(np.diff(trace.offsets)[mine]),
        block_ids=ids,
        unique_blocks=unique,
        prompt_tokens=trace.prompt_tokens[mine],
        output_tokens=_of(trace.output_tokens, mine),
        arrival_s=None if trace.arrival_s is None else trace.arrival_s[mine],
        tenant=_of(trace.tenant, mine),
        tenant_names=trace.tenant_names,
        session=_of(trace.session, mine),
        answer_blocks=_of(trace.answer_blocks, mine),
        cached_tokens=_of(trace.cached_tokens, mine),
    )


def coarser(trace: BlockTrace, times: int) -> BlockTrace:
    """Blocks of so many of the trace's in a row, as engines use for models with recurrent layers.

    Chained ids make it exact: the id of a coarse block is that of the last block in it, which names all before. A
    prompt's last coarse block may be short, and matches only where another prompt is cut at the same place.
    """
    if times < 1:
        raise InputError(msg("a block can be 1 or more of the trace's blocks long, got {times}.", times=times))
    place, looked_up = _place_in_request(trace), np.repeat(trace.looked_up, np.diff(trace.offsets))
    ends = (place < looked_up) & (((place + 1) % times == 0) | (place + 1 == looked_up))
    return replace(_kept(trace, ends), block_size_tokens=trace.block_size_tokens * times)


def in_order_of_time(trace: BlockTrace) -> BlockTrace:
    """Requests by their times, those of one time as they stand; a trace without times as it is."""
    if trace.arrival_s is None or not (np.diff(trace.arrival_s) < 0).any():
        return trace
    order = np.argsort(trace.arrival_s, kind="stable")
    counts = np.diff(trace.offsets)[order]
    offsets = _offsets(counts)
    place = np.arange(trace.blocks) - np.repeat(offsets[:-1], counts)
    columns = ("prompt_tokens", "output_tokens", "arrival_s", "tenant", "session", "answer_blocks", "cached_tokens")
    moved: dict[str, Any] = {name: values[order] for name in columns if (values := getattr(trace, name)) is not None}
    return replace(
        trace, offsets=offsets, block_ids=trace.block_ids[np.repeat(trace.offsets[:-1][order], counts) + place], **moved
    )


def _place_in_request(trace: BlockTrace) -> IntArray:
    """Shape (b): 0 for the first block of each request, and so on."""
    return np.arange(trace.blocks) - np.repeat(trace.offsets[:-1], np.diff(trace.offsets))


def _kept(trace: BlockTrace, keep: BoolArray) -> BlockTrace:
    """Only some of the blocks of each request, all of them of its prompt."""
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    ids, unique = renumbered(trace.block_ids[keep])
    return replace(trace, offsets=kept_before[trace.offsets], block_ids=ids, unique_blocks=unique, answer_blocks=None)


def _of(column: IntArray | None, mine: BoolArray) -> IntArray | None:
    return None if column is None else column[mine]


def _offsets(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
