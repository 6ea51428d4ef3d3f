"""Several replicas, each with a cache of its own: who gets a request decides what its cache can find."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numba import njit

from calc.errors import InputError
from calc.messages import msg
from calc.reuse.curve import HitCurve, hit_curve, together
from calc.reuse.trace import BlockTrace, IntArray
from calc.reuse.views import of_owner

Array: TypeAlias = np.ndarray[Any, Any]
Routing: TypeAlias = Literal["round-robin", "prefix-aware"]

MATCH_SHARE = 0.3
"""Share of a prompt that a replica must have seen to be given it for that: the default of `cache-threshold` of the
cache-aware policy of SGLang's and vLLM's routers."""
MAX_REPLICAS = 1024


def dealt(trace: BlockTrace, replicas: int, routing: Routing) -> IntArray:
    """Which replica gets each request: shape (n), 0 … replicas − 1.

    `prefix-aware` gives a request to the replica that was given the longest part of its prompt before, if that is
    above `MATCH_SHARE` of its blocks, else to the one that was given the fewest prompt tokens so far. The router
    forgets nothing, and knows no queues.
    """
    if not 1 <= replicas <= MAX_REPLICAS:
        raise InputError(msg("replicas must be between 1 and {most}, got {got}.", most=MAX_REPLICAS, got=replicas))
    if routing == "round-robin":
        return np.arange(trace.requests, dtype=np.int64) % replicas
    return np.asarray(
        _by_prefix(trace.offsets, trace.block_ids, trace.looked_up, trace.prompt_tokens, trace.unique_blocks, replicas)
    )


def curve_of_replicas(trace: BlockTrace, replicas: int, routing: Routing = "round-robin") -> HitCurve:
    """Hit rate of all replicas together; the capacity is that of one of them."""
    owner = dealt(trace, replicas, routing)
    return curve_of_owners(trace, owner, replicas)


def curve_of_owners(trace: BlockTrace, owner: IntArray, count: int) -> HitCurve:
    """Hit rate over caches of the same capacity each, one per owner (replica or tenant)."""
    return together([hit_curve(of_owner(trace, owner, which)) for which in range(count)])


@njit(cache=True, nogil=True)
def _by_prefix(offsets: Array, ids: Array, looked_up: Array, prompt_tokens: Array, unique: int, replicas: int) -> Array:
    """Each block remembers the replica that it was given to last: a chained id makes the deepest match the longest."""
    owner = np.zeros(len(offsets) - 1, np.int64)
    given_to = np.full(unique, -1, np.int64)
    given_tokens = np.zeros(replicas, np.int64)
    for request in range(len(offsets) - 1):
        own = ids[offsets[request] : offsets[request] + looked_up[request]]
        matched = 0
        while matched < len(own) and given_to[own[matched]] >= 0:
            matched += 1
        to = np.argmin(given_tokens)
        if matched > 0 and matched > MATCH_SHARE * len(own):
            to = given_to[own[matched - 1]]
        owner[request] = to
        given_to[own] = to
        given_tokens[to] += prompt_tokens[request]
    return owner
