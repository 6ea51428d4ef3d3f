"""Prefixes that groups of requests share: who holds one now, and what of it the free blocks still keep.

Freed blocks queue up and are taken again oldest first, so the queue is the cache (LRU by blocks). A place in it is a
coordinate: blocks ever freed, counted from the start. The head moves with every block taken; blocks found by a later
request leave from the middle, and the head skips the hole. While requests of a group run they hold its prefix once
for all of them; the last to leave puts it at the queue's end, its beginning last (as vLLM does), so that a prefix is
evicted from its end. A prefix counts as there from the moment its first request is admitted: vLLM enters the blocks
of a step into its cache when it composes the step, and prefills first come first served.
"""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from calc.simulator.layout import *
from calc.simulator.specialise import compiled, inlined
from calc.workload import IntArray


@inlined
def group_at(n: IntArray, r: IntArray, request: int) -> int:
    """Where in ``n`` the record of the request's group is."""
    return int(n[GROUP_TABLE] + r[GROUP, request] * GROUP_RECORD)


@compiled
def settle(n: IntArray, r: IntArray) -> None:
    """Moves the head past holes, and forgets prefixes it has passed."""
    while n[NODES_SEEN] < n[NODES]:
        node = n[NODES_SEEN] % r.shape[1]
        head = n[ALLOCATED] + n[SKIPPED]
        group = n[GROUP_TABLE] + r[NODE_GROUP, node] * GROUP_RECORD
        current = n[group + LAST_NODE] == n[NODES_SEEN] + 1
        if current and head < r[NODE_END, node]:
            return
        if current:
            n[group + LAST_NODE] = 0
        elif head < r[NODE_END, node] - r[NODE_SIZE, node]:
            return
        else:
            n[SKIPPED] += r[NODE_SIZE, node]
        n[NODES_SEEN] += 1


@compiled
def kept_blocks(n: IntArray, r: IntArray, request: int) -> int:
    """Blocks of the request's prefix found in the free queue."""
    settle(n, r)
    last = n[group_at(n, r, request) + LAST_NODE]
    if last == 0:
        return 0
    node = (last - 1) % r.shape[1]
    kept = min(r[NODE_SIZE, node], r[NODE_END, node] - n[ALLOCATED] - n[SKIPPED])
    return int(min(kept, r[SHARED, request]))


@inlined
def pinned_blocks(n: IntArray, r: IntArray, request: int) -> int:
    """Blocks of the request's prefix that running requests hold: it needs none of its own for them."""
    if not JOINT or n[GROUPS] == 0:
        return 0
    group = group_at(n, r, request)
    return int(min(r[SHARED, request], n[group + GROUP_HELD]) if n[group + HOLDERS] > 0 else 0)


@inlined
def prefix_blocks(n: IntArray, r: IntArray, request: int) -> int:
    """Blocks of the request's prefix it need not compute."""
    if not JOINT or n[GROUPS] == 0:
        return 0
    pinned = pinned_blocks(n, r, request)
    return pinned if pinned > 0 else kept_blocks(n, r, request)


@compiled
def enter(n: IntArray, r: IntArray, request: int, found: int) -> None:
    """An admitted request holds its prefix; what it ``found`` (blocks, prefix and more) leaves the free queue."""
    group = group_at(n, r, request)
    if n[group + HOLDERS] > 0:
        leaves = found - min(found, min(r[SHARED, request], n[group + GROUP_HELD]))
        n[SKIPPED] += leaves
    else:
        kept = min(found, kept_blocks(n, r, request))
        if n[group + LAST_NODE] > 0:
            leave_queue(n, r, n[group + LAST_NODE] - 1, kept)
        leaves = found
        n[SKIPPED] += found - kept
        n[group + GROUP_HELD] = 0
    n[group + LAST_NODE] = 0
    n[REMOVED] += leaves
    n[group + HOLDERS] += 1
    n[group + COMING] = max(0, n[group + COMING] - 1)
    n[group + GROUP_HELD] = max(n[group + GROUP_HELD], r[SHARED, request])


@inlined
def leave_queue(n: IntArray, r: IntArray, last: int, kept: int) -> None:
    """The found part of a prefix becomes a hole, the rest is nobody's; at the head of the queue the head skips it at
    once."""
    node = last % r.shape[1]
    head = n[ALLOCATED] + n[SKIPPED]
    if head > r[NODE_END, node] - kept:
        n[SKIPPED] += r[NODE_END, node] - head
        r[NODE_SIZE, node] = 0
    else:
        r[NODE_SIZE, node] = kept


@inlined
def release(n: IntArray, r: IntArray, request: int, held: int) -> None:
    """A leaving request frees ``held`` blocks, less a prefix others still hold. Where KV waits to be fetched from
    here (HOLDS), whoever fetches it releases it."""
    if JOINT and n[HOLDS]:
        return
    if not JOINT or n[GROUPS] == 0:
        n[FREE] += held
    else:
        release_prefix(n, r, request, held)


@compiled
def release_prefix(n: IntArray, r: IntArray, request: int, held: int) -> None:
    """The same where prefixes are shared."""
    group = group_at(n, r, request)
    n[group + HOLDERS] -= 1
    n[FREE] += held - r[SHARED, request]
    if n[group + HOLDERS] == 0:
        n[FREE] += n[group + GROUP_HELD]
        remember(n, r, request, group)


@inlined
def remember(n: IntArray, r: IntArray, request: int, group: int) -> None:
    """The last holder of a prefix put it at the end of the free queue."""
    if n[NODES] - n[NODES_SEEN] == r.shape[1]:
        oldest = n[GROUP_TABLE] + r[NODE_GROUP, n[NODES_SEEN] % r.shape[1]] * GROUP_RECORD
        if n[oldest + LAST_NODE] == n[NODES_SEEN] + 1:
            n[oldest + LAST_NODE] = 0
        n[NODES_SEEN] += 1
    node = n[NODES] % r.shape[1]
    r[NODE_GROUP, node] = r[GROUP, request]
    r[NODE_END, node] = n[FREE] + n[ALLOCATED] + n[REMOVED]
    r[NODE_SIZE, node] = n[group + GROUP_HELD]
    n[NODES] += 1
    n[group + LAST_NODE] = n[NODES]
