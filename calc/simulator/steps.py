"""One scheduling round after another: preempt, admit, prefill, decode. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from math import isinf
from typing import TypeAlias

from calc.simulator import kernel as simulate_kernel
from calc.simulator import layout as simulate_layout
from calc.simulator.kernel import (
    account,
    advance,
    blocks,
    count_gaps,
    decode_s,
    finish,
    issue,
    join,
    leave,
    measuring,
    next_arrival,
    steps_until,
    tokens_s,
    whole_blocks,
)
from calc.simulator.layout import *
from calc.workload import FloatArray, IntArray


@inlined
def take_blocks(n: IntArray, count: int) -> None:
    """Blocks leave the free list; what was cached in them is gone."""
    n[FREE] -= count
    n[ALLOCATED] += count


@inlined
def last_admitted(n: IntArray, r: IntArray, q: IntArray) -> int:
    """The running request that was admitted last: the stack forgets finished ones when it meets them."""
    while r[STACK_AT, q[STACK, n[STACKED] - 1]] != n[STACKED] - 1:
        n[STACKED] -= 1
    return int(q[STACK, n[STACKED] - 1])


@compiled
def put_back(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int) -> None:
    """Preempts: blocks are freed, the request waits at the front and recomputes what is evicted until it returns."""
    r[LOST_OLDER, request] = n[FREE] + n[ALLOCATED]
    if request == n[PARTIAL]:
        kv_tokens = n[PARTIAL_DONE]
        held = blocks(n[PARTIAL_LENGTH], n[BLOCK_TOKENS])
        n[FREE] += held + n[FIXED_BLOCKS]
        n[PARTIAL] = -1
    else:
        r[GENERATED, request] = n[STEP] + r[BASE, request] + 1 - r[PROMPT, request]
        kv_tokens = leave(n, r, request)
        held = blocks(kv_tokens, n[BLOCK_TOKENS])
        t[LOST_AT, request] = x[NOW]
    r[LOST_TOKENS, request] = kv_tokens
    r[LOST_BLOCKS, request] = held
    r[STACK_AT, request] = -1
    q[FRONT, n[IN_FRONT]] = request
    n[IN_FRONT] += 1
    n[PREEMPTIONS] += 1


@inlined
def preempt(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> bool:
    """Sequences whose last block is full need one more; while there are too few, the last admitted gives way."""
    residue = n[STEP] % n[BLOCK_TOKENS]
    any_preempted = False
    while n[RESIDUES + residue] > n[FREE]:
        put_back(n, x, r, t, q, last_admitted(n, r, q))
        any_preempted = True
    take_blocks(n, n[RESIDUES + residue])
    return any_preempted


@inlined
def hit_tokens(n: IntArray, r: IntArray, request: int) -> int:
    """Prompt tokens found in the cache: the given share, or after a preemption what was not evicted since (LRU)."""
    hit = r[CACHED, request]
    if n[PREFIX_CACHING] and r[LOST_BLOCKS, request] > 0:
        evicted = max(0, n[ALLOCATED] - r[LOST_OLDER, request])
        kept = max(0, r[LOST_BLOCKS, request] - evicted) * n[BLOCK_TOKENS]
        hit = max(hit, min(kept, r[LOST_TOKENS, request] // n[BLOCK_TOKENS] * n[BLOCK_TOKENS]))
    return int(hit)


@inlined
def next_waiting(n: IntArray, q: IntArray) -> int:
    """Preempted requests first, then in order of arrival; -1 = nobody waits."""
    if n[IN_FRONT] > 0:
        return int(q[FRONT, n[IN_FRONT] - 1])
    if n[HEAD] < n[ISSUED]:
        return int(n[HEAD])
    return -1


@inlined
def may_start(n: IntArray, r: IntArray, request: int) -> bool:
    """Whether the first waiting request fits in this step: slot, blocks for its whole prompt, token budget."""
    running = n[DECODING] + n[READY] + (n[PARTIAL] >= 0)
    if request < 0 or running >= n[MAX_SEQS]:
        return False
    length = r[PROMPT, request] + r[GENERATED, request]
    reserve = n[WATERMARK_BLOCKS] if running > 0 else 0
    if blocks(length, n[BLOCK_TOKENS]) + n[FIXED_BLOCKS] > n[FREE] - reserve:
        return False
    if n[RESERVES_OUTPUT] and n[PROMISED] + whole_blocks(n, r, request) > n[TOTAL_BLOCKS]:
        return False
    budget = n[MAX_TOKENS] - n[DECODING] - n[TOKENS]
    if n[CHUNKED]:
        return bool(budget > 0)
    fresh = length - hit_tokens(n, r, request)
    # A context beyond the budget goes alone, whatever of it is cached: losing cached blocks must never let it in.
    return bool(fresh <= budget or (length > n[MAX_TOKENS] and n[TOKENS] == 0))


@inlined
def chunk(n: IntArray, x: FloatArray, q: IntArray, request: int, done: int, length: int) -> None:
    """Prefills as much of a prompt as the budget of this step allows; the rest becomes the partial request."""
    fresh = length - done
    if n[CHUNKED]:
        fresh = min(fresh, n[MAX_TOKENS] - n[DECODING] - n[TOKENS])
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
    if n[IN_FRONT] > 0:
        n[IN_FRONT] -= 1
    else:
        n[HEAD] += 1
        t[ADMITTED, request] = x[NOW]
    length = r[PROMPT, request] + r[GENERATED, request]
    hit = hit_tokens(n, r, request)
    needed = blocks(length, n[BLOCK_TOKENS]) + n[FIXED_BLOCKS]
    n[FREE] -= needed
    n[ALLOCATED] += needed - hit // n[BLOCK_TOKENS]
    if n[STACKED] == q.shape[1]:
        restack(n, r, q)
    q[STACK, n[STACKED]] = request
    r[STACK_AT, request] = n[STACKED]
    n[STACKED] += 1
    n[ADMISSIONS] += 1
    if n[RESERVES_OUTPUT]:
        n[PROMISED] += whole_blocks(n, r, request)
    chunk(n, x, q, request, hit, length)


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
    request = next_waiting(n, q)
    while admit and n[PARTIAL] < 0 and may_start(n, r, request):
        start(n, x, r, t, q, request)
        request = next_waiting(n, q)


@inlined
def mixed_step(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> None:
    """One step with prefill in it: every decoding sequence still advances by one token."""
    plain_s = decode_s(n, x) if n[DECODING] > 0 else 0.0
    prefills = n[READY] + (n[PARTIAL] >= 0)
    if n[PREFILL_ALONE] and n[DECODING] > 0:
        tokenwise_s = tokens_s(n, x, n[DECODING]) + tokens_s(n, x, n[TOKENS])
    else:
        tokenwise_s = tokens_s(n, x, n[DECODING] + n[TOKENS])
    step_s = (
        tokenwise_s
        + x[SEQUENCE_S] * (n[DECODING] + prefills)
        + x[PREFILL_S] * n[ADMISSIONS]
        + x[CONTEXT_S] * (n[CONTEXT] + n[READS])
        + x[WINDOW_S] * (n[WINDOW_CONTEXT] + n[WINDOW_READS])
        + x[PAIR_S] * x[PAIRS]
        + x[WINDOW_PAIR_S] * x[WINDOW_PAIRS]
    )
    if measuring(n):
        x[PREFILL_BUSY_S] += step_s - plain_s
        n[MIXED_TOKENS] += n[DECODING]
        n[PREFILL_TOKENS] += n[TOKENS]
    account(n, x, step_s, 0.0, 1)
    x[BEFORE] = x[NOW]
    x[NOW] += step_s
    advance(n, x, r, t, q, 1)
    for at in range(n[READY]):
        emit(n, x, r, t, q, q[READIED, at])
    n[READY] = 0
    n[TOKENS] = 0


@compiled
def emit(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int) -> None:
    """A finished prefill gives one token: the first, or after a preemption the next."""
    kv_tokens = r[PROMPT, request] + r[GENERATED, request]
    r[GENERATED, request] += 1
    r[LOST_BLOCKS, request] = 0
    if r[GENERATED, request] == 1:
        t[FIRST, request] = x[NOW]
    elif measuring(n):
        count_gaps(n, x, x[NOW] - t[LOST_AT, request], 0.0, 1, 1)
    if r[GENERATED, request] == r[OUTPUT, request]:
        n[FREE] += blocks(kv_tokens, n[BLOCK_TOKENS]) + n[FIXED_BLOCKS]
        finish(n, x, r, t, request)
    else:
        join(n, r, q, request, kv_tokens)


@inlined
def block_steps(n: IntArray, steps: int) -> int:
    """How many of ``steps`` steps the free blocks allow (the first has its blocks already)."""
    more = steps - 1
    if (more // n[BLOCK_TOKENS] + 1) * n[DECODING] <= n[FREE]:
        return steps
    cycles = n[FREE] // n[DECODING]
    left = n[FREE] - cycles * n[DECODING]
    allowed = cycles * n[BLOCK_TOKENS]
    while allowed < more:
        left -= n[RESIDUES + (n[STEP] + 1 + allowed) % n[BLOCK_TOKENS]]
        if left < 0:
            break
        allowed += 1
    return int(min(allowed, more) + 1)


@inlined
def grow(n: IntArray, more: int) -> None:
    """Blocks of the ``more`` steps after the coming one."""
    cycles = more // n[BLOCK_TOKENS]
    count = cycles * n[DECODING]
    for step in range(n[STEP] + 1 + cycles * n[BLOCK_TOKENS], n[STEP] + 1 + more):
        count += n[RESIDUES + step % n[BLOCK_TOKENS]]
    take_blocks(n, count)


@inlined
def leap(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, longest: int) -> None:
    """Decodes until something changes: a sequence is due, blocks run out, a window fills or a request arrives."""
    first_s = decode_s(n, x)
    rise_s = x[CONTEXT_S] * n[DECODING] + x[WINDOW_S] * n[WINDOW_GROWING]
    steps = min((q[DONE, 0] >> KEY_BITS) - n[STEP], longest)
    if n[CROSS_HEAP] > 0:
        steps = min(steps, max(1, (q[CROSS, 0] >> KEY_BITS) - n[STEP]))
    if steps > 1:
        steps = block_steps(n, steps)
    if steps > 1 and next_waiting(n, q) < 0:
        arrival = next_arrival(n, r, t)
        if not isinf(arrival):
            queued = 1 if n[QUEUED_STEP] else 0
            wait_s = arrival - x[NOW]
            until = steps_until(wait_s, first_s, rise_s, steps) if wait_s > 0.0 else 0
            steps = min(steps, max(1, until + queued))
    if steps > 1 and not isinf(x[UNTIL_S]):
        steps = steps_until(x[UNTIL_S] - x[NOW], first_s, rise_s, steps)
    grow(n, steps - 1)
    account(n, x, first_s, rise_s, steps)
    x[BEFORE] = x[NOW] + (steps - 1) * first_s + rise_s * (steps - 1) * (steps - 2) / 2
    x[NOW] += steps * first_s + rise_s * steps * (steps - 1) / 2
    advance(n, x, r, t, q, steps)


@inlined
def arrive(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> bool:
    """Lets requests in at a step boundary; an idle engine jumps to the next arrival. False: nothing is left to do."""
    if x[NOW] >= x[UNTIL_S]:
        return False
    idle = n[DECODING] == 0 and n[PARTIAL] < 0
    until_s = x[BEFORE] if n[QUEUED_STEP] and not idle else x[NOW]
    if next_arrival(n, r, t) <= until_s:
        issue(n, r, t, until_s)
    if idle and next_waiting(n, q) < 0:
        arrival = next_arrival(n, r, t)
        if arrival >= x[UNTIL_S]:
            return False
        x[NOW] = arrival
        x[BEFORE] = arrival
        issue(n, r, t, arrival)
    return True


def _fingerprint() -> int:
    """Of all compiled source: numba looks for changes only in the file of the function it caches."""
    parts: list[object] = []
    for module in (simulate_layout, simulate_kernel, sys.modules[__name__]):
        for name, value in sorted(vars(module).items()):
            if isinstance(value, int | float):
                parts.append((name, value))
            elif hasattr(value, "py_func"):
                parts.append((name, value.py_func.__code__.co_code, value.py_func.__code__.co_consts))
    return zlib.crc32(repr(parts).encode())


def _compile(code: int) -> Run:
    @cached
    def run(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> None:
        n[CODE] = code  # a free variable is part of the key numba caches under
        wanted = n[END_MEASURED] - n[FIRST_MEASURED]
        while n[MEASURED] < wanted and n[EVENTS] < n[MAX_EVENTS] and arrive(n, x, r, t, q):
            n[EVENTS] += 1
            preempted = preempt(n, x, r, t, q)
            fill(n, x, r, t, q, not preempted)
            if n[READY] > 0 or n[PARTIAL] >= 0:
                mixed_step(n, x, r, t, q)
            else:
                leap(n, x, r, t, q, 1 if preempted else 1 << 40)

    return run


Run: TypeAlias = Callable[[IntArray, FloatArray, IntArray, FloatArray, IntArray], None]

run = _compile(_fingerprint())
"""Simulates until every measured request is finished, nothing is left, ``max_events`` rounds are done, or UNTIL_S."""
