"""Where the compiled simulator of several replicas keeps its numbers, beside those of each replica.

``n x r t q`` are those of :mod:`calc.simulator.layout` with a first index for the scheduler: those that answer come
first, those that only prefill after them. ``f`` whole numbers and ``h`` seconds of the fleet, ``g[…, request]`` whole
numbers and ``w[…, request]`` times of each request, ``s[…, scheduler]`` and ``d[…, scheduler]`` the same of each
scheduler, ``m[scheduler, place]`` the request at a scheduler's own place, ``e`` the coming events: a heap by time.
"""

from __future__ import annotations

(
    POOL,
    PREFILLERS,
    POLICY,
    USERS_STARTED,
    USERS_GIVEN,
    SENT_REQUESTS,
    COMPLETED,
    WANTED,
    FIRST_WANTED,
    END_WANTED,
    RETURNING,
    WATCHED,
    TURN,
    DECODE_TURN,
    COMING_EVENTS,
    EVENTS_EVER,
    ROUNDS,
    MAX_ROUNDS,
) = range(18)
"""``f``: POOL schedulers answer; RETURNING: users of a closed loop; WATCHED: what leaves a scheduler makes events, so
that all of them move in order of time."""
FLEET_NUMBERS = MAX_ROUNDS + 1

RETURN_S, HANDOVER_S, TOKEN_MOVE_S = range(3)
"""``h``: until a user returns; before KV moves; moving one prompt token."""

(
    ASKED_PROMPT,
    ASKED_OUTPUT,
    ASKED_CACHED,
    ASKED_GROUP,
    ASKED_SHARED,
    ASKED_CLASS,
    ASKED_FETCH,
    ASKED_TIER,
    ASKED_PACE,
    LUCK,
    PLACE,
    LOCAL,
    ENTRY,
    ENTRY_LOCAL,
    BEHIND,
) = range(15)
"""``g``: lengths, prefix, a random number; where it is answered and where it is prefilled; who is next in line."""
ASKED_ROWS = BEHIND + 1

BEGIN, CAME, HANDED, LANDED = range(4)
"""``w``: given starts; arrival; end of prefill on a prefill replica, and when its KV was on the decode replica."""
TIME_ROWS = LANDED + 1

SENT, LEFT, TOLD, IN_LINE, LAST_IN_LINE, ON_ITS_WAY = range(6)
"""``s``: requests sent, those that left up to now, those whose leaving made an event; the line of prefilled requests
that wait for blocks (request + 1, 0 = nobody), and how many have blocks whose KV is on its way."""
SCHEDULER_ROWS = ON_ITS_WAY + 1

BOUND, NEXT_STOP, LINK_FREE = range(3)
"""``d``: nothing leaves before BOUND, and a run until NEXT_STOP ends at the first moment something may; when the link
of a prefill replica is free."""
SCHEDULER_TIMES = LINK_FREE + 1

WHEN, WHAT, TIE = range(3)
EVENT_ROWS = TIE + 1
"""``e``: time, kind + KINDS x request, and a running number: of equal times the first made comes first."""
ARRIVES, PREFILLED, ASSIGNED, LANDS = range(4)
KINDS = 4

RANDOM, ROUND_ROBIN, LEAST_LOADED, PREFIX_AWARE = range(4)
"""``f[POLICY]``."""
OVERLOAD_FACTOR = 1.5
OVERLOAD_REQUESTS = 32
"""Prefix-aware routing leaves a replica that holds the prefix when it has more requests than the least loaded one by
both: SGLang's cache-aware router (its relative threshold; half its absolute default of 64, which is meant for larger
replicas)."""
NOT_YET = 1 << 60
