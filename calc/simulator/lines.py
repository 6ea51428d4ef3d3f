"""Requests waiting in line: one linked list per class, one of fetched requests, one per tier. Compiled.

A class has a rank (lower first) and a quota. Whoever was preempted or fetched goes back to its place by (rank,
attempt): first come, first served, whatever happened since.
"""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from calc.simulator.layout import *
from calc.simulator.specialise import compiled, inlined
from calc.workload import IntArray

NOBODY = -1
NO_KEY = 1 << 62


@inlined
def list_at(n: IntArray, line: int) -> int:
    """Where in ``n`` a list is."""
    return int(n[LISTS] + line * LIST_PLACES)


@inlined
def tier_at(n: IntArray, tier: int) -> int:
    """Where in ``n`` the list of a tier is."""
    return int(n[LISTS] + (n[CLASSES] + 1 + tier) * LIST_PLACES)


@compiled
def insert(n: IntArray, r: IntArray, line: int, request: int, behind: int) -> None:
    """Puts a request into a list behind another; NOBODY = first."""
    at = n[LISTS] + line * LIST_PLACES
    before = n[at + FIRST_IN] if behind == NOBODY else r[NEXT, behind]
    r[PREV, request] = behind
    r[NEXT, request] = before
    if behind == NOBODY:
        n[at + FIRST_IN] = request
    else:
        r[NEXT, behind] = request
    if before == NOBODY:
        n[at + LAST_IN] = request
    else:
        r[PREV, before] = request


@compiled
def unlink(n: IntArray, r: IntArray, line: int, request: int) -> None:
    """Takes a request out of its list."""
    at = n[LISTS] + line * LIST_PLACES
    before = r[PREV, request]
    behind = r[NEXT, request]
    if before == NOBODY:
        n[at + FIRST_IN] = behind
    else:
        r[NEXT, before] = behind
    if behind == NOBODY:
        n[at + LAST_IN] = before
    else:
        r[PREV, behind] = before


@inlined
def append(n: IntArray, r: IntArray, line: int, request: int) -> None:
    """Puts a request at the end of a list."""
    insert(n, r, line, request, n[list_at(n, line) + LAST_IN])


@compiled
def insert_near_first(n: IntArray, r: IntArray, line: int, request: int) -> None:
    """Puts a request into its place by ORDER, looking from the front."""
    behind = NOBODY
    following = n[n[LISTS] + line * LIST_PLACES + FIRST_IN]
    while following != NOBODY and r[ORDER, following] < r[ORDER, request]:
        behind = following
        following = r[NEXT, following]
    insert(n, r, line, request, behind)


@compiled
def insert_near_last(n: IntArray, r: IntArray, line: int, request: int) -> None:
    """Puts a request into its place by ORDER, looking from the end."""
    behind = n[n[LISTS] + line * LIST_PLACES + LAST_IN]
    while behind != NOBODY and r[ORDER, behind] > r[ORDER, request]:
        behind = r[PREV, behind]
    insert(n, r, line, request, behind)


@compiled
def first_in_line(n: IntArray, r: IntArray) -> int:
    """Who starts next: what has been fetched, else the first by (rank, attempt) of classes within their quota."""
    fetched = n[n[LISTS] + n[CLASSES] * LIST_PLACES + FIRST_IN]
    if fetched != NOBODY:
        return int(fetched)
    found = NOBODY
    least = NO_KEY
    for line in range(n[CLASSES]):
        at = n[LISTS] + line * LIST_PLACES
        first = n[at + FIRST_IN]
        if first != NOBODY and n[at + TAKEN] < n[at + MOST] and r[ORDER, first] < least:
            found = first
            least = r[ORDER, first]
    return int(found)


@inlined
def occupy(n: IntArray, r: IntArray, request: int, change: int) -> None:
    """A request takes (1) or gives back (-1) a place of its class's quota."""
    n[list_at(n, r[CLASS, request]) + TAKEN] += change
