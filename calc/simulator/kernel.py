"""The scheduler of one replica, compiled: continuous batching that leaps over decode steps in which nothing changes.

Between two events (arrival, admission, end of a prefill, completion, blocks running out) every step decodes the same
sequences, so ``k`` steps take ``A·k + D·k(k-1)/2`` seconds with ``A`` the next step and ``D`` what the growth of all
contexts adds to each. A global step counter keys everything: a sequence that joins at step S with r steps to go leaves
at boundary S + r (a heap), and takes a new block whenever S equals its residue modulo the block size (a count per
residue; paced sequences: :mod:`calc.simulator.paced`). Rules and their sources are described in
:mod:`calc.simulator.simulate`.
"""

# ruff: noqa: F403, F405 - the names of places are one vocabulary
from __future__ import annotations

from math import frexp, ldexp, sqrt

from calc.simulator.layout import *
from calc.simulator.specialise import compiled, inlined
from calc.workload import FloatArray, IntArray


@inlined
def blocks(tokens: int, block_tokens: int) -> int:
    """Blocks that hold so many tokens."""
    return (tokens + block_tokens - 1) // block_tokens


@inlined
def whole_blocks(n: IntArray, r: IntArray, request: int) -> int:
    """Blocks a request holds when its last token is made."""
    return int(blocks(r[PROMPT, request] + r[OUTPUT, request] - 1, n[BLOCK_TOKENS]) + n[FIXED_BLOCKS])


@inlined
def promise(n: IntArray, r: IntArray, request: int, sign: int) -> None:
    """Notes (1) or gives back (-1) all blocks a started request will take, where the engine reserves them."""
    if n[RESERVES_OUTPUT]:
        n[PROMISED] += sign * whole_blocks(n, r, request)


@inlined
def tokens_s(n: IntArray, x: FloatArray, tokens: int) -> float:
    """Seconds of the token-wise kernels of one step."""
    last = n[LAST_COST]
    if tokens <= last:
        return float(x[TOKEN_COST + tokens])
    return float(x[TOKEN_COST + last] + (tokens - last) * x[BEYOND_S])


@inlined
def decode_tokens(n: IntArray) -> int:
    """Tokens that decoding sequences put into a step: one each, or as many as are verified."""
    return int(n[DECODING] * n[VERIFIED] if PACED else n[DECODING])


@inlined
def growth(n: IntArray) -> int:
    """What a step adds to all contexts together, in units of CONTEXT."""
    return int(n[PACES] if PACED else n[DECODING])


@inlined
def decode_s(n: IntArray, x: FloatArray) -> float:
    """Seconds of the next step if it only decodes."""
    return float(
        tokens_s(n, x, decode_tokens(n))
        + x[SEQUENCE_S] * n[DECODING]
        + x[CONTEXT_S] * (n[CONTEXT] / UNIT)
        + x[WINDOW_S] * (n[WINDOW_CONTEXT] / UNIT)
    )


@inlined
def rise_s(n: IntArray, x: FloatArray) -> float:
    """By how much the step after the next one is longer."""
    return float(x[CONTEXT_S] * (growth(n) / UNIT) + x[WINDOW_S] * (n[WINDOW_GROWING] / UNIT))


@inlined
def measuring(n: IntArray) -> bool:
    """Whether the clock stands between the first start of a measured request and the last."""
    return bool(n[FIRST_MEASURED] < n[HEAD] <= n[END_MEASURED])


@inlined
def gap_bin(gap_s: float) -> int:
    """Histogram bin of a gap, read off its floating-point form."""
    mantissa, exponent = frexp(gap_s)
    octave = (exponent - LOWEST_OCTAVE) * BINS_PER_OCTAVE
    return min(max(octave + int((2 * mantissa - 1) * BINS_PER_OCTAVE), 0), GAP_BINS - 1)


@inlined
def bin_start_s(found: int) -> float:
    """Shortest gap of a histogram bin."""
    return ldexp((1 + (found % BINS_PER_OCTAVE) / BINS_PER_OCTAVE) / 2, found // BINS_PER_OCTAVE + LOWEST_OCTAVE)


@compiled
def spread_gaps(n: IntArray, first_s: float, rise_s: float, steps: int, sequences: int) -> None:
    """The same over several bins."""
    low = gap_bin(first_s)
    high = gap_bin(first_s + rise_s * (steps - 1))
    done = 0
    while low < high:
        below = min(max(int((bin_start_s(low + 1) - first_s) / rise_s) + 1, done), steps)
        n[n[GAPS] + low] += (below - done) * sequences
        done = below
        low += 1
    n[n[GAPS] + high] += (steps - done) * sequences


@inlined
def count_gaps(n: IntArray, x: FloatArray, first_s: float, rise_s: float, steps: int, sequences: int) -> None:
    """Gaps of ``steps`` decode steps, the next ``rise_s`` longer than the last, into the histogram."""
    n[DECODE_TOKENS] += steps * sequences
    x[GAP_S] += sequences * (steps * first_s + rise_s * steps * (steps - 1) / 2)
    low = gap_bin(first_s)
    if first_s + rise_s * (steps - 1) < bin_start_s(low + 1):
        n[n[GAPS] + low] += steps * sequences
    else:
        spread_gaps(n, first_s, rise_s, steps, sequences)


@inlined
def account(n: IntArray, x: FloatArray, first_s: float, rise_s: float, steps: int) -> None:
    """Statistics of ``steps`` steps that start now; the caller moves the clock. Padding gives nobody a token."""
    if not measuring(n):
        return
    took_s = first_s * steps + rise_s * steps * (steps - 1) / 2
    used = n[TOTAL_BLOCKS] - n[FREE]
    x[BUSY_S] += took_s
    x[USED_BLOCK_S] += took_s * used
    n[MOST_USED] = max(n[MOST_USED], used)
    live = n[DECODING]
    if MANAGED and n[STATIC] and live > 0:
        live = n[BATCH_LEFT]
    if live > 0:
        count_gaps(n, x, first_s, rise_s, steps, live)


@compiled
def steps_until(wait_s: float, first_s: float, rise_s: float, limit: int) -> int:
    """Fewest steps (at least 1, at most ``limit``) that take ``wait_s``: root of the sum of a rising series."""
    if rise_s > 0.0:
        half = first_s - rise_s / 2
        root = (sqrt(half * half + 2 * rise_s * max(wait_s, 0.0)) - half) / rise_s
    else:
        root = wait_s / first_s if first_s > 0.0 else limit
    steps = int(min(max(root, 1.0), limit))
    while steps < limit and steps * first_s + rise_s * steps * (steps - 1) / 2 < wait_s:
        steps += 1
    while steps > 1 and (steps - 1) * first_s + rise_s * (steps - 1) * (steps - 2) / 2 >= wait_s:
        steps -= 1
    return steps
