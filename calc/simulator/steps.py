"""One scheduling round after another: preempt, admit, prefill, decode. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isinf
from types import FunctionType
from typing import TypeAlias, cast

from calc.simulator.admission import fill, may_start, next_waiting
from calc.simulator.clients import deadline, finish, give_up, issue, lose_patience, next_arrival
from calc.simulator.fetch import fetch_until, next_fetch
from calc.simulator.heaps import pop
from calc.simulator.kernel import (
    account,
    blocks,
    count_gaps,
    decode_s,
    decode_tokens,
    measuring,
    rise_s,
    steps_until,
    tokens_s,
)
from calc.simulator.layout import *
from calc.simulator.preemption import preempt
from calc.simulator.prefixes import release
from calc.simulator.sequences import block_steps, grow, grow_paced, join, leave, pass_steps
from calc.simulator.specialise import compiled, fingerprint, inlined, specialise
from calc.workload import FloatArray, IntArray


@inlined
def advance(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, steps: int) -> None:
    """Steps go by; sequences that have all their tokens finish."""
    pass_steps(n, r, q, steps)
    if n[DONE_HEAP] > 0 and q[DONE, 0] >> KEY_BITS <= n[STEP]:
        retire(n, x, r, t, q)


@compiled
def retire(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> None:
    """Sequences that have all their tokens finish; keys left by preempted ones are dropped."""
    while n[DONE_HEAP] > 0 and q[DONE, 0] >> KEY_BITS <= n[STEP]:
        request = q[DONE, 0] & REQUEST_MASK
        due = q[DONE, 0] >> KEY_BITS
        n[DONE_HEAP] = pop(q, DONE, n[DONE_HEAP])
        if due == r[DUE, request]:
            if MANAGED and n[STATIC]:
                r[DUE, request] = NEVER
                n[BATCH_LEFT] -= 1
            else:
                leave(n, r, request)
            finish(n, x, r, t, request)
    if MANAGED and n[STATIC] and n[BATCH_LEFT] == 0:
        disband(n)


@compiled
def disband(n: IntArray) -> None:
    """The longest of a static batch is done: all its slots and blocks are free."""
    n[FREE] += n[BATCH_BLOCKS]
    n[BATCH_BLOCKS] = 0
    n[DECODING] = 0
    n[CONTEXT] = 0
    n[PACES] = 0
    n[WINDOW_CONTEXT] = 0
    n[WINDOW_GROWING] = 0
    n[CROSS_HEAP] = 0
    n[DONE_HEAP] = 0


@inlined
def mixed_step(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> None:
    """One step with prefill in it: every decoding sequence still advances."""
    plain_s = decode_s(n, x) if n[DECODING] > 0 else 0.0
    prefills = n[READY] + (n[PARTIAL] >= 0)
    if n[PREFILL_ALONE] and n[DECODING] > 0:
        tokenwise_s = tokens_s(n, x, decode_tokens(n)) + tokens_s(n, x, n[TOKENS])
    else:
        tokenwise_s = tokens_s(n, x, decode_tokens(n) + n[TOKENS])
    step_s = (
        tokenwise_s
        + x[SEQUENCE_S] * (n[DECODING] + prefills)
        + x[PREFILL_S] * n[ADMISSIONS]
        + x[CONTEXT_S] * (n[CONTEXT] / UNIT + n[READS])
        + x[WINDOW_S] * (n[WINDOW_CONTEXT] / UNIT + n[WINDOW_READS])
        + x[PAIR_S] * x[PAIRS]
        + x[WINDOW_PAIR_S] * x[WINDOW_PAIRS]
    )
    if MANAGED:
        step_s += x[MOVED_S]
        x[MOVED_S] = 0.0
    if measuring(n):
        x[PREFILL_BUSY_S] += step_s - plain_s
        n[MIXED_TOKENS] += n[DECODING]
        n[PREFILL_TOKENS] += n[TOKENS]
    account(n, x, step_s, 0.0, 1)
    x[BEFORE] = x[NOW]
    x[NOW] += step_s
    advance(n, x, r, t, q, 1)
    for at in range(n[READY]):
        emit(n, x, r, t, q, q[READIED, at])
    n[READY] = 0
    n[TOKENS] = 0
    if MANAGED and n[STATIC] and n[BATCH_LEFT] == 0:
        disband(n)


@compiled
def emit(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, request: int) -> None:
    """A finished prefill gives one token: the first, or after a preemption the next."""
    if MANAGED and r[GENERATED, request] == 0 and not n[STATIC] and x[NOW] > t[ARRIVAL, request] + x[PATIENCE_S]:
        give_up(n, x, r, t, q, request)
        return
    kv_tokens = r[PROMPT, request] + r[GENERATED, request]
    r[GENERATED, request] += 1
    r[LOST_BLOCKS, request] = 0
    if r[GENERATED, request] == 1:
        t[FIRST, request] = x[NOW]
    elif measuring(n):
        count_gaps(n, x, x[NOW] - t[LOST_AT, request], 0.0, 1, 1)
    if r[GENERATED, request] < r[OUTPUT, request]:
        join(n, r, q, request, kv_tokens)
    elif MANAGED and n[STATIC]:
        join(n, r, q, request, kv_tokens)
        n[BATCH_LEFT] -= 1
        finish(n, x, r, t, request)
    else:
        release(n, r, request, blocks(kv_tokens, n[BLOCK_TOKENS]) + n[FIXED_BLOCKS])
        finish(n, x, r, t, request)


@inlined
def wait_steps(x: FloatArray, until_s: float, first_s: float, rise: float, steps: int) -> int:
    """Steps to the first boundary at or after a time."""
    wait_s = until_s - x[NOW]
    return steps_until(wait_s, first_s, rise, steps) if wait_s > 0.0 else 0


@inlined
def until_arrival(
    n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, first_s: float, rise: float, steps: int
) -> int:
    """Steps after which the next arrival may start."""
    arrival = next_arrival(n, r, t)
    if isinf(arrival):
        return steps
    queued = 1 if n[QUEUED_STEP] else 0
    return min(steps, max(1, wait_steps(x, arrival, first_s, rise, steps) + queued))


@compiled
def until_event(
    n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, first_s: float, rise: float, steps: int
) -> int:
    """Steps after which somebody may start, loses patience, or has fetched. While all slots are taken nobody starts."""
    event_s = min(deadline(n, x, r, t), next_fetch(n, x, r, t, q))
    if n[DECODING] < n[MAX_SEQS] and not n[STATIC]:
        steps = until_arrival(n, x, r, t, first_s, rise, steps)
    else:
        event_s = min(event_s, next_arrival(n, r, t) + x[PATIENCE_S])
    if isinf(event_s):
        return steps
    return min(steps, max(1, wait_steps(x, event_s, first_s, rise, steps)))


@inlined
def until_change(
    n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, first_s: float, rise: float, steps: int
) -> int:
    """Steps after which somebody may start or leave, or the caller wants to look."""
    if MANAGED:
        if steps > 1:
            steps = until_event(n, x, r, t, q, first_s, rise, steps)
    else:
        if not PACED and steps > 1:
            steps = block_steps(n, steps)
        if steps > 1 and next_waiting(n, r, q) < 0:
            steps = until_arrival(n, x, r, t, first_s, rise, steps)
    if steps > 1 and not isinf(x[UNTIL_S]):
        steps = steps_until(x[UNTIL_S] - x[NOW], first_s, rise, steps)
    return steps


@inlined
def take_ahead(n: IntArray, r: IntArray, q: IntArray, steps: int) -> int:
    """Takes the blocks of a leap; returns how many steps they last."""
    if MANAGED and n[STATIC]:
        return steps
    if PACED:
        return grow_paced(n, r, q, steps)
    if MANAGED and steps > 1:
        steps = block_steps(n, steps)
    grow(n, steps - 1)
    return steps


@inlined
def leap(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray, longest: int) -> None:
    """Decodes until something changes: a sequence is due, blocks run out, a window fills or a request arrives."""
    first_s = decode_s(n, x)
    rise = rise_s(n, x)
    if MANAGED:
        first_s += x[MOVED_S]
        x[MOVED_S] = 0.0
    steps = min((q[DONE, 0] >> KEY_BITS) - n[STEP], longest)
    if n[CROSS_HEAP] > 0:
        steps = min(steps, max(1, (q[CROSS, 0] >> KEY_BITS) - n[STEP]))
    steps = until_change(n, x, r, t, q, first_s, rise, steps)
    steps = take_ahead(n, r, q, steps)
    account(n, x, first_s, rise, steps)
    x[BEFORE] = x[NOW] + (steps - 1) * first_s + rise * (steps - 1) * (steps - 2) / 2
    x[NOW] += steps * first_s + rise * steps * (steps - 1) / 2
    advance(n, x, r, t, q, steps)


@inlined
def arrive(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> bool:
    """Lets requests in at a step boundary; an idle engine jumps to the next arrival. False: nothing is left to do."""
    if x[NOW] >= x[UNTIL_S]:
        return False
    if MANAGED:
        return attend(n, x, r, t, q)
    idle = n[DECODING] == 0 and n[PARTIAL] < 0
    until_s = x[BEFORE] if n[QUEUED_STEP] and not idle else x[NOW]
    if next_arrival(n, r, t) <= until_s:
        issue(n, r, t, until_s)
    if idle and next_waiting(n, r, q) < 0:
        arrival = next_arrival(n, r, t)
        if arrival >= x[UNTIL_S]:
            return False
        x[NOW] = arrival
        x[BEFORE] = arrival
        issue(n, r, t, arrival)
    return True


@compiled
def attend(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> bool:
    """The same where fetches end and clients lose patience."""
    while True:
        idle = n[DECODING] == 0 and n[PARTIAL] < 0
        issue(n, r, t, x[BEFORE] if n[QUEUED_STEP] and not idle else x[NOW])
        fetch_until(n, x, r, t, q, x[NOW])
        lose_patience(n, x, r, t, q)
        if n[DECODING] > 0 or n[PARTIAL] >= 0 or may_start(n, r, next_waiting(n, r, q)):
            return True
        event_s = min(next_arrival(n, r, t), next_fetch(n, x, r, t, q), deadline(n, x, r, t))
        if event_s >= x[UNTIL_S] or isinf(event_s):
            return False
        x[NOW] = max(x[NOW], event_s)
        x[BEFORE] = x[NOW]


@compiled
def serve(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> None:
    """Simulates until every measured request has ended, nothing is left, MAX_EVENTS rounds are done, or UNTIL_S."""
    wanted = n[END_MEASURED] - n[FIRST_MEASURED]
    while n[MEASURED] < wanted and n[EVENTS] < n[MAX_EVENTS] and arrive(n, x, r, t, q):
        n[EVENTS] += 1
        preempted = preempt(n, x, r, t, q)
        fill(n, x, r, t, q, not preempted)
        if n[READY] > 0 or n[PARTIAL] >= 0:
            mixed_step(n, x, r, t, q)
        elif n[DECODING] > 0:
            leap(n, x, r, t, q, 1 if preempted else 1 << 40)
        elif not MANAGED and not preempted:
            break  # all blocks wait to be fetched from here


def _main(code: int) -> FunctionType:
    def run(n: IntArray, x: FloatArray, r: IntArray, t: FloatArray, q: IntArray) -> None:
        n[CODE] = code  # a free variable is part of the key numba caches under
        serve(n, x, r, t, q)

    return cast("FunctionType", run)


Run: TypeAlias = Callable[[IntArray, FloatArray, IntArray, FloatArray, IntArray], None]


def flags_of(*, managed: bool, paced: bool, joint: bool) -> dict[str, int]:
    """The constants of a kernel with or without these features."""
    fine = FINE_BITS if paced else 0
    return {"MANAGED": managed, "PACED": paced, "JOINT": joint, "PACE_BITS": fine, "UNIT": 1 << fine}


@cache
def kernel(*, managed: bool, paced: bool, joint: bool = False, jit: bool = True) -> Run:
    """:func:`serve` for one set of features in use, compiled on first call."""
    flags = flags_of(managed=managed, paced=paced, joint=joint)
    return specialise(_main(fingerprint(flags)), flags, jit=jit)
