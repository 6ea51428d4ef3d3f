"""Several replicas in order of time, compiled: who gets a request, and prefill handed over to decode.

A scheduler is only run when somebody looks at it: up to an arrival it gets, or to the first moment a request may leave
it. Arrivals, hand-overs and ends of transfers are events in order of time; a request that leaves at the moment of an
event has left before it.
"""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf, isinf
from types import FunctionType
from typing import cast

from calc.simulator.fleet_events import add_event, drop_event
from calc.simulator.fleet_handover import assign, joins_line, lands
from calc.simulator.fleet_layout import *
from calc.simulator.fleet_routing import choose
from calc.simulator.fleet_watch import look, put_in, run_until, soonest
from calc.simulator.layout import *
from calc.simulator.specialise import compiled, fingerprint, inlined, specialise
from calc.simulator.steps import flags_of
from calc.workload import FloatArray, IntArray


@compiled
def measure(n: IntArray, f: IntArray, request: int) -> None:
    """Sums run while measured requests arrive."""
    if request == f[FIRST_WANTED] or request == f[END_WANTED]:
        for i in range(n.shape[0]):
            n[i, FIRST_MEASURED] = -1 if request == f[FIRST_WANTED] else NOT_YET


@inlined
def overlook(n: IntArray, f: IntArray, s: IntArray, i: int) -> None:
    """Where leaving makes no event, nobody has to notice it in time."""
    if not f[WATCHED]:
        s[TOLD, i] = n[i, RETURNED]


@inlined
def arrives(
    n: IntArray,
    x: FloatArray,
    r: IntArray,
    t: FloatArray,
    q: IntArray,
    f: IntArray,
    g: IntArray,
    w: FloatArray,
    s: IntArray,
    d: FloatArray,
    m: IntArray,
    now_s: float,
) -> None:
    """The next request comes and is sent to a scheduler."""
    request = f[SENT_REQUESTS]
    f[SENT_REQUESTS] += 1
    w[CAME, request] = now_s
    measure(n, f, request)
    low = f[POOL] if f[PREFILLERS] > 0 else 0
    high = low + (f[PREFILLERS] if f[PREFILLERS] > 0 else f[POOL])
    if f[POLICY] >= LEAST_LOADED:
        for i in range(low, high):
            if f[POLICY] == PREFIX_AWARE or d[BOUND, i] <= now_s:
                run_until(n, x, r, t, q, i, now_s)
                overlook(n, f, s, i)
                look(n, x, r, t, q, s, d, i)
    i = choose(n, r, t, f, g, s, low, high, TURN, request, now_s)
    run_until(n, x, r, t, q, i, now_s)
    local = put_in(n, r, t, g, m, i, request, now_s)
    s[SENT, i] += 1
    if f[PREFILLERS] > 0:
        r[i, OUTPUT, local] = 1
        g[ENTRY, request] = i
        g[ENTRY_LOCAL, request] = local
    else:
        g[PLACE, request] = i
        g[LOCAL, request] = local
    overlook(n, f, s, i)
    look(n, x, r, t, q, s, d, i)


@compiled
def tell(
    n: IntArray,
    r: IntArray,
    t: FloatArray,
    f: IntArray,
    h: FloatArray,
    w: FloatArray,
    s: IntArray,
    m: IntArray,
    e: FloatArray,
    i: int,
) -> None:
    """Requests that left scheduler ``i`` are handed over or done; in a closed loop their users come back."""
    while s[TOLD, i] < n[i, RETURNED]:
        local = r[i, DONE_ORDER, s[TOLD, i]]
        request = m[i, local]
        s[TOLD, i] += 1
        if i >= f[POOL]:
            w[HANDED, request] = t[i, FINISH, local]
            add_event(f, e, t[i, FINISH, local], PREFILLED, request)
            continue
        f[COMPLETED] += f[FIRST_WANTED] <= request < f[END_WANTED]
        if f[RETURNING]:
            add_event(f, e, t[i, FINISH, local] + h[RETURN_S], ARRIVES, request)


@inlined
def happens(
    n: IntArray,
    x: FloatArray,
    r: IntArray,
    t: FloatArray,
    q: IntArray,
    f: IntArray,
    h: FloatArray,
    g: IntArray,
    w: FloatArray,
    s: IntArray,
    d: FloatArray,
    m: IntArray,
    e: FloatArray,
) -> None:
    """The soonest event."""
    now_s, what = e[WHEN, 0], int(e[WHAT, 0])
    kind, request = what % KINDS, what // KINDS
    drop_event(f, e)
    if kind == ARRIVES:
        if f[SENT_REQUESTS] < g.shape[1]:
            arrives(n, x, r, t, q, f, g, w, s, d, m, now_s)
    elif kind == PREFILLED:
        i = choose(n, r, t, f, g, s, 0, f[POOL], DECODE_TURN, request, now_s)
        g[PLACE, request] = i
        s[SENT, i] += 1
        run_until(n, x, r, t, q, i, now_s)
        joins_line(g, s, i, request)
        assign(n, x, f, g, s, e, i, now_s)
        look(n, x, r, t, q, s, d, i)
    elif kind == ASSIGNED:
        i = g[ENTRY, request]
        d[LINK_FREE, i] = max(d[LINK_FREE, i], now_s + h[HANDOVER_S]) + h[TOKEN_MOVE_S] * g[ASKED_PROMPT, request]
        add_event(f, e, d[LINK_FREE, i], LANDS, request)
    else:
        lands(n, x, r, t, q, f, g, w, s, d, m, e, request, now_s)


@inlined
def next_start(f: IntArray, g: IntArray, w: FloatArray) -> float:
    """When the next request comes that nobody had to return for."""
    if f[USERS_STARTED] < f[USERS_GIVEN] and f[SENT_REQUESTS] < g.shape[1]:
        return float(w[BEGIN, f[USERS_STARTED]])
    return inf


@inlined
def moves(
    n: IntArray,
    x: FloatArray,
    r: IntArray,
    t: FloatArray,
    q: IntArray,
    f: IntArray,
    h: FloatArray,
    g: IntArray,
    w: FloatArray,
    s: IntArray,
    d: FloatArray,
    m: IntArray,
    e: FloatArray,
    until_s: float,
) -> bool:
    """Runs the scheduler that something may leave first, if that is by ``until_s``."""
    i = soonest(d)
    if isinf(d[BOUND, i]) or d[BOUND, i] > until_s:
        return False
    run_until(n, x, r, t, q, i, d[NEXT_STOP, i])
    tell(n, r, t, f, h, w, s, m, e, i)
    if i < f[POOL]:
        assign(n, x, f, g, s, e, i, 0.0)
    look(n, x, r, t, q, s, d, i)
    return True


def _main(code: int) -> FunctionType:
    def run_fleet(
        n: IntArray,
        x: FloatArray,
        r: IntArray,
        t: FloatArray,
        q: IntArray,
        f: IntArray,
        h: FloatArray,
        g: IntArray,
        w: FloatArray,
        s: IntArray,
        d: FloatArray,
        m: IntArray,
        e: FloatArray,
    ) -> None:
        n[0, CODE] = code  # a free variable is part of the key numba caches under
        while f[COMPLETED] < f[WANTED] and f[ROUNDS] < f[MAX_ROUNDS]:
            f[ROUNDS] += 1
            event_s = e[WHEN, 0] if f[COMING_EVENTS] > 0 else inf
            start_s = next_start(f, g, w)
            if f[WATCHED] and moves(n, x, r, t, q, f, h, g, w, s, d, m, e, min(event_s, start_s)):
                continue
            if isinf(min(event_s, start_s)):
                break
            if start_s <= event_s:
                f[USERS_STARTED] += 1
                arrives(n, x, r, t, q, f, g, w, s, d, m, start_s)
            else:
                happens(n, x, r, t, q, f, h, g, w, s, d, m, e)
        for i in range(0 if f[WATCHED] else n.shape[0]):
            run_until(n, x, r, t, q, i, inf)
            s[TOLD, i] = 0
            tell(n, r, t, f, h, w, s, m, e, i)

    return cast("FunctionType", run_fleet)


@cache
def fleet_kernel(*, managed: bool, paced: bool, jit: bool = True) -> Callable[..., None]:
    """Simulates until every wanted request is finished, nothing is left, or MAX_ROUNDS events have been handled."""
    flags = flags_of(managed=managed, paced=paced, joint=True)
    return specialise(_main(fingerprint(flags, whole=True)), flags, jit=jit)
