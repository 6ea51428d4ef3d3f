"""Who comes back to what: later turns, how long they stay away, and whether their blocks are still there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calc.reuse import stack
from calc.reuse.answers import turns
from calc.reuse.trace import BlockTrace, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Returns:
    """Later turns of a trace, and what caches of some capacities keep for them."""

    later_turns: int
    """Requests that go on from an earlier one."""
    requests: int
    away_s: tuple[float, ...] | None
    """Time between a turn and the one before, at `AWAY_QUANTILES`; None without times or later turns."""
    alive_shares: tuple[float | None, ...]
    """Of later turns, for each capacity: the whole prompt of the turn before is still there. None = no later turns."""
    stays_s: tuple[float | None, ...]
    """For each capacity: how long an unused block stays, median over the requests that come while the cache is full;
    None = it never fills."""


AWAY_QUANTILES = (0.5, 0.9, 0.99)


def returns(trace: BlockTrace, capacities_blocks: Sequence[int]) -> Returns:
    """Sessions kept alive at each capacity of one cache."""
    at = np.array(capacities_blocks, dtype=np.int64)
    parent = turns(trace).parent
    later = np.flatnonzero(parent >= 0)
    return Returns(
        later_turns=len(later),
        requests=trace.requests,
        away_s=_away_s(trace, parent, later),
        alive_shares=_alive_shares(trace, parent, later, at),
        stays_s=_stays_s(trace, at),
    )


def reuse_intervals_s(trace: BlockTrace) -> FloatArray | None:
    """Seconds since its last use of every block found in a cache without end; None without times."""
    if trace.arrival_s is None:
        return None
    return np.asarray(
        stack.ages_of_found(trace.offsets, trace.block_ids, trace.looked_up, trace.unique_blocks, trace.arrival_s)
    )


def _away_s(trace: BlockTrace, parent: IntArray, later: IntArray) -> tuple[float, ...] | None:
    if trace.arrival_s is None or not len(later):
        return None
    gaps = trace.arrival_s[later] - trace.arrival_s[parent[later]]
    return tuple(float(one) for one in np.quantile(gaps, AWAY_QUANTILES))


def _alive_shares(trace: BlockTrace, parent: IntArray, later: IntArray, at: IntArray) -> tuple[float | None, ...]:
    if not len(later):
        return (None,) * len(at)
    found = stack.found_by_request(trace.offsets, trace.block_ids, trace.looked_up, trace.unique_blocks, at)
    before = np.minimum(trace.prompt_tokens // trace.block_size_tokens, trace.looked_up)[parent[later]]
    return tuple(float(share) for share in (found[later] >= before[:, None]).mean(axis=0))


def _stays_s(trace: BlockTrace, at: IntArray) -> tuple[float | None, ...]:
    if trace.arrival_s is None:
        return (None,) * len(at)
    ages = stack.residence(trace.offsets, trace.block_ids, trace.unique_blocks, trace.arrival_s, at)
    full = [column[~np.isnan(column)] for column in ages.T]
    return tuple(float(np.median(column)) if len(column) else None for column in full)
