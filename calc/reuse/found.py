"""How much of single prompts is found, in caches of several capacities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calc.reuse import stack
from calc.reuse.trace import BlockTrace, IntArray
from calc.reuse.views import of_owner

MOST_ROWS = 20_000
"""Requests looked at one by one; of more, so many in even steps stand for all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundRows:
    """r requests of a trace, m capacities."""

    requests: IntArray
    """Shape (r): which requests of the trace."""
    blocks: IntArray
    """Shape (r, m): leading blocks of their prompts that are found."""


def found_rows(trace: BlockTrace, owner: IntArray, capacities_blocks: Sequence[int]) -> FoundRows:
    """Where every owner has a cache of its own of each capacity; ``owner``: which has each request (shape (n))."""
    at = np.array(capacities_blocks, dtype=np.int64)
    every = max(1, trace.requests // MOST_ROWS)
    rows, blocks = [np.zeros(0, np.int64)], [np.zeros((0, len(at)), np.int64)]
    for which in range(int(owner.max(initial=0)) + 1):
        part = of_owner(trace, owner, which)
        blocks.append(
            stack.found_by_request(part.offsets, part.block_ids, part.looked_up, part.unique_blocks, at, every)
        )
        rows.append(np.flatnonzero(owner == which)[::every])
    return FoundRows(requests=np.concatenate(rows), blocks=np.concatenate(blocks))
