"""Who comes back to what: later turns, how long they stay away, and whether their blocks are still there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.reuse import stack
from calc.reuse.answers import turns
from calc.reuse.found import FoundRows
from calc.reuse.trace import BlockTrace, IntArray

AWAY_QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True, eq=False)
class Returns:
    """Later turns of a trace."""

    parent: IntArray
    """Shape (n): the turn before, -1 = none."""
    away_s: tuple[float, ...] | None
    """Time between a turn and the one before, at `AWAY_QUANTILES`; None without times or later turns."""

    @property
    def later_turns(self) -> int:
        """Requests that go on from an earlier one."""
        return int((self.parent >= 0).sum())


def returns(trace: BlockTrace) -> Returns:
    """Who goes on from whom, and after how long."""
    parent = turns(trace).parent
    later = np.flatnonzero(parent >= 0)
    if trace.arrival_s is None or not len(later):
        return Returns(parent=parent, away_s=None)
    gaps = trace.arrival_s[later] - trace.arrival_s[parent[later]]
    return Returns(parent=parent, away_s=tuple(float(one) for one in np.quantile(gaps, AWAY_QUANTILES)))


def alive_shares(trace: BlockTrace, back: Returns, found: FoundRows) -> tuple[float | None, ...]:
    """Share of later turns that find the whole prompt of the turn before, in full blocks, at each capacity."""
    parent = back.parent[found.requests]
    later = parent >= 0
    capacities = int(found.blocks.shape[1])
    if not later.any():
        return (None,) * capacities
    before = np.minimum(trace.prompt_tokens // trace.block_size_tokens, trace.looked_up)[parent[later]]
    shares: list[float] = (found.blocks[later] >= before[:, None]).mean(axis=0).tolist()
    return tuple(shares)


def stay_s(trace: BlockTrace, capacity_blocks: int) -> float | None:
    """How long an unused block stays in one cache: median over the requests that come while it is full.

    None = it never fills, or the trace has no times.
    """
    if trace.arrival_s is None:
        return None
    at = np.array([capacity_blocks], dtype=np.int64)
    ages = stack.residence(trace.offsets, trace.block_ids, trace.unique_blocks, trace.arrival_s, at)[:, 0]
    full = ages[~np.isnan(ages)]
    return float(np.median(full)) if len(full) else None
