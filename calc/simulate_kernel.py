"""The scheduler of one replica, compiled: continuous batching that leaps over decode steps in which nothing changes.

Between two events (arrival, admission, end of a prefill, completion, blocks running out) every step decodes the same
sequences, so ``k`` steps take ``A·k + D·k(k-1)/2`` seconds with ``A`` the next step and ``D`` what one more context
token per sequence adds. A global step counter keys everything: a sequence that joins at step S with r tokens to go
leaves at boundary S + r (a heap), and takes a new block whenever S equals its residue modulo the block size (a count
per residue). Rules and their sources are described in :mod:`calc.simulate`.
"""

from __future__ import annotations

from math import inf, log
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit

from calc.workload import FloatArray, IntArray

Record: TypeAlias = Any
"""A row of a structured array: numba reads and writes its fields by name."""

RULES = np.dtype(
    [
        ("first_measured", "i8"),
        ("end_measured", "i8"),
        ("max_tokens", "i8"),
        ("max_seqs", "i8"),
        ("total_blocks", "i8"),
        ("watermark_blocks", "i8"),
        ("block_tokens", "i8"),
        ("window_tokens", "i8"),
        ("max_events", "i8"),
        ("chunked", "?"),
        ("prefix_caching", "?"),
        ("queued_step", "?"),
        ("closed", "?"),
        ("think_s", "f8"),
        ("sequence_s", "f8"),
        ("prefill_s", "f8"),
        ("context_s", "f8"),
        ("window_s", "f8"),
        ("pair_s", "f8"),
        ("window_pair_s", "f8"),
        ("beyond_s", "f8"),
    ]
)
"""Scheduler settings and step costs; ``beyond_s`` continues the table of token costs past its end."""

STATE = np.dtype(
    [
        (name, "f8")
        for name in ("now", "before", "busy_s", "prefill_busy_s", "used_block_s", "gap_s", "pairs", "window_pairs")
    ]
    + [
        (name, "i8")
        for name in (
            *("step", "decoding", "context", "window_context", "window_growing", "free", "allocated", "most_used"),
            *("partial", "partial_done", "partial_length", "issued", "started", "returned", "head", "in_front"),
            *("ready", "stacked", "done_heap", "cross_heap", "finished", "measured", "events", "preemptions"),
            *("decode_tokens", "mixed_tokens", "prefill_tokens", "tokens", "reads", "window_reads", "admissions"),
        )
    ]
)
"""Everything that changes while one replica runs; counts unless the name ends in _s."""

NOT_DECODING = np.int64(-(2**62))
KEY_BITS = 26
"""Heap keys are (step << KEY_BITS) | request."""
REQUEST_MASK = (1 << KEY_BITS) - 1
SHORTEST_GAP_S = 1e-6
BIN_RATIO = 1.005
"""Neighbouring edges of the gap histogram: percentiles are exact to half of 0.5 %."""
GAP_BINS = 4700
"""Covers 1 µs to 4 hours."""
BINS_PER_E = 1.0 / log(BIN_RATIO)


class Book(NamedTuple):
    """Per-request columns (given, then observed) and the kernel's working arrays."""

    prompt: IntArray
    output: IntArray
    cached: IntArray
    start: FloatArray
    """Arrival times, rising; for a closed loop only the first request of each user."""
    token_cost_s: FloatArray
    """Seconds of one step's token-wise kernels by tokens in the step."""
    arrival: FloatArray
    admitted: FloatArray
    first: FloatArray
    finish: FloatArray
    generated: IntArray
    base: IntArray
    """KV tokens minus step counter while decoding."""
    stack_at: IntArray
    lost_at: FloatArray
    lost_tokens: IntArray
    lost_blocks: IntArray
    lost_older: IntArray
    back: FloatArray
    front: IntArray
    ready: IntArray
    stack: IntArray
    done: IntArray
    cross: IntArray
    residues: IntArray
    gaps: IntArray


@njit(cache=True)
def push(heap: IntArray, size: int, key: int) -> int:
    """Adds a key to a binary heap of ``size`` keys; returns the new size."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if heap[above] <= key:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = key
    return size + 1


@njit(cache=True)
def pop(heap: IntArray, size: int) -> int:
    """Drops the least key of a binary heap; returns the new size."""
    size -= 1
    key = heap[size]
    at = 0
    child = 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = key
    return size


@njit(cache=True)
def blocks(tokens: int, block_tokens: int) -> int:
    """Blocks that hold so many tokens."""
    return (tokens + block_tokens - 1) // block_tokens


@njit(cache=True)
def tokens_s(r: Record, cost_s: FloatArray, tokens: int) -> float:
    """Seconds of the token-wise kernels of one step."""
    last = cost_s.size - 1
    if tokens <= last:
        return cost_s[tokens]
    return cost_s[last] + (tokens - last) * r.beyond_s


@njit(cache=True)
def decode_s(r: Record, s: Record, cost_s: FloatArray) -> float:
    """Seconds of the next step if it only decodes."""
    return (
        tokens_s(r, cost_s, s.decoding)
        + r.sequence_s * s.decoding
        + r.context_s * s.context
        + r.window_s * s.window_context
    )


@njit(cache=True)
def next_arrival(s: Record, book: Book) -> float:
    """When the next request arrives; infinite when none does."""
    if s.issued >= book.prompt.size:
        return inf
    soonest = inf
    if s.started < book.start.size:
        soonest = book.start[s.started]
    taken = s.issued - s.started
    if taken < s.returned and book.back[taken] < soonest:
        soonest = book.back[taken]
    return soonest


@njit(cache=True)
def issue(s: Record, book: Book, until_s: float) -> None:
    """Requests that arrived by ``until_s`` join the queue in order of arrival."""
    soonest = next_arrival(s, book)
    while soonest <= until_s:
        book.arrival[s.issued] = soonest
        if s.started < book.start.size and book.start[s.started] == soonest:
            s.started += 1
        s.issued += 1
        soonest = next_arrival(s, book)


@njit(cache=True)
def measuring(r: Record, s: Record) -> bool:
    """Whether the clock stands between the first and the last measured arrival."""
    return r.first_measured < s.issued <= r.end_measured


@njit(cache=True)
def gap_bin(gap_s: float) -> int:
    """Histogram bin of a gap: bins of equal ratio."""
    if gap_s <= SHORTEST_GAP_S:
        return 0
    return min(int(log(gap_s / SHORTEST_GAP_S) * BINS_PER_E), GAP_BINS - 1)


@njit(cache=True)
def count_gaps(s: Record, book: Book, first_s: float, rise_s: float, steps: int, sequences: int) -> None:
    """Gaps of ``steps`` decode steps, the next ``rise_s`` longer than the last, into the histogram."""
    s.decode_tokens += steps * sequences
    s.gap_s += sequences * (steps * first_s + rise_s * steps * (steps - 1) / 2)
    low = gap_bin(first_s)
    high = gap_bin(first_s + rise_s * (steps - 1))
    done = 0
    while low < high:
        edge_s = SHORTEST_GAP_S * BIN_RATIO ** (low + 1)
        below = min(max(int((edge_s - first_s) / rise_s) + 1, done), steps)
        book.gaps[low] += (below - done) * sequences
        done = below
        low += 1
    book.gaps[high] += (steps - done) * sequences


@njit(cache=True)
def account(r: Record, s: Record, book: Book, first_s: float, rise_s: float, steps: int) -> None:
    """Statistics of ``steps`` steps that start now; the caller moves the clock."""
    if not measuring(r, s):
        return
    took_s = first_s * steps + rise_s * steps * (steps - 1) / 2
    used = r.total_blocks - s.free
    s.busy_s += took_s
    s.used_block_s += took_s * used
    s.most_used = max(s.most_used, used)
    if s.decoding > 0:
        count_gaps(s, book, first_s, rise_s, steps, s.decoding)


@njit(cache=True)
def due_step(book: Book, request: int, context_tokens: int) -> int:
    """Boundary at which a sequence has that context, or (0) has all its tokens; never for one that does not decode."""
    if context_tokens == 0:
        context_tokens = book.prompt[request] + book.output[request]
    return context_tokens - 1 - book.base[request]


@njit(cache=True)
def drop_stale(book: Book, heap: IntArray, size: int, context_tokens: int) -> int:
    """Forgets keys of sequences that were preempted or finished since; a sorted heap is a heap."""
    kept = 0
    for at in range(size):
        request = heap[at] & REQUEST_MASK
        if heap[at] >> KEY_BITS == due_step(book, request, context_tokens):
            heap[kept] = heap[at]
            kept += 1
    heap[:kept].sort()
    return kept


@njit(cache=True)
def join(r: Record, s: Record, book: Book, request: int, kv_tokens: int) -> None:
    """A sequence with ``kv_tokens`` in the cache and one fresh token starts to decode with the coming step."""
    base = kv_tokens - s.step
    book.base[request] = base
    book.residues[(-base) % r.block_tokens] += 1
    s.decoding += 1
    s.context += kv_tokens + 1
    if s.done_heap == book.done.size:
        s.done_heap = drop_stale(book, book.done, s.done_heap, 0)
    s.done_heap = push(book.done, s.done_heap, (due_step(book, request, 0) << KEY_BITS) | request)
    if r.window_tokens > 0:
        s.window_context += min(kv_tokens + 1, r.window_tokens)
        if kv_tokens + 1 < r.window_tokens:
            s.window_growing += 1
            if s.cross_heap == book.cross.size:
                s.cross_heap = drop_stale(book, book.cross, s.cross_heap, r.window_tokens)
            due = due_step(book, request, r.window_tokens)
            s.cross_heap = push(book.cross, s.cross_heap, (due << KEY_BITS) | request)


@njit(cache=True)
def leave(r: Record, s: Record, book: Book, request: int) -> int:
    """A decoding sequence stops before the coming step; returns the KV tokens it held."""
    kv_tokens = book.base[request] + s.step
    book.residues[(-book.base[request]) % r.block_tokens] -= 1
    book.base[request] = NOT_DECODING
    s.decoding -= 1
    s.context -= kv_tokens + 1
    s.free += blocks(kv_tokens, r.block_tokens)
    if r.window_tokens > 0:
        s.window_context -= min(kv_tokens + 1, r.window_tokens)
        if kv_tokens + 1 < r.window_tokens:
            s.window_growing -= 1
    return kv_tokens


@njit(cache=True)
def finish(r: Record, s: Record, book: Book, request: int) -> None:
    """A request has all its tokens; in a closed loop its user comes back after ``think_s``."""
    book.finish[request] = s.now
    book.stack_at[request] = -1
    s.finished += 1
    if r.first_measured <= request < r.end_measured:
        s.measured += 1
    if r.closed:
        book.back[s.returned] = s.now + r.think_s
        s.returned += 1


@njit(cache=True)
def advance(r: Record, s: Record, book: Book, steps: int) -> None:
    """Moves the step counter and lets everything due leave: contexts grow, windows fill, sequences finish."""
    s.step += steps
    s.context += s.decoding * steps
    s.window_context += s.window_growing * steps
    while s.cross_heap > 0 and book.cross[0] >> KEY_BITS <= s.step:
        request = book.cross[0] & REQUEST_MASK
        due = book.cross[0] >> KEY_BITS
        s.cross_heap = pop(book.cross, s.cross_heap)
        if due == due_step(book, request, r.window_tokens):
            s.window_growing -= 1
    while s.done_heap > 0 and book.done[0] >> KEY_BITS <= s.step:
        request = book.done[0] & REQUEST_MASK
        due = book.done[0] >> KEY_BITS
        s.done_heap = pop(book.done, s.done_heap)
        if due == due_step(book, request, 0):
            leave(r, s, book, request)
            finish(r, s, book, request)
