"""Where the compiled simulator keeps its numbers: five flat arrays and the names of their places.

Numba counts references on every array it passes around, so few arrays are fast ones.
``n`` whole numbers, ``x`` seconds, ``r[…, request]`` whole numbers and ``t[…, request]`` times of each request,
``q[…]`` the working queues.
"""

from __future__ import annotations

import numpy as np

from calc.serving import MAX_TIERS
from calc.workload import FloatArray

MANAGED: bool = False
"""Flag: requests are told apart (classes, impatient clients, tiers), swapped, or batched statically."""
PACED: bool = False
"""Flag: a step gives a sequence more than one token on average (speculative decoding)."""
JOINT: bool = False
"""Flag: prefixes are shared by group, or several schedulers share a load."""
PACE_BITS: int = 0
UNIT: int = 1
"""Contexts are counted in units of 1/UNIT = 2^-PACE_BITS tokens; a kernel with PACED has more of them."""
FINE_BITS = 16
"""Of a paced kernel."""

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
    PATIENCE_S,
    RETRY_AFTER_S,
    SWAP_S,
    MOVED_S,
    TIER,
) = range(22)
"""``x``: clock (BEFORE = start of the last step), sums, then costs. UNTIL_S = a run stops at the first step boundary at
or after it; requests may be put in between two runs. SWAP_S = per block moved, MOVED_S = what the coming step moves."""
LATENCY_S, FETCH_S, MOVED, CLOCK = range(4)
"""Of each tier, from TIER on: wait before the first token, seconds per token alone, tokens that each running transfer
has moved so far, and when that was."""
TIER_PLACES = 4
TOKEN_COST = TIER + MAX_TIERS * TIER_PLACES
"""From here on the table of token costs."""

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
    GROW_HEAP,
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
    PACES,
    ORDERS,
    OLDEST,
    RETRIED,
    RETAKEN,
    BATCH_LEFT,
    BATCH_BLOCKS,
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
    PREFILL_ALONE,
    RESERVES_OUTPUT,
    PROMISED,
    CLOSED,
    USERS,
    VERIFIED,
    RETRIES,
    SWAPS,
    STATIC,
    RESERVED,
    CLASSES,
    TIERS,
    LISTS,
    LAST_COST,
    GAPS,
    CODE,
    GROUPS,
    GROUP_TABLE,
    REMOVED,
    SKIPPED,
    NODES,
    NODES_SEEN,
    HOLDS,
    HIT_TOKENS,
    ASKED_TOKENS,
    RESIDUES,
) = range(77)
"""``n``: state, sums, rules; from RESIDUES on a count per residue, from the place LISTS names on the lists, from the
place GAPS names on the gap histogram. ORDERS = attempts so far, OLDEST = the first of them that may still give up;
RETRIED and RETAKEN = clients that will come back and that did; CODE is the fingerprint of the compiled source.
GROUPS to NODES_SEEN: :mod:`calc.simulator.prefixes`, whose records begin at the place GROUP_TABLE names; HOLDS:
finished requests keep their blocks; HIT_TOKENS of ASKED_TOKENS prompt tokens were found cached."""
HOLDERS, GROUP_HELD, LAST_NODE, COMING = range(4)
GROUP_RECORD = 4
"""Of a group: running requests that hold its prefix, its blocks, (from 1) where the free queue keeps it, and requests
sent here but not yet admitted."""

FIRST_IN, LAST_IN, TAKEN, MOST, RANK = range(5)
"""Of each list, from LISTS on: its ends, how many of its kind run, how many may, and (class) priority or (tier)
transfers past their latency. First a list per class, then one of fetched requests, then one per tier."""
LIST_PLACES = 5

(
    PROMPT,
    OUTPUT,
    CACHED,
    GENERATED,
    BASE,
    DUE,
    CROSS_AT,
    STACK_AT,
    LOST_TOKENS,
    LOST_BLOCKS,
    LOST_OLDER,
    DONE_ORDER,
    PACE,
    OWN_BLOCKS,
    GROW_AT,
    CLASS,
    ORDER,
    STATE,
    NEXT,
    PREV,
    ATTEMPT,
    FETCH,
    FETCH_TIER,
    FETCHING,
    FOUND,
    ATTEMPTS,
    MORE_ATTEMPTS,
    RETRY,
    GROUP,
    SHARED,
    PAID,
    NODE_GROUP,
    NODE_END,
    NODE_SIZE,
) = range(34)
"""``r``: given lengths; BASE = KV tokens less PACE per step while decoding, DUE and CROSS_AT = steps at which it ends
and fills its window; LOST_… = what a preemption left cached; DONE_ORDER[k] = the k-th request to finish, where somebody
is to return. OWN_BLOCKS blocks and GROW_AT of a paced sequence. ORDER = (priority, attempt, request), NEXT and PREV its
neighbours in a list, FETCH = tokens in a tier, FOUND = tokens there once fetched; rings of ATTEMPTS (two rows:
between two looks each request may add one) and of RETRY.
GROUP and SHARED = blocks of its prefix; PAID = blocks taken before admission; NODE_… = the queue of cached prefixes."""
PLAIN_ROWS = PACE
"""Rows of a plain kernel."""
JOINT_ROWS = NODE_SIZE + 1

GONE, WAITING, PENDING, LATENT, MOVING, FETCHED, RUNNING = range(7)
"""``r[STATE]``: PENDING, LATENT and MOVING are the stages of a fetch."""
OPEN, OWN_USERS, SENT_BACK = range(3)
"""``n[CLOSED]``: nobody returns; users of a closed loop return by themselves; or the caller sends them on."""

(
    START,
    BACK,
    ARRIVAL,
    ADMITTED,
    FIRST,
    FINISH,
    LOST_AT,
    GAVE_UP,
    FIRST_ARRIVAL,
    FETCH_AT,
    FETCH_BEGUN,
    FETCH_WAIT,
    RETRY_AT,
) = range(13)
"""``t``: START of open arrivals or of a closed loop's users, BACK = when a user returns; LOST_AT = last token before a
preemption. FETCH_AT = when a latency ends, or the tokens after which a transfer does; FETCH_WAIT = seconds of fetching;
a ring of RETRY_AT."""
PLAIN_TIMES = GAVE_UP
ALL_TIMES = RETRY_AT + 1

FRONT, READIED, STACK, DONE, CROSS, GROW, ACTIVE = range(7)
"""``q``: preempted ones waiting, prefills that end in this step, order of admission, heaps of completions, of windows
filled and of blocks wanted; from ACTIVE on the running fetches of each tier."""
PLAIN_QUEUES = GROW
ALL_QUEUES = ACTIVE + MAX_TIERS

NOT_DECODING = -(2**62)
NEVER = -1
SHORT = -2
"""``r[GROW_AT]`` of a sequence that lacks blocks now."""
KEY_BITS = 26
"""Heap keys are (step << KEY_BITS) | request."""
REQUEST_MASK = (1 << KEY_BITS) - 1
ORDER_BITS = 28
"""Order keys are (rank << ORDER_BITS | attempt) << KEY_BITS | request."""
MAX_RANKS = 1 << (62 - ORDER_BITS - KEY_BITS)
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
