"""Which requests begin alike, and what caches keep of their prefixes when a steady load is first looked at.

Groups are drawn evenly and independently, the harder case: skewed use only makes hits likelier (benchmark tools deal
evenly by default: ``vllm bench serve --dataset-name prefix_repetition``, SGLang's ``generated-shared-prefix``).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from calc.simulator.contract import PrefixPlan, RequestPlan, SchedulerRules
from calc.workload import IntArray

GROUP_STREAM, PAST_STREAM = 21, 22
"""Streams of a seed."""
FREE_SHARE = 0.5
"""Part of the pool taken to be free for reuse when only a hit share's size is wanted."""
BISECTIONS = 50


def share_prefixes(
    plan: RequestPlan,
    rules: SchedulerRules,
    groups: int | None,
    seed: int,
    *,
    schedulers: int,
    sticky: bool,
    recorded: bool = False,
) -> RequestPlan:
    """The plan whose caches decide what is found: the cached tokens of each request are its group's prefix.

    ``sticky``: requests of a group go where its prefix is. A finite benchmark (no lead) starts with empty caches.
    Requests of a group are about equally long, as if all asked about one document; ``recorded`` ones keep their place.
    """
    if groups is None or not rules.prefix_caching or rules.reserved_tokens is not None:
        return plan
    group = np.random.default_rng((seed, GROUP_STREAM)).integers(0, groups, plan.prompt_tokens.size)
    if not recorded:
        plan = _alike(plan, group)
    shared: IntArray = plan.cached_tokens // rules.block_tokens
    present, member, dense = np.unique(group, return_index=True, return_inverse=True)
    typical = shared[member]
    remembered: tuple[tuple[IntArray, IntArray, IntArray], ...] = ()
    homes = schedulers if sticky else 1
    if plan.first_measured > 0:
        remembered = tuple(
            _past(
                plan,
                rules,
                present,
                (groups, shared, typical),
                (seed, PAST_STREAM, one),
                (one, homes),
            )
            for one in range(schedulers)
        )
    prefixes = PrefixPlan(
        group=dense.astype(np.int64), shared_blocks=shared, count=int(present.size), remembered=remembered
    )
    return replace(plan, cached_tokens=np.zeros_like(plan.cached_tokens), groups=prefixes)


def _alike(plan: RequestPlan, group: IntArray) -> RequestPlan:
    """The same requests in another order: the longer, the higher their group."""
    order = np.empty(group.size, np.int64)
    order[np.argsort(group, kind="stable")] = np.argsort(plan.prompt_tokens, kind="stable")
    columns = ("prompt_tokens", "output_tokens", "cached_tokens", "class_index", "cancelled", "fetch_tokens")
    more = ("fetch_tier", "pace_tokens")
    held = {name: getattr(plan, name) for name in (*columns, *more)}
    return replace(plan, **{name: column[order] for name, column in held.items() if column is not None})


def _past(
    plan: RequestPlan,
    rules: SchedulerRules,
    present: IntArray,
    asked: tuple[int, IntArray, IntArray],
    stream: tuple[int, int, int],
    home: tuple[int, int],
) -> tuple[IntArray, IntArray, IntArray]:
    """The free queue of a scheduler after endless like requests: backwards from the last, each its own blocks, and its
    prefix if nobody had it since."""
    groups, shared, typical = asked
    rng = np.random.default_rng(stream)
    whole = -(-(plan.prompt_tokens + plan.output_tokens) // rules.block_tokens)
    own = np.maximum(1, whole - shared)
    draws = min(math.ceil(2 * rules.total_blocks / own.mean()) + 1, 4 * rules.total_blocks)
    like = rng.integers(0, own.size, draws)
    place, every = home
    used = rng.integers(0, max(1, groups // every), draws) * every + (place if every > 1 else 0)
    first = np.zeros(draws, bool)
    first[np.unique(used, return_index=True)[1]] = True
    spot = np.minimum(np.searchsorted(present, used), present.size - 1)
    prefix = np.where(present[spot] == used, typical[spot], shared[like])
    sizes = own[like] + np.where(first, prefix, 0)
    ends = rules.total_blocks - np.concatenate(([0], np.cumsum(sizes)[:-1]))
    kept = first & (ends > 0) & (prefix > 0) & (present[spot] == used)
    order = np.flatnonzero(kept)[::-1][-plan.prompt_tokens.size :]
    return spot[order].astype(np.int64), ends[order].astype(np.int64), prefix[order]


def expected_hits(groups: float, shared: float, own: float, pool_tokens: float) -> float:
    """Share of visits that find their prefix in an LRU cache of evenly used groups: 1 − e^(−w/G), where w requests
    fill the free part of the pool: G·(1 − e^(−w/G))·prefix + w·own = free (Che's approximation)."""
    free = FREE_SHARE * pool_tokens
    low, high = 0.0, free / max(own, 1.0)
    for _ in range(BISECTIONS):
        window = (low + high) / 2
        filled = groups * -math.expm1(-window / groups) * shared + window * own
        low, high = (window, high) if filled < free else (low, window)
    return -math.expm1(-low / groups)
