"""Who gives way when blocks run out, and how sequences get the blocks they grow into. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from calc.simulator.heaps import pop
from calc.simulator.kernel import blocks, promise
from calc.simulator.layout import *
from calc.simulator.lines import insert_near_first, occupy
from calc.simulator.prefixes import release
from calc.simulator.sequences import kv_tokens_at, leave, plan_growth, take_blocks, wanted_at
from calc.simulator.specialise import compiled, inlined
from calc.workload import FloatArray, IntArray


@inlined
def last_admitted(n: IntArray, r: IntArray, q: IntArray) -> int:
    """The running request that was admitted last: the stack forgets finished ones when it meets them."""
    while r[STACK_AT, q[STACK, n[STACKED] - 1]] != n[STACKED] - 1:
        n[STACKED] -= 1
    return int(q[STACK, n[STACKED] - 1])


@compiled
def last_in_order(n: IntArray, r: IntArray, q: IntArray) -> int:
    """The running request that is served last by (priority, attempt)."""
    found = q[STACK, 0]
    last = NEVER
    for at in range(n[STACKED]):
        request = q[STACK, at]
        if r[STACK_AT, request] == at and r[ORDER, request] > last:
            found = request
            last = r[ORDER, request]
    return int(found)


@compiled
def put_back(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int) -> None:
    """Preempts: blocks are freed, the request waits at the front and recomputes what is evicted until it returns."""
    r[LOST_OLDER, request] = n[FREE] + n[ALLOCATED]
    if request == n[PARTIAL]:
        kv_tokens = n[PARTIAL_DONE]
        held = blocks(n[PARTIAL_LENGTH], n[BLOCK_TOKENS])
        release(n, r, request, held + n[FIXED_BLOCKS])
        n[PARTIAL] = -1
    else:
        r[GENERATED, request] = kv_tokens_at(r, request, n[STEP]) + 1 - r[PROMPT, request]
        held = r[OWN_BLOCKS, request] if PACED else 0
        kv_tokens = leave(n, r, request)
        if not PACED:
            held = blocks(kv_tokens, n[BLOCK_TOKENS])
        t[LOST_AT, request] = x[NOW]
    r[LOST_TOKENS, request] = kv_tokens
    r[LOST_BLOCKS, request] = held
    r[STACK_AT, request] = NEVER
    promise(n, r, request, -1)
    n[PREEMPTIONS] += 1
    if MANAGED:
        if n[SWAPS]:
            x[MOVED_S] += x[SWAP_S] * blocks(kv_tokens, n[BLOCK_TOKENS])
        occupy(n, r, request, -1)
        r[STATE, request] = WAITING
        insert_near_first(n, r, r[CLASS, request], request)
    else:
        q[FRONT, n[IN_FRONT]] = request
        n[IN_FRONT] += 1


@inlined
def victim(n: IntArray, r: IntArray, q: IntArray) -> int:
    """Who gives way when blocks run out."""
    return last_in_order(n, r, q) if MANAGED else last_admitted(n, r, q)


@inlined
def preempt(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> bool:
    """Sequences whose last block is full need one more; while there are too few, somebody gives way."""
    if PACED:
        return preempt_paced(n, x, r, t, q)
    residue = n[STEP] % n[BLOCK_TOKENS]
    any_preempted = False
    while n[RESIDUES + residue] > n[FREE]:
        put_back(n, x, r, t, q, victim(n, r, q))
        any_preempted = True
    take_blocks(n, n[RESIDUES + residue])
    return any_preempted


@compiled
def preempt_paced(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> bool:
    """The same for sequences that take blocks at steps of their own."""
    short = 0
    wanted = 0
    while n[GROW_HEAP] > 0 and q[GROW, 0] >> KEY_BITS <= n[STEP]:
        request = q[GROW, 0] & REQUEST_MASK
        if r[GROW_AT, request] == q[GROW, 0] >> KEY_BITS:
            r[GROW_AT, request] = SHORT
            wanted += wanted_at(n, r, request, n[STEP])
            q[READIED, short] = request
            short += 1
        n[GROW_HEAP] = pop(q, GROW, n[GROW_HEAP])
    any_preempted = False
    while wanted > n[FREE]:
        request = victim(n, r, q)
        if r[GROW_AT, request] == SHORT:
            wanted -= wanted_at(n, r, request, n[STEP])
        put_back(n, x, r, t, q, request)
        any_preempted = True
    for at in range(short):
        request = q[READIED, at]
        if r[GROW_AT, request] == SHORT:
            more = wanted_at(n, r, request, n[STEP])
            take_blocks(n, more)
            r[OWN_BLOCKS, request] += more
            plan_growth(n, r, q, request)
    return any_preempted
