"""One of several schedulers: who is put in, how far it may run, and when somebody may leave it. Compiled."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from math import inf, isinf, nan

from calc.simulator.admission import may_start, next_waiting
from calc.simulator.clients import deadline, next_arrival
from calc.simulator.fetch import next_fetch
from calc.simulator.fleet_layout import *
from calc.simulator.kernel import decode_s, rise_s
from calc.simulator.layout import *
from calc.simulator.prefixes import group_at
from calc.simulator.specialise import compiled, inlined
from calc.simulator.steps import serve
from calc.workload import FloatArray, IntArray


@inlined
def just_after(time_s: float) -> float:
    """The least later time."""
    return time_s + max(time_s * 2.3e-16, 1e-300)


@inlined
def run_until(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, i: int, until_s: float) -> None:
    """Runs one scheduler to its first step boundary at or after ``until_s``.

    This and all that calls it is inlined: numba optimises a function once more for each that calls it.
    """
    if x[i, NOW] < until_s:
        x[i, UNTIL_S] = until_s
        serve(n[i], x[i], r[i], t[i], q[i])


@compiled
def look(
    n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, s: IntArray, d: FloatArray, i: int
) -> None:
    """When the next request may leave scheduler ``i``, and where to stop it to see.

    While only decoding, with blocks enough and nobody waiting, that is the next completion; else every round may tell.
    A prefill replica whose blocks all wait to be fetched does nothing. What has left unnoticed is noticed next.
    """
    if s[TOLD, i] < n[i, RETURNED]:
        d[BOUND, i] = t[i, FINISH, r[i, DONE_ORDER, s[TOLD, i]]]
        d[NEXT_STOP, i] = x[i, NOW]
        return
    d[NEXT_STOP, i] = just_after(x[i, NOW])
    if n[i, PARTIAL] < 0:
        if n[i, DECODING] == 0:
            d[NEXT_STOP, i] = just_after(max(x[i, NOW], wakes(n[i], x[i], r[i], t[i], q[i])))
        elif not MANAGED and s[IN_LINE, i] == 0 and calm(n[i], r[i], t[i], q[i]):
            completes(n[i], x[i], q[i], d, i)
            return
    d[BOUND, i] = d[NEXT_STOP, i]


@compiled
def wakes(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> float:
    """When an idle scheduler next has something to do."""
    waiting = next_waiting(n, r, q)
    if waiting >= 0 and may_start(n, r, waiting):
        return float(x[NOW])
    if MANAGED:
        return min(next_arrival(n, r, t), next_fetch(n, x, r, t, q), deadline(n, x, r, t))
    return inf if waiting >= 0 and n[HOLDS] else next_arrival(n, r, t)


@inlined
def calm(n: IntArray, r: IntArray, t: FloatArray, q: IntArray) -> bool:
    """Whether nothing changes before a sequence is due: nobody waits, nobody comes, blocks are enough."""
    if next_waiting(n, r, q) >= 0 or not isinf(next_arrival(n, r, t)):
        return False
    tokens = ((q[DONE, 0] >> KEY_BITS) - n[STEP]) * (n[VERIFIED] if PACED else 1)
    return bool(n[DECODING] * (tokens // n[BLOCK_TOKENS] + 2) <= n[FREE])


@inlined
def completes(n: IntArray, x: FloatArray, q: IntArray, d: FloatArray, i: int) -> None:
    """When the next sequence is due, or fills its window."""
    steps = (q[DONE, 0] >> KEY_BITS) - n[STEP]
    if n[CROSS_HEAP] > 0:
        steps = min(steps, max(1, (q[CROSS, 0] >> KEY_BITS) - n[STEP]))
    first_s = decode_s(n, x)
    d[BOUND, i] = x[NOW] + steps * first_s + rise_s(n, x) * steps * (steps - 1) / 2
    d[NEXT_STOP, i] = d[BOUND, i] - first_s / 2


@inlined
def put_in(
    n: IntArray,
    r: IntArray,
    t: FloatArray,
    g: IntArray,
    m: IntArray,
    i: int,
    request: int,
    when_s: float,
) -> int:
    """A request reaches scheduler ``i``; returns its place there."""
    local = n[i, USERS]
    m[i, local] = request
    r[i, PROMPT, local] = g[ASKED_PROMPT, request]
    r[i, OUTPUT, local] = g[ASKED_OUTPUT, request]
    r[i, CACHED, local] = g[ASKED_CACHED, request]
    r[i, GROUP, local] = g[ASKED_GROUP, request]
    r[i, SHARED, local] = g[ASKED_SHARED, request]
    r[i, BASE, local] = NOT_DECODING
    r[i, DUE, local] = NEVER
    r[i, CROSS_AT, local] = NEVER
    r[i, GROW_AT, local] = NEVER
    r[i, CLASS, local] = g[ASKED_CLASS, request]
    r[i, FETCH, local] = g[ASKED_FETCH, request]
    r[i, FETCH_TIER, local] = g[ASKED_TIER, request]
    r[i, PACE, local] = g[ASKED_PACE, request]
    for row in range(t.shape[1]):
        t[i, row, local] = nan
    t[i, START, local] = when_s
    t[i, FETCH_WAIT, local] = 0.0
    n[i, USERS] += 1
    if n[i, GROUPS] > 0:
        n[i, group_at(n[i], r[i], local) + COMING] += 1
    return int(local)


@inlined
def soonest(d: FloatArray) -> int:
    """The scheduler that something may leave first."""
    best = 0
    for i in range(1, d.shape[1]):
        if d[BOUND, i] < d[BOUND, best]:
            best = i
    return best
