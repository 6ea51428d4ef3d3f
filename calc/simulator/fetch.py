"""Cached KV comes back from tiers outside the GPU while other requests run. Compiled, like the kernel.

At most ``concurrency`` fetches of a tier are under way, first come first served: each waits the tier's latency, then
shares its bandwidth equally with the others past theirs. Between two events every transfer moves equally many tokens,
so a transfer ends when that count (MOVED) has grown by its size: rates change, the order of endings does not.
"""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from math import inf

from calc.simulator.layout import *
from calc.simulator.lines import NOBODY, append, insert_near_last, tier_at, unlink
from calc.simulator.specialise import compiled, inlined
from calc.workload import FloatArray, IntArray


@inlined
def rates_at(tier: int) -> int:
    """Where in ``x`` the numbers of a tier are."""
    return TIER + tier * TIER_PLACES


@inlined
def move(n: IntArray, x: FloatArray, tier: int, until_s: float) -> None:
    """Brings what has been transferred up to date."""
    at = rates_at(tier)
    moving = n[tier_at(n, tier) + RANK]
    if moving > 0:
        x[at + MOVED] += (until_s - x[at + CLOCK]) / (x[at + FETCH_S] * moving)
    x[at + CLOCK] = until_s


@inlined
def event_s(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, tier: int, request: int) -> float:
    """When the latency or the transfer of a running fetch ends, if no other starts or ends before."""
    if r[STATE, request] == LATENT:
        return float(t[FETCH_AT, request])
    at = rates_at(tier)
    left = t[FETCH_AT, request] - x[at + MOVED]
    return float(x[at + CLOCK] + left * (x[at + FETCH_S] * n[tier_at(n, tier) + RANK]))


@compiled
def soonest_of(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, tier: int) -> int:
    """Place in the tier's running fetches of the one whose event comes first; NOBODY if none runs."""
    found = NOBODY
    least = inf
    for at in range(n[tier_at(n, tier) + TAKEN]):
        when = event_s(n, x, r, t, tier, q[ACTIVE + tier, at])
        if when < least:
            found = at
            least = when
    return int(found)


@compiled
def next_fetch(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> float:
    """When the next event of any fetch is; infinite without one."""
    least = inf
    for tier in range(n[TIERS]):
        at = soonest_of(n, x, r, t, q, tier)
        if at != NOBODY:
            least = min(least, event_s(n, x, r, t, tier, q[ACTIVE + tier, at]))
    return float(least)


@compiled
def admit_fetch(
    n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int, now_s: float
) -> None:
    """A fetch gets under way: its latency runs."""
    tier = r[FETCH_TIER, request]
    at = tier_at(n, tier)
    q[ACTIVE + tier, n[at + TAKEN]] = request
    n[at + TAKEN] += 1
    r[STATE, request] = LATENT
    t[FETCH_AT, request] = now_s + x[rates_at(tier) + LATENCY_S]


@compiled
def begin_fetch(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int, tokens: int) -> None:
    """A request that holds its blocks asks for ``tokens`` of a tier."""
    tier = r[FETCH_TIER, request]
    at = tier_at(n, tier)
    r[FETCHING, request] = tokens
    t[FETCH_BEGUN, request] = x[NOW]
    if n[at + TAKEN] < n[at + MOST]:
        admit_fetch(n, x, r, t, q, request, x[NOW])
    else:
        r[STATE, request] = PENDING
        append(n, r, n[CLASSES] + 1 + tier, request)


@compiled
def end_fetch(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, place: int, now_s: float) -> None:
    """A running fetch gives its place (row << KEY_BITS | column) to the next; the caller says what becomes of it."""
    tier = place >> KEY_BITS
    within = place & REQUEST_MASK
    at = tier_at(n, tier)
    if r[STATE, q[ACTIVE + tier, within]] == MOVING:
        n[at + RANK] -= 1
    n[at + TAKEN] -= 1
    q[ACTIVE + tier, within] = q[ACTIVE + tier, n[at + TAKEN]]
    following = n[at + FIRST_IN]
    if following != NOBODY:
        unlink(n, r, n[CLASSES] + 1 + tier, following)
        admit_fetch(n, x, r, t, q, following, now_s)


@compiled
def fetch_until(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, until_s: float) -> None:
    """Events of all fetches up to now, in their order; fetched requests line up to start."""
    for tier in range(n[TIERS]):
        at = soonest_of(n, x, r, t, q, tier)
        while at != NOBODY:
            request = q[ACTIVE + tier, at]
            when = event_s(n, x, r, t, tier, request)
            if when > until_s:
                break
            move(n, x, tier, when)
            if r[STATE, request] == LATENT:
                r[STATE, request] = MOVING
                n[tier_at(n, tier) + RANK] += 1
                t[FETCH_AT, request] = x[rates_at(tier) + MOVED] + r[FETCHING, request]
            else:
                end_fetch(n, x, r, t, q, (tier << KEY_BITS) | at, when)
                if r[GENERATED, request] == 0:
                    t[FETCH_WAIT, request] += when - t[FETCH_BEGUN, request]
                r[STATE, request] = FETCHED
                insert_near_last(n, r, n[CLASSES], request)
            at = soonest_of(n, x, r, t, q, tier)


@compiled
def drop_fetch(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int) -> None:
    """A fetch nobody waits for any more ends unfinished."""
    tier = r[FETCH_TIER, request]
    if r[STATE, request] == PENDING:
        unlink(n, r, n[CLASSES] + 1 + tier, request)
        return
    move(n, x, tier, x[NOW])
    at = 0
    while q[ACTIVE + tier, at] != request:
        at += 1
    end_fetch(n, x, r, t, q, (tier << KEY_BITS) | at, x[NOW])
