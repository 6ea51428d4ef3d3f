"""Where the compiled simulator keeps its numbers: five flat arrays and the names of their places.

Numba counts references on every array it passes around, so few arrays are fast ones.
``n`` whole numbers, ``x`` seconds, ``r[…, request]`` whole numbers and ``t[…, request]`` times of each request,
``q[…]`` the working queues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from calc.workload import FloatArray

FAST: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
"""Nothing is allocated inside, so counting references is left out (half the time); no denominator can be 0."""

Function = TypeVar("Function", bound=Callable[..., object])


def inlined(function: Function) -> Function:
    """Compiles a small function of the hot path into its callers."""
    return cast("Function", njit(inline="always", **FAST)(function))


def compiled(function: Function) -> Function:
    """Compiles a longer or rarer function. Only :func:`calc.simulator.steps.run`, holding all, is cached on disk."""
    return cast("Function", njit(**FAST)(function))


def cached(function: Function) -> Function:
    """Compiles once for all processes; other threads run meanwhile."""
    return cast("Function", njit(cache=True, nogil=True, **FAST)(function))


(
    NOW,
    BEFORE,
    BUSY_S,
    PREFILL_BUSY_S,
    USED_BLOCK_S,
    GAP_S,
    PAIRS,
    WINDOW_PAIRS,
    THINK_S,
    SEQUENCE_S,
    PREFILL_S,
    CONTEXT_S,
    WINDOW_S,
    PAIR_S,
    WINDOW_PAIR_S,
    BEYOND_S,
    UNTIL_S,
    TOKEN_COST,
) = range(18)
"""``x``: clock (BEFORE = start of the last step), sums, then costs; from TOKEN_COST on the table of token costs.
UNTIL_S = a run stops at the first step boundary at or after it; requests may be put in between two runs."""

(
    STEP,
    DECODING,
    CONTEXT,
    WINDOW_CONTEXT,
    WINDOW_GROWING,
    FREE,
    ALLOCATED,
    MOST_USED,
    PARTIAL,
    PARTIAL_DONE,
    PARTIAL_LENGTH,
    ISSUED,
    STARTED,
    RETURNED,
    HEAD,
    IN_FRONT,
    READY,
    STACKED,
    DONE_HEAP,
    CROSS_HEAP,
    MEASURED,
    EVENTS,
    PREEMPTIONS,
    DECODE_TOKENS,
    MIXED_TOKENS,
    PREFILL_TOKENS,
    TOKENS,
    READS,
    WINDOW_READS,
    ADMISSIONS,
    FIRST_MEASURED,
    END_MEASURED,
    MAX_TOKENS,
    MAX_SEQS,
    TOTAL_BLOCKS,
    WATERMARK_BLOCKS,
    BLOCK_TOKENS,
    FIXED_BLOCKS,
    WINDOW_TOKENS,
    MAX_EVENTS,
    CHUNKED,
    PREFIX_CACHING,
    QUEUED_STEP,
    CLOSED,
    USERS,
    LAST_COST,
    GAPS,
    CODE,
    PREFILL_ALONE,
    RESERVES_OUTPUT,
    PROMISED,
    RESIDUES,
) = range(52)
"""``n``: state, sums, rules; from RESIDUES on a count per residue, from the place GAPS names on the gap histogram.
CODE is the fingerprint of the compiled source."""

PROMPT, OUTPUT, CACHED, GENERATED, BASE, STACK_AT, LOST_TOKENS, LOST_BLOCKS, LOST_OLDER, DONE_ORDER = range(10)
"""``r``: given lengths; BASE = KV tokens minus step counter while decoding; LOST_… = what a preemption left cached;
DONE_ORDER[k] = the k-th request to finish, where somebody is to return."""
OPEN, OWN_USERS, SENT_BACK = range(3)
"""``n[CLOSED]``: nobody returns; users of a closed loop return by themselves; or the caller sends them on."""

START, BACK, ARRIVAL, ADMITTED, FIRST, FINISH, LOST_AT = range(7)
"""``t``: START of open arrivals or of a closed loop's users, BACK = when a user returns; LOST_AT = last token before a
preemption."""

FRONT, READIED, STACK, DONE, CROSS = range(5)
"""``q``: preempted ones waiting, prefills that end in this step, order of admission, heaps of completions and of
windows filled."""

NOT_DECODING = -(2**62)
KEY_BITS = 26
"""Heap keys are (step << KEY_BITS) | request."""
REQUEST_MASK = (1 << KEY_BITS) - 1
BINS_PER_OCTAVE = 256
"""Of the gap histogram: equal bins between powers of two, so percentiles are exact to 0.4 %."""
LOWEST_OCTAVE = -20
"""The first bins hold gaps of 2⁻²¹ to 2⁻²⁰ s (half to one µs) and below."""
GAP_BINS = 36 * BINS_PER_OCTAVE
"""Up to 2¹⁵ s, nine hours."""
SPARE = 64
"""Extra room of the working queues."""


def queue_size(max_seqs: int, requests: int) -> int:
    """Room for all running requests and as many keys gone stale."""
    return 2 * min(max_seqs, requests) + SPARE


def gap_edges(bins: FloatArray) -> FloatArray:
    """Seconds at (fractional) histogram bins."""
    octave, inside = np.divmod(bins, BINS_PER_OCTAVE)
    edges: FloatArray = np.ldexp((1 + inside / BINS_PER_OCTAVE) / 2, octave.astype(np.int64) + LOWEST_OCTAVE)
    return edges
