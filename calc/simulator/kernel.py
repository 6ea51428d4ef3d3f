"""The scheduler of one replica, compiled: continuous batching that leaps over decode steps in which nothing changes.

Between two events (arrival, admission, end of a prefill, completion, blocks running out) every step decodes the same
sequences, so ``k`` steps take ``A·k + D·k(k-1)/2`` seconds with ``A`` the next step and ``D`` what one more context
token per sequence adds. A global step counter keys everything: a sequence that joins at step S with r tokens to go
leaves at boundary S + r (a heap), and takes a new block whenever S equals its residue modulo the block size (a count
per residue). Rules and their sources are described in :mod:`calc.simulator.simulate`.
"""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from math import frexp, inf, ldexp, sqrt

from calc.simulator.layout import *
from calc.workload import FloatArray, IntArray


@compiled
def push(q: IntArray, heap: int, size: int, key: int) -> int:
    """Adds a key to a binary heap of ``size`` keys; returns the new size."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if q[heap, above] <= key:
            break
        q[heap, at] = q[heap, above]
        at = above
    q[heap, at] = key
    return size + 1


@compiled
def pop(q: IntArray, heap: int, size: int) -> int:
    """Drops the least key of a binary heap; returns the new size."""
    size -= 1
    key = q[heap, size]
    at = 0
    child = 1
    while child < size:
        if child + 1 < size and q[heap, child + 1] < q[heap, child]:
            child += 1
        if q[heap, child] >= key:
            break
        q[heap, at] = q[heap, child]
        at = child
        child = 2 * at + 1
    q[heap, at] = key
    return size


@inlined
def blocks(tokens: int, block_tokens: int) -> int:
    """Blocks that hold so many tokens."""
    return (tokens + block_tokens - 1) // block_tokens


@inlined
def whole_blocks(n: IntArray, r: IntArray, request: int) -> int:
    """Blocks a request holds when its last token is made."""
    return int(blocks(r[PROMPT, request] + r[OUTPUT, request] - 1, n[BLOCK_TOKENS]) + n[FIXED_BLOCKS])


@inlined
def tokens_s(n: IntArray, x: FloatArray, tokens: int) -> float:
    """Seconds of the token-wise kernels of one step."""
    last = n[LAST_COST]
    if tokens <= last:
        return float(x[TOKEN_COST + tokens])
    return float(x[TOKEN_COST + last] + (tokens - last) * x[BEYOND_S])


@inlined
def decode_s(n: IntArray, x: FloatArray) -> float:
    """Seconds of the next step if it only decodes."""
    return float(
        tokens_s(n, x, n[DECODING])
        + x[SEQUENCE_S] * n[DECODING]
        + x[CONTEXT_S] * n[CONTEXT]
        + x[WINDOW_S] * n[WINDOW_CONTEXT]
    )


@inlined
def next_arrival(n: IntArray, r: IntArray, t: FloatArray) -> float:
    """When the next request arrives; infinite when none does."""
    if n[ISSUED] >= r.shape[1]:
        return inf
    soonest = inf
    if n[STARTED] < n[USERS]:
        soonest = t[START, n[STARTED]]
    taken = n[ISSUED] - n[STARTED]
    if n[CLOSED] == OWN_USERS and taken < n[RETURNED] and t[BACK, taken] < soonest:
        soonest = t[BACK, taken]
    return soonest


@compiled
def issue(n: IntArray, r: IntArray, t: FloatArray, until_s: float) -> None:
    """Requests that arrived by ``until_s`` join the queue in order of arrival."""
    soonest = next_arrival(n, r, t)
    while soonest <= until_s:
        t[ARRIVAL, n[ISSUED]] = soonest
        if n[STARTED] < n[USERS] and t[START, n[STARTED]] == soonest:
            n[STARTED] += 1
        n[ISSUED] += 1
        soonest = next_arrival(n, r, t)


@inlined
def measuring(n: IntArray) -> bool:
    """Whether the clock stands between the first start of a measured request and the last."""
    return bool(n[FIRST_MEASURED] < n[HEAD] <= n[END_MEASURED])


@inlined
def gap_bin(gap_s: float) -> int:
    """Histogram bin of a gap, read off its floating-point form."""
    mantissa, exponent = frexp(gap_s)
    octave = (exponent - LOWEST_OCTAVE) * BINS_PER_OCTAVE
    return min(max(octave + int((2 * mantissa - 1) * BINS_PER_OCTAVE), 0), GAP_BINS - 1)


@inlined
def bin_start_s(found: int) -> float:
    """Shortest gap of a histogram bin."""
    return ldexp((1 + (found % BINS_PER_OCTAVE) / BINS_PER_OCTAVE) / 2, found // BINS_PER_OCTAVE + LOWEST_OCTAVE)


@compiled
def spread_gaps(n: IntArray, first_s: float, rise_s: float, steps: int, sequences: int) -> None:
    """The same over several bins."""
    low = gap_bin(first_s)
    high = gap_bin(first_s + rise_s * (steps - 1))
    done = 0
    while low < high:
        below = min(max(int((bin_start_s(low + 1) - first_s) / rise_s) + 1, done), steps)
        n[n[GAPS] + low] += (below - done) * sequences
        done = below
        low += 1
    n[n[GAPS] + high] += (steps - done) * sequences


@inlined
def count_gaps(n: IntArray, x: FloatArray, first_s: float, rise_s: float, steps: int, sequences: int) -> None:
    """Gaps of ``steps`` decode steps, the next ``rise_s`` longer than the last, into the histogram."""
    n[DECODE_TOKENS] += steps * sequences
    x[GAP_S] += sequences * (steps * first_s + rise_s * steps * (steps - 1) / 2)
    low = gap_bin(first_s)
    if first_s + rise_s * (steps - 1) < bin_start_s(low + 1):
        n[n[GAPS] + low] += steps * sequences
    else:
        spread_gaps(n, first_s, rise_s, steps, sequences)


@inlined
def account(n: IntArray, x: FloatArray, first_s: float, rise_s: float, steps: int) -> None:
    """Statistics of ``steps`` steps that start now; the caller moves the clock."""
    if not measuring(n):
        return
    took_s = first_s * steps + rise_s * steps * (steps - 1) / 2
    used = n[TOTAL_BLOCKS] - n[FREE]
    x[BUSY_S] += took_s
    x[USED_BLOCK_S] += took_s * used
    n[MOST_USED] = max(n[MOST_USED], used)
    if n[DECODING] > 0:
        count_gaps(n, x, first_s, rise_s, steps, n[DECODING])


@inlined
def due_step(r: IntArray, request: int, context_tokens: int) -> int:
    """Boundary at which a sequence has that context, or (0) has all its tokens; never for one that does not decode."""
    if context_tokens == 0:
        context_tokens = r[PROMPT, request] + r[OUTPUT, request]
    return int(context_tokens - 1 - r[BASE, request])


@compiled
def drop_stale(r: IntArray, q: IntArray, heap: int, size: int, context_tokens: int) -> int:
    """Forgets keys of sequences that were preempted or finished since, in place: a heap is built as it is read."""
    kept = 0
    for at in range(size):
        key = q[heap, at]
        if key >> KEY_BITS == due_step(r, key & REQUEST_MASK, context_tokens):
            kept = push(q, heap, kept, key)
    return kept


@inlined
def join(n: IntArray, r: IntArray, q: IntArray, request: int, kv_tokens: int) -> None:
    """A sequence with ``kv_tokens`` in the cache and one fresh token starts to decode with the coming step."""
    base = kv_tokens - n[STEP]
    r[BASE, request] = base
    n[RESIDUES + (-base) % n[BLOCK_TOKENS]] += 1
    n[DECODING] += 1
    n[CONTEXT] += kv_tokens + 1
    if n[DONE_HEAP] == q.shape[1]:
        n[DONE_HEAP] = drop_stale(r, q, DONE, n[DONE_HEAP], 0)
    n[DONE_HEAP] = push(q, DONE, n[DONE_HEAP], (due_step(r, request, 0) << KEY_BITS) | request)
    if n[WINDOW_TOKENS] > 0:
        n[WINDOW_CONTEXT] += min(kv_tokens + 1, n[WINDOW_TOKENS])
        if kv_tokens + 1 < n[WINDOW_TOKENS]:
            n[WINDOW_GROWING] += 1
            if n[CROSS_HEAP] == q.shape[1]:
                n[CROSS_HEAP] = drop_stale(r, q, CROSS, n[CROSS_HEAP], n[WINDOW_TOKENS])
            due = due_step(r, request, n[WINDOW_TOKENS])
            n[CROSS_HEAP] = push(q, CROSS, n[CROSS_HEAP], (due << KEY_BITS) | request)


@inlined
def leave(n: IntArray, r: IntArray, request: int) -> int:
    """A decoding sequence stops before the coming step; returns the KV tokens it held."""
    kv_tokens = r[BASE, request] + n[STEP]
    n[RESIDUES + (-r[BASE, request]) % n[BLOCK_TOKENS]] -= 1
    r[BASE, request] = NOT_DECODING
    n[DECODING] -= 1
    n[CONTEXT] -= kv_tokens + 1
    n[FREE] += blocks(kv_tokens, n[BLOCK_TOKENS]) + n[FIXED_BLOCKS]
    if n[WINDOW_TOKENS] > 0:
        n[WINDOW_CONTEXT] -= min(kv_tokens + 1, n[WINDOW_TOKENS])
        if kv_tokens + 1 < n[WINDOW_TOKENS]:
            n[WINDOW_GROWING] -= 1
    return int(kv_tokens)


@inlined
def finish(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, request: int) -> None:
    """A request has all its tokens; in a closed loop its user comes back after ``think_s``."""
    t[FINISH, request] = x[NOW]
    r[STACK_AT, request] = -1
    if n[RESERVES_OUTPUT]:
        n[PROMISED] -= whole_blocks(n, r, request)
    if n[FIRST_MEASURED] <= request < n[END_MEASURED]:
        n[MEASURED] += 1
    if n[CLOSED] != OPEN:
        t[BACK, n[RETURNED]] = x[NOW] + x[THINK_S]
        r[DONE_ORDER, n[RETURNED]] = request
        n[RETURNED] += 1


@compiled
def cross_windows(n: IntArray, r: IntArray, q: IntArray) -> None:
    """Sequences whose context reaches the window stop growing in windowed layers."""
    while n[CROSS_HEAP] > 0 and q[CROSS, 0] >> KEY_BITS <= n[STEP]:
        request = q[CROSS, 0] & REQUEST_MASK
        due = q[CROSS, 0] >> KEY_BITS
        n[CROSS_HEAP] = pop(q, CROSS, n[CROSS_HEAP])
        if due == due_step(r, request, n[WINDOW_TOKENS]):
            n[WINDOW_GROWING] -= 1


@compiled
def retire(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> None:
    """Sequences that have all their tokens finish; keys left by preempted ones are dropped."""
    while n[DONE_HEAP] > 0 and q[DONE, 0] >> KEY_BITS <= n[STEP]:
        request = q[DONE, 0] & REQUEST_MASK
        due = q[DONE, 0] >> KEY_BITS
        n[DONE_HEAP] = pop(q, DONE, n[DONE_HEAP])
        if due == due_step(r, request, 0):
            leave(n, r, request)
            finish(n, x, r, t, request)


@inlined
def advance(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, steps: int) -> None:
    """Moves the step counter; contexts grow, windows fill, sequences finish."""
    n[STEP] += steps
    n[CONTEXT] += n[DECODING] * steps
    n[WINDOW_CONTEXT] += n[WINDOW_GROWING] * steps
    if n[CROSS_HEAP] > 0:
        cross_windows(n, r, q)
    if n[DONE_HEAP] > 0 and q[DONE, 0] >> KEY_BITS <= n[STEP]:
        retire(n, x, r, t, q)


@compiled
def steps_until(wait_s: float, first_s: float, rise_s: float, limit: int) -> int:
    """Fewest steps (at least 1, at most ``limit``) that take ``wait_s``: root of the sum of a rising series."""
    if rise_s > 0.0:
        half = first_s - rise_s / 2
        root = (sqrt(half * half + 2 * rise_s * max(wait_s, 0.0)) - half) / rise_s
    else:
        root = wait_s / first_s if first_s > 0.0 else limit
    steps = int(min(max(root, 1.0), limit))
    while steps < limit and steps * first_s + rise_s * steps * (steps - 1) / 2 < wait_s:
        steps += 1
    while steps > 1 and (steps - 1) * first_s + rise_s * (steps - 1) * (steps - 2) / 2 >= wait_s:
        steps -= 1
    return steps
