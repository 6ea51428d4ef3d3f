"""Requests arrive, lose patience, are answered and come back. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from math import inf, isinf, isnan, nan

from calc.simulator.fetch import drop_fetch
from calc.simulator.kernel import blocks, promise
from calc.simulator.layout import *
from calc.simulator.lines import append, insert_near_last, occupy, unlink
from calc.simulator.prefixes import release
from calc.simulator.specialise import compiled, inlined
from calc.workload import FloatArray, IntArray


@inlined
def next_issue(n: IntArray, r: IntArray, t: FloatArray) -> float:
    """When the next new request arrives; infinite when none does."""
    if n[ISSUED] >= r.shape[1]:
        return inf
    soonest = inf
    if n[STARTED] < n[USERS]:
        soonest = t[START, n[STARTED]]
    taken = n[ISSUED] - n[STARTED]
    if n[CLOSED] == OWN_USERS and taken < n[RETURNED] and t[BACK, taken] < soonest:
        soonest = t[BACK, taken]
    return soonest


@inlined
def next_retry(n: IntArray, r: IntArray, t: FloatArray) -> float:
    """When the next client tries again; infinite when none does."""
    if n[RETAKEN] == n[RETRIED]:
        return inf
    return float(t[RETRY_AT, n[RETAKEN] % r.shape[1]])


@inlined
def next_arrival(n: IntArray, r: IntArray, t: FloatArray) -> float:
    """When somebody next asks."""
    soonest = next_issue(n, r, t)
    if MANAGED:
        soonest = min(soonest, next_retry(n, r, t))
    return soonest


@inlined
def ring_row(attempt: int, requests: int) -> int:
    """Row of ``r`` that notes an attempt: the ring is two rows long."""
    return int(ATTEMPTS + attempt // requests % 2)


@inlined
def oldest_key(n: IntArray, r: IntArray) -> int:
    """ORDER of the first attempt that may still give up."""
    return int(r[ring_row(n[OLDEST], r.shape[1]), n[OLDEST] % r.shape[1]])


@compiled
def line_up(n: IntArray, r: IntArray, t: FloatArray, request: int, at_s: float) -> None:
    """An attempt joins the line of its class."""
    rank = n[n[LISTS] + r[CLASS, request] * LIST_PLACES + RANK]
    t[ARRIVAL, request] = at_s
    r[ORDER, request] = (((rank << ORDER_BITS) | n[ORDERS]) << KEY_BITS) | request
    r[ring_row(n[ORDERS], r.shape[1]), n[ORDERS] % r.shape[1]] = r[ORDER, request]
    n[ORDERS] += 1
    if JOINT and r[PAID, request] > 0:
        r[STATE, request] = FETCHED
        r[FOUND, request] = r[CACHED, request]
        occupy(n, r, request, 1)
        insert_near_last(n, r, n[CLASSES], request)
    else:
        r[STATE, request] = WAITING
        append(n, r, r[CLASS, request], request)


@compiled
def issue(n: IntArray, r: IntArray, t: FloatArray, until_s: float) -> None:
    """Requests that arrived by ``until_s`` join the queue in order of arrival."""
    soonest = next_arrival(n, r, t)
    while soonest <= until_s:
        if MANAGED and next_issue(n, r, t) > soonest:
            request = r[RETRY, n[RETAKEN] % r.shape[1]]
            n[RETAKEN] += 1
            line_up(n, r, t, request, soonest)
        else:
            if MANAGED:
                t[FIRST_ARRIVAL, n[ISSUED]] = soonest
                line_up(n, r, t, n[ISSUED], soonest)
            else:
                t[ARRIVAL, n[ISSUED]] = soonest
            if n[STARTED] < n[USERS] and t[START, n[STARTED]] == soonest:
                n[STARTED] += 1
            n[ISSUED] += 1
        soonest = next_arrival(n, r, t)


@inlined
def dismiss(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, request: int) -> None:
    """A request is done with; in a closed loop its user comes back after ``think_s``."""
    if n[FIRST_MEASURED] <= request < n[END_MEASURED]:
        n[MEASURED] += 1
    if n[CLOSED] != OPEN:
        t[BACK, n[RETURNED]] = x[NOW] + x[THINK_S]
        r[DONE_ORDER, n[RETURNED]] = request
        n[RETURNED] += 1


@inlined
def finish(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, request: int) -> None:
    """A request has all its tokens."""
    t[FINISH, request] = x[NOW]
    r[STACK_AT, request] = NEVER
    promise(n, r, request, -1)
    if MANAGED:
        r[STATE, request] = GONE
        occupy(n, r, request, -1)
    dismiss(n, x, r, t, request)


@compiled
def give_up(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int) -> None:
    """A client without a first token goes away: what its request held is free. It may try again later."""
    state = r[STATE, request]
    if state == WAITING:
        unlink(n, r, r[CLASS, request], request)
        if isnan(t[ADMITTED, request]) and r[ATTEMPT, request] == 0:
            n[HEAD] += 1
    else:
        release(n, r, request, blocks(r[PROMPT, request], n[BLOCK_TOKENS]) + n[FIXED_BLOCKS])
        occupy(n, r, request, -1)
        promise(n, r, request, -1)
    if state == FETCHED:
        unlink(n, r, n[CLASSES], request)
    elif state == RUNNING:
        r[STACK_AT, request] = NEVER
        if request == n[PARTIAL]:
            n[PARTIAL] = -1
    elif state != WAITING:
        drop_fetch(n, x, r, t, q, request)
    r[STATE, request] = GONE
    r[LOST_BLOCKS, request] = 0
    r[GENERATED, request] = 0
    t[FETCH_WAIT, request] = 0.0
    if r[ATTEMPT, request] < n[RETRIES]:
        r[ATTEMPT, request] += 1
        t[ADMITTED, request] = nan
        r[RETRY, n[RETRIED] % r.shape[1]] = request
        t[RETRY_AT, n[RETRIED] % r.shape[1]] = x[NOW] + x[RETRY_AFTER_S]
        n[RETRIED] += 1
    else:
        t[GAVE_UP, request] = x[NOW]
        dismiss(n, x, r, t, request)


@inlined
def deadline(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray) -> float:
    """When the next client loses patience; infinite when nobody waits for a first token, or all are patient.

    Patience is equal for all, so attempts lose it in the order they were made.
    """
    if isinf(x[PATIENCE_S]):
        return inf
    while n[OLDEST] < n[ORDERS]:
        key = oldest_key(n, r)
        request = key & REQUEST_MASK
        if r[ORDER, request] == key and r[STATE, request] != GONE and r[GENERATED, request] == 0:
            return float(t[ARRIVAL, request] + x[PATIENCE_S])
        n[OLDEST] += 1
    return inf


@compiled
def lose_patience(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> None:
    """Clients whose patience has ended by now go away."""
    while deadline(n, x, r, t) <= x[NOW]:
        give_up(n, x, r, t, q, oldest_key(n, r) & REQUEST_MASK)
