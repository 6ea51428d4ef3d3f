"""Decoding sequences come and go, fill their windows and take blocks as they grow. Compiled, like the kernel.

A paced sequence gains a fixed fraction of tokens per step (PACE units, :data:`calc.simulator.layout.FINE_BITS`), so
its blocks fall due at steps of its own: a heap keeps them. Plain sequences gain one token: a count per residue does.
"""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from calc.simulator.heaps import pop, schedule, sink
from calc.simulator.kernel import blocks, growth
from calc.simulator.layout import *
from calc.simulator.prefixes import release
from calc.simulator.specialise import compiled, inlined
from calc.workload import IntArray


@inlined
def take_blocks(n: IntArray, count: int) -> None:
    """Blocks leave the free list; what was cached in them is gone."""
    n[FREE] -= count
    n[ALLOCATED] += count


@inlined
def pace(r: IntArray, request: int) -> int:
    """What a step adds to a sequence, in units of CONTEXT."""
    return int(r[PACE, request] if PACED else 1)


@inlined
def steps_for(units: int, per_step: int) -> int:
    """Fewest steps that add so much."""
    return int((units + per_step - 1) // per_step)


@inlined
def kv_tokens_at(r: IntArray, request: int, step: int) -> int:
    """KV tokens of a decoding sequence before a step."""
    return int((r[BASE, request] + step * pace(r, request)) >> PACE_BITS)


@inlined
def join(n: IntArray, r: IntArray, q: IntArray, request: int, kv_tokens: int) -> None:
    """A sequence with ``kv_tokens`` in the cache and one fresh token starts to decode with the coming step."""
    per_step = pace(r, request)
    base = (kv_tokens << PACE_BITS) - n[STEP] * per_step
    r[BASE, request] = base
    n[DECODING] += 1
    n[CONTEXT] += (kv_tokens + 1) << PACE_BITS
    if PACED:
        n[PACES] += per_step
    left = r[OUTPUT, request] - r[GENERATED, request]
    if not MANAGED or left > 0:
        due = n[STEP] + steps_for(left << PACE_BITS, per_step)
        schedule(n, r, q, DONE, DONE_HEAP, DUE, request, due)
    if n[WINDOW_TOKENS] > 0:
        n[WINDOW_CONTEXT] += min(kv_tokens + 1, n[WINDOW_TOKENS]) << PACE_BITS
        if kv_tokens + 1 < n[WINDOW_TOKENS]:
            n[WINDOW_GROWING] += per_step
            cross = n[STEP] + steps_for((n[WINDOW_TOKENS] - kv_tokens - 1) << PACE_BITS, per_step)
            schedule(n, r, q, CROSS, CROSS_HEAP, CROSS_AT, request, cross)
    if not (MANAGED and n[STATIC]):
        if PACED:
            r[OWN_BLOCKS, request] = blocks(kv_tokens, n[BLOCK_TOKENS])
            plan_growth(n, r, q, request)
        else:
            n[RESIDUES + (-base) % n[BLOCK_TOKENS]] += 1


@inlined
def leave(n: IntArray, r: IntArray, request: int) -> int:
    """A decoding sequence stops before the coming step; returns the KV tokens it held."""
    per_step = pace(r, request)
    units = r[BASE, request] + n[STEP] * per_step
    kv_tokens = units >> PACE_BITS
    n[DECODING] -= 1
    n[CONTEXT] -= units + UNIT
    if n[WINDOW_TOKENS] > 0:
        if n[STEP] < r[CROSS_AT, request]:
            n[WINDOW_GROWING] -= per_step
            n[WINDOW_CONTEXT] -= units + UNIT
        else:
            n[WINDOW_CONTEXT] -= n[WINDOW_TOKENS] << PACE_BITS
        r[CROSS_AT, request] = NEVER
    if PACED:
        n[PACES] -= per_step
        release(n, r, request, r[OWN_BLOCKS, request] + n[FIXED_BLOCKS])
        r[GROW_AT, request] = NEVER
    else:
        n[RESIDUES + (-r[BASE, request]) % n[BLOCK_TOKENS]] -= 1
        release(n, r, request, blocks(kv_tokens, n[BLOCK_TOKENS]) + n[FIXED_BLOCKS])
    r[DUE, request] = NEVER
    return int(kv_tokens)


@compiled
def cross_windows(n: IntArray, r: IntArray, q: IntArray) -> None:
    """Sequences whose context reaches the window stop growing in windowed layers."""
    while n[CROSS_HEAP] > 0 and q[CROSS, 0] >> KEY_BITS <= n[STEP]:
        request = q[CROSS, 0] & REQUEST_MASK
        due = q[CROSS, 0] >> KEY_BITS
        n[CROSS_HEAP] = pop(q, CROSS, n[CROSS_HEAP])
        if due == r[CROSS_AT, request]:
            per_step = pace(r, request)
            n[WINDOW_GROWING] -= per_step
            over = r[BASE, request] + due * per_step + UNIT - (n[WINDOW_TOKENS] << PACE_BITS)
            n[WINDOW_CONTEXT] -= over


@inlined
def pass_steps(n: IntArray, r: IntArray, q: IntArray, steps: int) -> None:
    """Moves the step counter; contexts grow and windows fill."""
    n[STEP] += steps
    n[CONTEXT] += growth(n) * steps
    n[WINDOW_CONTEXT] += n[WINDOW_GROWING] * steps
    if n[CROSS_HEAP] > 0:
        cross_windows(n, r, q)


@inlined
def wanted_at(n: IntArray, r: IntArray, request: int, step: int) -> int:
    """Blocks a paced sequence lacks at a step: room for all tokens it verifies, but not beyond its last."""
    last = r[PROMPT, request] + r[OUTPUT, request] - 1
    tokens = min(kv_tokens_at(r, request, step) + n[VERIFIED], last)
    return int(blocks(tokens, n[BLOCK_TOKENS]) - r[OWN_BLOCKS, request])


@inlined
def growth_step(n: IntArray, r: IntArray, request: int) -> int:
    """Next step at which a paced sequence lacks blocks; never if it has room for its last token."""
    room = r[OWN_BLOCKS, request] * n[BLOCK_TOKENS]
    if room >= r[PROMPT, request] + r[OUTPUT, request] - 1:
        return NEVER
    short_at = (room - n[VERIFIED] + 1) << PACE_BITS
    per_step = pace(r, request)
    return int(max(n[STEP], (short_at - r[BASE, request] + per_step - 1) // per_step))


@compiled
def plan_growth(n: IntArray, r: IntArray, q: IntArray, request: int) -> None:
    """Notes when a paced sequence next lacks blocks."""
    step = growth_step(n, r, request)
    if step >= 0:
        schedule(n, r, q, GROW, GROW_HEAP, GROW_AT, request, step)
    else:
        r[GROW_AT, request] = NEVER


@compiled
def grow_paced(n: IntArray, r: IntArray, q: IntArray, steps: int) -> int:
    """Takes the blocks of the steps after the coming one; returns how many steps the free blocks allow."""
    end = n[STEP] + steps
    while n[GROW_HEAP] > 0 and q[GROW, 0] >> KEY_BITS < end:
        step = q[GROW, 0] >> KEY_BITS
        request = q[GROW, 0] & REQUEST_MASK
        if r[GROW_AT, request] != step:
            n[GROW_HEAP] = pop(q, GROW, n[GROW_HEAP])
            continue
        wanted = wanted_at(n, r, request, step)
        if wanted > n[FREE]:
            return int(step - n[STEP])
        take_blocks(n, wanted)
        r[OWN_BLOCKS, request] += wanted
        following = growth_step(n, r, request)
        r[GROW_AT, request] = following
        if following >= 0:
            sink(q, GROW, n[GROW_HEAP], (following << KEY_BITS) | request)
        else:
            n[GROW_HEAP] = pop(q, GROW, n[GROW_HEAP])
    return steps


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
