"""What is to happen to several replicas: a heap of events in order of time. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from calc.simulator.fleet_layout import *
from calc.simulator.layout import *
from calc.simulator.specialise import compiled, inlined
from calc.workload import FloatArray, IntArray


@compiled
def add_event(f: IntArray, e: FloatArray, time_s: float, kind: int, request: int) -> None:
    """Into the heap of coming events."""
    f[EVENTS_EVER] += 1
    at = f[COMING_EVENTS]
    f[COMING_EVENTS] += 1
    while at > 0 and e[WHEN, (at - 1) >> 1] > time_s:
        copy_event(e, (at - 1) >> 1, at)
        at = (at - 1) >> 1
    e[WHEN, at] = time_s
    e[WHAT, at] = kind + KINDS * request
    e[TIE, at] = f[EVENTS_EVER]


@compiled
def drop_event(f: IntArray, e: FloatArray) -> None:
    """Off the heap of coming events."""
    f[COMING_EVENTS] -= 1
    last = f[COMING_EVENTS]
    at, child = 0, 1
    while child < last:
        if child + 1 < last and sooner(e, child + 1, e[WHEN, child], e[TIE, child]):
            child += 1
        if not sooner(e, child, e[WHEN, last], e[TIE, last]):
            break
        copy_event(e, child, at)
        at, child = child, 2 * child + 1
    copy_event(e, last, at)


@inlined
def sooner(e: FloatArray, one: int, time_s: float, tie: float) -> bool:
    """Whether an event comes before another."""
    return bool(e[WHEN, one] < time_s or (e[WHEN, one] == time_s and e[TIE, one] < tie))


@inlined
def copy_event(e: FloatArray, source: int, target: int) -> None:
    """Within the heap."""
    e[WHEN, target] = e[WHEN, source]
    e[WHAT, target] = e[WHAT, source]
    e[TIE, target] = e[TIE, source]
