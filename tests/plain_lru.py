"""A cache that evicts the least recently used block, as plainly as it can be written: what the fast way must equal."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from calc.reuse.trace import BlockTrace


@dataclass
class Found:
    """What one cache found of a whole trace."""

    tokens: int = 0
    blocks: int = 0
    by_request: tuple[int, ...] = ()
    oldest_s: tuple[float | None, ...] = ()
    """Seconds since the oldest block of a full cache was used, as each request comes; None = not full."""


def run(trace: BlockTrace, capacity: int, ttl_s: float | None = None) -> Found:
    """One cache of so many blocks, one request after the other; blocks unused for longer than the limit are dropped."""
    cache: OrderedDict[int, float] = OrderedDict()
    result = Found()
    for request in range(trace.requests):
        now_s = float(trace.arrival_s[request]) if trace.arrival_s is not None else 0.0
        ids = trace.block_ids[trace.offsets[request] : trace.offsets[request + 1]].tolist()
        if ttl_s is not None:
            for old in [one for one, used_s in cache.items() if now_s - used_s > ttl_s]:
                del cache[old]
        result.oldest_s += (now_s - next(iter(cache.values())) if cache and len(cache) == capacity else None,)
        found = 0
        while found < trace.looked_up[request] and ids[found] in cache:
            left = int(trace.prompt_tokens[request]) - found * trace.block_size_tokens
            result.tokens += max(0, min(left, trace.block_size_tokens))
            found += 1
        result.blocks += found
        result.by_request += (found,)
        for one in reversed(ids):
            cache[one] = now_s
            cache.move_to_end(one)
            if len(cache) > capacity:
                cache.popitem(last=False)
    return result
