"""Which replica gets a request. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from calc.simulator.fleet_layout import *
from calc.simulator.layout import *
from calc.simulator.prefixes import group_at, prefix_blocks
from calc.simulator.specialise import compiled, inlined
from calc.workload import FloatArray, IntArray


@inlined
def load(n: IntArray, r: IntArray, t: FloatArray, s: IntArray, i: int, now_s: float) -> int:
    """Requests at scheduler ``i``: sent and not gone by ``now_s``."""
    while s[LEFT, i] < n[i, RETURNED] and t[i, FINISH, r[i, DONE_ORDER, s[LEFT, i]]] <= now_s:
        s[LEFT, i] += 1
    return int(s[SENT, i] - s[LEFT, i])


@compiled
def least_loaded(
    n: IntArray, r: IntArray, t: FloatArray, s: IntArray, low: int, high: int, now_s: float
) -> tuple[int, int]:
    """The scheduler in [low, high) with the fewest requests, and how many those are."""
    best, fewest = low, load(n, r, t, s, low, now_s)
    for i in range(low + 1, high):
        found = load(n, r, t, s, i, now_s)
        if found < fewest:
            best, fewest = i, found
    return best, fewest


@inlined
def by_turns(
    n: IntArray, r: IntArray, t: FloatArray, f: IntArray, s: IntArray, low: int, high: int, now_s: float
) -> int:
    """The least loaded scheduler; of equals the next in turn, so that prefixes spread over idle ones."""
    f[TURN] += 1
    best, fewest = -1, 0
    for step in range(high - low):
        i = low + (f[TURN] + step) % (high - low)
        found = load(n, r, t, s, i, now_s)
        if best < 0 or found < fewest:
            best, fewest = i, found
    return int(best)


@compiled
def holder(
    n: IntArray,
    r: IntArray,
    t: FloatArray,
    f: IntArray,
    g: IntArray,
    s: IntArray,
    low: int,
    high: int,
    request: int,
    now_s: float,
) -> int:
    """Prefix-aware: the scheduler that has most of the prefix or will soon, the least loaded of equals; no prefix
    anywhere, or that one overloaded: the least loaded of all."""
    fewest = least_loaded(n, r, t, s, low, high, now_s)[1]
    found, most, its_load = -1, 0, 0
    for i in range(low, high):
        spare = n[i, USERS]
        r[i, GROUP, spare] = g[ASKED_GROUP, request]
        r[i, SHARED, spare] = g[ASKED_SHARED, request]
        kept = prefix_blocks(n[i], r[i], spare)
        if n[i, group_at(n[i], r[i], spare) + COMING] > 0:
            kept = g[ASKED_SHARED, request]
        its = load(n, r, t, s, i, now_s)
        if kept > most or (kept == most and kept > 0 and its < its_load):
            found, most, its_load = i, kept, its
    if found < 0 or (its_load > fewest * OVERLOAD_FACTOR and its_load > fewest + OVERLOAD_REQUESTS):
        return by_turns(n, r, t, f, s, low, high, now_s)
    return found


@compiled
def choose(
    n: IntArray,
    r: IntArray,
    t: FloatArray,
    f: IntArray,
    g: IntArray,
    s: IntArray,
    low: int,
    high: int,
    turn: int,
    request: int,
    now_s: float,
) -> int:
    """Which scheduler in [low, high) gets the request; ``turn`` = where the pool's turn is kept."""
    if high - low == 1:
        return low
    if f[POLICY] == RANDOM:
        luck = g[LUCK, request] if turn == TURN else g[LUCK, request] >> 31
        return int(low + (luck & 0x7FFFFFFF) % (high - low))
    if f[POLICY] == ROUND_ROBIN:
        f[turn] = (f[turn] + 1) % (high - low)
        return int(low + (f[turn] + high - low - 1) % (high - low))
    if f[POLICY] == PREFIX_AWARE and turn == TURN and n[low, GROUPS] > 0:
        return holder(n, r, t, f, g, s, low, high, request, now_s)
    return least_loaded(n, r, t, s, low, high, now_s)[0]
