"""Binary heaps of (step, request) keys in rows of the working queues. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from calc.simulator.layout import *
from calc.simulator.specialise import compiled, inlined
from calc.workload import IntArray


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
def sink(q: IntArray, heap: int, size: int, key: int) -> None:
    """Puts a key in place of the least of ``size`` keys."""
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


@inlined
def pop(q: IntArray, heap: int, size: int) -> int:
    """Drops the least key of a binary heap; returns the new size."""
    size -= 1
    sink(q, heap, size, q[heap, size])
    return size


@compiled
def drop_stale(r: IntArray, q: IntArray, heap: int, size: int, row: int) -> int:
    """Forgets keys of sequences whose step in ``row`` is another by now, in place: a heap is built as it is read."""
    kept = 0
    for at in range(size):
        key = q[heap, at]
        if key >> KEY_BITS == r[row, key & REQUEST_MASK]:
            kept = push(q, heap, kept, key)
    return kept


@inlined
def schedule(n: IntArray, r: IntArray, q: IntArray, heap: int, count: int, row: int, request: int, step: int) -> None:
    """Something happens to a sequence at a step: noted in its ``row`` and in a heap of ``n[count]`` keys."""
    r[row, request] = step
    if n[count] == q.shape[1]:
        n[count] = drop_stale(r, q, heap, n[count], row)
    n[count] = push(q, heap, n[count], (step << KEY_BITS) | request)
