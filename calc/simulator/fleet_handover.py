"""Prefill handed over: blocks on the decode replica first, then the KV, then the request. Compiled, like the kernel."""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from calc.simulator.fleet_events import add_event
from calc.simulator.fleet_layout import *
from calc.simulator.fleet_watch import look, put_in, run_until
from calc.simulator.kernel import blocks
from calc.simulator.layout import *
from calc.simulator.lines import NOBODY, list_at
from calc.simulator.prefixes import release
from calc.simulator.specialise import compiled, inlined
from calc.workload import FloatArray, IntArray


@inlined
def joins_line(g: IntArray, s: IntArray, i: int, request: int) -> None:
    """Waits at scheduler ``i`` for blocks."""
    g[BEHIND, request] = 0
    if s[IN_LINE, i] == 0:
        s[IN_LINE, i] = request + 1
    else:
        g[BEHIND, s[LAST_IN_LINE, i] - 1] = request + 1
    s[LAST_IN_LINE, i] = request + 1


@inlined
def has_room(n: IntArray, s: IntArray, i: int, needed: int) -> bool:
    """Whether scheduler ``i`` has a slot and blocks beside those its running requests need in the coming step."""
    taken = s[ON_ITS_WAY, i] + n[i, USERS] - n[i, RETURNED]
    growing = n[i, RESIDUES + n[i, STEP] % n[i, BLOCK_TOKENS]]
    reserve = n[i, WATERMARK_BLOCKS] if taken > 0 else 0
    return bool(taken < n[i, MAX_SEQS] and needed <= n[i, FREE] - growing - reserve)


@inlined
def anybody_preempted(n: IntArray, i: int) -> bool:
    """Whether a request that was preempted waits at scheduler ``i``: then it is the first to get blocks."""
    if not MANAGED:
        return bool(n[i, IN_FRONT] > 0)
    for line in range(n[i, CLASSES]):  # noqa: SIM110 - compiled code has no generators
        if n[i, list_at(n[i], line) + FIRST_IN] != NOBODY:
            return True
    return False


@compiled
def assign(
    n: IntArray, x: FloatArray, f: IntArray, g: IntArray, s: IntArray, e: FloatArray, i: int, now_s: float
) -> None:
    """Prefilled requests in line get blocks at a step boundary of scheduler ``i``, first come first served.

    Preempted requests stand before them: vLLM puts those at the head of the queue in which the others wait for blocks.
    """
    while s[IN_LINE, i] > 0 and not anybody_preempted(n, i):
        request = s[IN_LINE, i] - 1
        needed = blocks(g[ASKED_PROMPT, request], n[i, BLOCK_TOKENS]) + n[i, FIXED_BLOCKS]
        if not has_room(n, s, i, needed):
            return
        n[i, FREE] -= needed
        n[i, ALLOCATED] += needed
        s[ON_ITS_WAY, i] += 1
        s[IN_LINE, i] = g[BEHIND, request]
        add_event(f, e, max(x[i, NOW], now_s), ASSIGNED, request)


@inlined
def awake(n: IntArray, x: FloatArray, i: int, now_s: float) -> None:
    """The clock of a scheduler that could do nothing goes on."""
    if n[i, DECODING] == 0 and n[i, PARTIAL] < 0:
        x[i, NOW] = max(x[i, NOW], now_s)
        x[i, BEFORE] = x[i, NOW]


@inlined
def lands(
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
    e: FloatArray,
    request: int,
    now_s: float,
) -> None:
    """KV has arrived: the prefill replica frees its blocks, the decode replica has the request with all but its last
    prompt token computed."""
    w[LANDED, request] = now_s
    i, local = g[ENTRY, request], g[ENTRY_LOCAL, request]
    run_until(n, x, r, t, q, i, now_s)
    n[i, HOLDS] = 0
    release(n[i], r[i], local, blocks(g[ASKED_PROMPT, request], n[i, BLOCK_TOKENS]) + n[i, FIXED_BLOCKS])
    n[i, HOLDS] = 1
    awake(n, x, i, now_s)
    look(n, x, r, t, q, s, d, i)
    i = g[PLACE, request]
    run_until(n, x, r, t, q, i, now_s)
    local = put_in(n, r, t, g, m, i, request, now_s)
    awake(n, x, i, now_s)
    g[LOCAL, request] = local
    r[i, CACHED, local] = g[ASKED_PROMPT, request] - 1
    r[i, FETCH, local] = 0
    r[i, PAID, local] = blocks(g[ASKED_PROMPT, request], n[i, BLOCK_TOKENS]) + n[i, FIXED_BLOCKS]
    s[ON_ITS_WAY, i] -= 1
    assign(n, x, f, g, s, e, i, now_s)
    look(n, x, r, t, q, s, d, i)
