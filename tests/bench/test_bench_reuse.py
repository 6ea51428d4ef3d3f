"""Speed of the hit curve; run with ``pytest --benchmark-only`` on a quiet machine."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import plain_lru

from calc.reuse.curve import hit_curve
from calc.reuse.trace import BlockTrace, renumbered

MIN_BLOCKS_PER_S = 3_000_000
MIN_TIMES_FASTER = 100
"""Than a plain cache run once for each of the 26 capacities of a usual chart."""
CAPACITIES = 26


def conversations(turns: int = 12_000, seed: int = 7) -> BlockTrace:
    """Some 360,000 blocks: 2,000 conversations on 20 system prompts, every turn adds 8 blocks to what was said."""
    draw = np.random.default_rng(seed)
    prompts: list[list[int]] = [[system * 8 + block for block in range(8)] for system in draw.integers(0, 20, 2000)]
    next_id, offsets, ids = 1000, [0], list[int]()
    for conversation in draw.integers(0, len(prompts), turns):
        prompts[conversation] += range(next_id, next_id + 8)
        next_id += 8
        ids += prompts[conversation]
        offsets.append(len(ids))
    numbers, unique = renumbered(np.array(ids))
    counts = np.diff(offsets)
    return BlockTrace(
        block_size_tokens=16,
        offsets=np.array(offsets),
        block_ids=numbers,
        unique_blocks=unique,
        prompt_tokens=counts * 16,
    )


def test_the_whole_curve_takes_three_million_blocks_a_second(benchmark: Any) -> None:
    trace = conversations()
    benchmark.pedantic(hit_curve, args=(trace,), rounds=10, warmup_rounds=1)
    best_s = benchmark.stats.stats.min
    begin = time.perf_counter()
    plain_lru.run(trace, 20_000)
    plain_s = (time.perf_counter() - begin) * CAPACITIES
    benchmark.extra_info.update(blocks_per_s=trace.blocks / best_s, times_faster_than_plain=plain_s / best_s)
    assert trace.blocks / best_s >= MIN_BLOCKS_PER_S
    assert plain_s / best_s >= MIN_TIMES_FASTER
