"""Hit rate against cache capacity, for every capacity at once, exact to the token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calc.errors import InputError
from calc.messages import msg
from calc.reuse import stack
from calc.reuse.trace import BlockTrace, FloatArray, IntArray

MAX_LIMITS = 32
"""Most time limits looked at in one pass: each keeps a curve of its own."""
TIME_GRAIN_S = 1e-6
"""Times of logs are good to a microsecond at best: an age that exceeds a limit by less does not."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HitCurve:
    """What a cache of each capacity finds of a trace; capacities in blocks of one replica."""

    block_size_tokens: int
    found_tokens: IntArray
    """Prompt tokens found, by capacity 0, 1, 2 … blocks; it never falls, and beyond its end it is its last."""
    found_blocks: IntArray
    """The same in blocks."""
    prompt_tokens: int
    """Prompt tokens of all requests."""
    blocks: int
    """Prompt blocks of all requests."""

    def hit_tokens(self, capacities_blocks: Sequence[int] | IntArray) -> IntArray:
        """Prompt tokens found at each capacity."""
        return self.found_tokens[self._places(capacities_blocks)]

    def hit_blocks(self, capacities_blocks: Sequence[int] | IntArray) -> IntArray:
        """Prompt blocks found at each capacity."""
        return self.found_blocks[self._places(capacities_blocks)]

    def hit_shares(self, capacities_blocks: Sequence[int] | IntArray) -> FloatArray:
        """Hit rate at each capacity: prompt tokens found / prompt tokens (0–1)."""
        return self.hit_tokens(capacities_blocks) / max(1, self.prompt_tokens)

    def hit_share(self, capacity_tokens: float) -> float:
        """Hit rate of a cache of so many tokens, in whole blocks."""
        return float(self.hit_shares([int(capacity_tokens // self.block_size_tokens)])[0])

    @property
    def ceiling_share(self) -> float:
        """Hit rate of a cache that never evicts."""
        return float(self.found_tokens[-1]) / max(1, self.prompt_tokens)

    def capacity_for(self, share_of_ceiling: float) -> int:
        """Smallest capacity in blocks that finds this share of what a cache without end finds."""
        return int(np.searchsorted(self.found_tokens, share_of_ceiling * self.found_tokens[-1], side="left"))

    def knee(self) -> int:
        """Capacity in blocks that lies highest above the line from no cache to the ceiling.

        Up to there a block finds more than the mean block of the way to the ceiling, beyond it less (the point of
        largest distance from the chord: Satopää et al., "Finding a kneedle in a haystack", 2011). Where nothing lies
        above the line, as with a scan that only a whole cache helps, it is the end of the way.
        """
        end = self.capacity_for(1.0)
        if end == 0:
            return 0
        reached = self.found_tokens[: end + 1] / self.found_tokens[end]
        return end - int(np.argmax((reached - np.arange(end + 1) / end)[::-1]))

    def _places(self, capacities_blocks: Sequence[int] | IntArray) -> IntArray:
        return np.clip(np.asarray(capacities_blocks, dtype=np.int64), 0, len(self.found_tokens) - 1)


def hit_curve(trace: BlockTrace) -> HitCurve:
    """The curve of a trace: prefix looked up when a request comes, then all its blocks used, its root last."""
    tokens, blocks = stack.histogram(
        trace.offsets,
        trace.block_ids,
        trace.looked_up,
        trace.prompt_tokens,
        trace.block_size_tokens,
        trace.unique_blocks,
    )
    return _curve(trace, np.cumsum(tokens), np.cumsum(blocks))


def curves_with_limits(trace: BlockTrace, limits_s: Sequence[float]) -> tuple[HitCurve, ...]:
    """One curve for each time limit after which unused blocks are dropped (counted from their last use)."""
    if trace.arrival_s is None:
        raise InputError(msg("a time limit needs the time of each request: this trace has none."))
    if len(limits_s) > MAX_LIMITS or not all(limit >= 0 for limit in limits_s):
        raise InputError(msg("time limits must be 0 seconds or more, at most {most} of them.", most=MAX_LIMITS))
    rising = np.array(sorted(limits_s), dtype=np.float64) + TIME_GRAIN_S
    tokens, blocks = stack.histogram_by_age(
        trace.offsets,
        trace.block_ids,
        trace.looked_up,
        trace.prompt_tokens,
        trace.block_size_tokens,
        trace.unique_blocks,
        trace.arrival_s,
        rising,
    )
    tokens, blocks = tokens.cumsum(axis=1).cumsum(axis=0), blocks.cumsum(axis=1).cumsum(axis=0)
    rows = np.searchsorted(rising, np.array(limits_s, dtype=np.float64) + TIME_GRAIN_S)
    return tuple(_curve(trace, tokens[row], blocks[row]) for row in rows)


def together(curves: Sequence[HitCurve]) -> HitCurve:
    """Several caches of the same capacity each, every one with its own requests: found and asked for in sum."""
    longest = max(len(curve.found_tokens) for curve in curves)
    capacities = np.arange(longest)
    return HitCurve(
        block_size_tokens=curves[0].block_size_tokens,
        found_tokens=sum((curve.hit_tokens(capacities) for curve in curves), np.zeros(longest, np.int64)),
        found_blocks=sum((curve.hit_blocks(capacities) for curve in curves), np.zeros(longest, np.int64)),
        prompt_tokens=sum(curve.prompt_tokens for curve in curves),
        blocks=sum(curve.blocks for curve in curves),
    )


def _curve(trace: BlockTrace, found_tokens: IntArray, found_blocks: IntArray) -> HitCurve:
    return HitCurve(
        block_size_tokens=trace.block_size_tokens,
        found_tokens=found_tokens,
        found_blocks=found_blocks,
        prompt_tokens=trace.total_prompt_tokens,
        blocks=int(trace.looked_up.sum()),
    )
