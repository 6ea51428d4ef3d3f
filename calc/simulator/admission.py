"""Who prefills in the coming step: admission, chunks, blocks, what is found in caches. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from math import isnan

from calc.simulator.fetch import begin_fetch
from calc.simulator.kernel import blocks, decode_tokens, measuring, promise, whole_blocks
from calc.simulator.layout import *
from calc.simulator.lines import NOBODY, first_in_line, occupy, unlink
from calc.simulator.prefixes import enter, pinned_blocks, prefix_blocks
from calc.simulator.specialise import compiled, inlined
from calc.workload import FloatArray, IntArray


@inlined
def hit_tokens(n: IntArray, r: IntArray, request: int) -> int:
    """Prompt tokens found in the cache: the given share, or after a preemption what was not evicted since (LRU) or
    all that was swapped."""
    hit = r[CACHED, request]
    if JOINT:
        hit = max(hit, prefix_blocks(n, r, request) * n[BLOCK_TOKENS])
    if MANAGED and n[SWAPS]:
        if r[LOST_BLOCKS, request] > 0:
            hit = r[LOST_TOKENS, request]
    elif n[PREFIX_CACHING] and r[LOST_BLOCKS, request] > 0:
        evicted = max(0, n[ALLOCATED] - r[LOST_OLDER, request])
        kept = max(0, r[LOST_BLOCKS, request] - evicted) * n[BLOCK_TOKENS]
        hit = max(hit, min(kept, r[LOST_TOKENS, request] // n[BLOCK_TOKENS] * n[BLOCK_TOKENS]))
    return int(hit)


@inlined
def found_tokens(n: IntArray, r: IntArray, request: int) -> int:
    """Tokens that need no computing once the request starts: in the cache, fetched, or to be fetched first."""
    if MANAGED and r[STATE, request] == FETCHED:
        return int(r[FOUND, request])
    hit = hit_tokens(n, r, request)
    if MANAGED and r[FETCH, request] > 0:
        hit = max(hit, r[CACHED, request] + r[FETCH, request])
    return int(hit)


@inlined
def next_waiting(n: IntArray, r: IntArray, q: IntArray) -> int:
    """Who holds blocks already, then preempted requests, then in order of arrival; NOBODY waits: -1."""
    if MANAGED:
        return first_in_line(n, r)
    if JOINT and n[HEAD] < n[ISSUED] and r[PAID, n[HEAD]] > 0:
        return int(n[HEAD])
    if n[IN_FRONT] > 0:
        return int(q[FRONT, n[IN_FRONT] - 1])
    if n[HEAD] < n[ISSUED]:
        return int(n[HEAD])
    return NOBODY


@inlined
def needed_blocks(n: IntArray, r: IntArray, request: int) -> int:
    """Blocks a request takes at its start: its whole context; in a static batch also its longest possible output."""
    if MANAGED and n[STATIC]:
        reserved = blocks(r[PROMPT, request] + n[RESERVED], n[BLOCK_TOKENS]) + n[FIXED_BLOCKS]
        return int(min(reserved, n[TOTAL_BLOCKS]))
    return int(blocks(r[PROMPT, request] + r[GENERATED, request], n[BLOCK_TOKENS]) + n[FIXED_BLOCKS])


@inlined
def may_start(n: IntArray, r: IntArray, request: int) -> bool:
    """Whether the first waiting request fits in this step: slot, blocks for its whole prompt, token budget."""
    running = n[DECODING] + n[READY] + (n[PARTIAL] >= 0)
    if request < 0 or running >= n[MAX_SEQS]:
        return False
    if MANAGED and n[STATIC] and n[DECODING] > 0:
        return False
    reserve = n[WATERMARK_BLOCKS] if running > 0 else 0
    holds = MANAGED and r[STATE, request] == FETCHED
    if JOINT and r[PAID, request] > 0:
        holds = True
    if not holds and needed_blocks(n, r, request) - pinned_blocks(n, r, request) > n[FREE] - reserve:
        return False
    if MANAGED and n[STATIC]:
        return True
    if not holds and n[RESERVES_OUTPUT] and n[PROMISED] + whole_blocks(n, r, request) > n[TOTAL_BLOCKS]:
        return False
    budget = n[MAX_TOKENS] - decode_tokens(n) - n[TOKENS]
    if n[CHUNKED]:
        return bool(budget > 0)
    length = r[PROMPT, request] + r[GENERATED, request]
    fresh = length - found_tokens(n, r, request)
    # A context beyond the budget goes alone, whatever of it is cached: losing cached blocks must never let it in.
    return bool(fresh <= budget or (length > n[MAX_TOKENS] and n[TOKENS] == 0))


@inlined
def chunk(n: IntArray, x: FloatArray, q: IntArray, request: int, done: int, length: int) -> None:
    """Prefills as much of a prompt as the budget of this step allows; the rest becomes the partial request."""
    fresh = length - done
    if n[CHUNKED] and not (MANAGED and n[STATIC]):
        fresh = min(fresh, n[MAX_TOKENS] - decode_tokens(n) - n[TOKENS])
    end = done + fresh
    n[TOKENS] += fresh
    n[READS] += end
    x[PAIRS] += fresh * (done + (fresh + 1) / 2)
    if n[WINDOW_TOKENS] > 0:
        n[WINDOW_READS] += min(end, n[WINDOW_TOKENS] + fresh)
        growing = max(0, min(end, n[WINDOW_TOKENS]) - done)
        x[WINDOW_PAIRS] += growing * (done + (growing + 1) / 2) + (fresh - growing) * n[WINDOW_TOKENS]
    if end < length:
        n[PARTIAL] = request
        n[PARTIAL_DONE] = end
        n[PARTIAL_LENGTH] = length
    else:
        n[PARTIAL] = -1
        q[READIED, n[READY]] = request
        n[READY] += 1


@inlined
def start(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int) -> None:
    """Admits the first waiting request: takes blocks for its whole prompt and prefills a first chunk."""
    if MANAGED:
        found = take_up(n, x, r, t, q, request)
        if found < 0:
            return
    else:
        if n[IN_FRONT] > 0 and not (JOINT and r[PAID, request] > 0):
            n[IN_FRONT] -= 1
        else:
            n[HEAD] += 1
            t[ADMITTED, request] = x[NOW]
        found = hit_tokens(n, r, request)
        hold(n, r, request, found)
    if n[STACKED] == q.shape[1]:
        restack(n, r, q)
    q[STACK, n[STACKED]] = request
    r[STACK_AT, request] = n[STACKED]
    n[STACKED] += 1
    n[ADMISSIONS] += 1
    chunk(n, x, q, request, found, r[PROMPT, request] + r[GENERATED, request])


@inlined
def hold(n: IntArray, r: IntArray, request: int, hit: int) -> None:
    """Takes the blocks of an admitted request; those of cached tokens evict nothing. Blocks taken for it before hold KV
    from elsewhere: lost once, it does not come again."""
    promise(n, r, request, 1)
    if JOINT and r[PAID, request] > 0:
        r[PAID, request] = 0
        r[CACHED, request] = 0
        return
    needed = needed_blocks(n, r, request)
    n[FREE] -= needed - pinned_blocks(n, r, request)
    if JOINT and n[GROUPS] > 0:
        enter(n, r, request, hit // n[BLOCK_TOKENS])
        if measuring(n):
            n[HIT_TOKENS] += hit
            n[ASKED_TOKENS] += r[PROMPT, request] + r[GENERATED, request]
    n[ALLOCATED] += needed - hit // n[BLOCK_TOKENS]


@compiled
def take_up(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int) -> int:
    """The first in line leaves it; returns the tokens it need not compute, or NOBODY if they are fetched first."""
    if r[STATE, request] == FETCHED:
        unlink(n, r, n[CLASSES], request)
        r[STATE, request] = RUNNING
        if JOINT and r[PAID, request] > 0:
            n[HEAD] += 1
            t[ADMITTED, request] = x[NOW]
            hold(n, r, request, 0)
        return int(r[FOUND, request])
    unlink(n, r, r[CLASS, request], request)
    occupy(n, r, request, 1)
    if isnan(t[ADMITTED, request]):
        t[ADMITTED, request] = x[NOW]
        n[HEAD] += r[ATTEMPT, request] == 0
    hit = hit_tokens(n, r, request)
    found = found_tokens(n, r, request)
    hold(n, r, request, hit)
    if n[STATIC]:
        n[BATCH_LEFT] += 1
        n[BATCH_BLOCKS] += needed_blocks(n, r, request)
    if n[SWAPS] and r[LOST_BLOCKS, request] > 0:
        x[MOVED_S] += x[SWAP_S] * blocks(r[LOST_TOKENS, request], n[BLOCK_TOKENS])
    if found > hit:
        r[FOUND, request] = found
        begin_fetch(n, x, r, t, q, request, found - hit)
        return NOBODY
    r[STATE, request] = RUNNING
    return int(found)


@compiled
def restack(n: IntArray, r: IntArray, q: IntArray) -> None:
    """Closes the gaps finished requests left in the order of admission."""
    kept = 0
    for at in range(n[STACKED]):
        request = q[STACK, at]
        if r[STACK_AT, request] == at:
            q[STACK, kept] = request
            r[STACK_AT, request] = kept
            kept += 1
    n[STACKED] = kept


@inlined
def fill(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, admit: bool) -> None:
    """Composes the prefill part of a step: the partial request first, then waiting ones while they fit."""
    n[TOKENS] = 0
    n[READS] = 0
    n[WINDOW_READS] = 0
    x[PAIRS] = 0.0
    x[WINDOW_PAIRS] = 0.0
    n[READY] = 0
    n[ADMISSIONS] = 0
    if n[PARTIAL] >= 0:
        chunk(n, x, q, n[PARTIAL], n[PARTIAL_DONE], n[PARTIAL_LENGTH])
    request = next_waiting(n, r, q)
    while admit and n[PARTIAL] < 0 and may_start(n, r, request):
        start(n, x, r, t, q, request)
        request = next_waiting(n, r, q)
