"""Prefix reuse of a trace for scripts: hit rate at each capacity, under the conditions asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calc.errors import InputError, PlimsollError, UnreadableFile
from calc.messages import msg
from calc.reuse import stack
from calc.reuse.answers import with_answers
from calc.reuse.curve import HitCurve, curves_with_limits, hit_curve
from calc.reuse.routing import Routing, curve_of_owners, dealt
from calc.reuse.trace import BlockTrace, IntArray
from calc.reuse.views import coarser, full_blocks_only, in_order_of_time, told_apart
from data.logs.blocks import block_trace
from data.logs.given import GivenLog
from data.logs.hash_trace import ReadTrace, read_hash_trace
from data.logs.load import load_log
from data.store import Store
from data.store.database import IN_MEMORY

MAX_CAPACITY_BLOCKS = 2**62
DIGITS = 10
"""Decimal places of shares: enough to tell one token in ten billion."""
_STEPS_PER_DECADE = (1, 2, 5)


@dataclass(frozen=True, kw_only=True)
class ReuseAsked:
    """Conditions of a curve; the defaults are one replica that keeps every block until it needs the room."""

    capacities_blocks: tuple[int, ...] = ()
    """Empty = from 0 to all blocks in steps of 1, 2, 5."""
    ttl_s: tuple[float, ...] = ()
    replicas: int = 1
    routing: Routing = "round-robin"
    tenants: int = 0
    """As if request number i were of tenant i mod this; 0 = not."""
    by_tenant: bool = False
    """The log's own tenants never find each other's blocks."""
    own_caches: bool = False
    """Each tenant has an equal part of the capacity for itself."""
    full_blocks: bool = False
    answers: bool = False
    coarser: int = 1

    def __post_init__(self) -> None:
        if not all(0 <= capacity <= MAX_CAPACITY_BLOCKS for capacity in self.capacities_blocks):
            raise InputError(msg("capacities must be 0 blocks or more."))
        if self.replicas > 1 and (self.tenants or self.by_tenant) and self.own_caches:
            raise InputError(msg("choose either several replicas or a cache for each tenant."))
        if self.ttl_s and (self.replicas > 1 or self.own_caches):
            raise InputError(msg("a time limit can be asked for one cache only: leave out replicas and own caches."))


def reuse_line(path: Path, asked: ReuseAsked) -> dict[str, Any]:
    """The answer to `reuse`: hit rates by tokens and by blocks, and what no capacity can exceed."""
    read = _read(path)
    trace, owner = seen_by(read.trace, asked)
    capacities = asked.capacities_blocks or usual_capacities(trace.unique_blocks)
    curve, at = _curve(trace, owner, asked, capacities)
    line: dict[str, Any] = {
        "block_size": trace.block_size_tokens,
        "requests": trace.requests,
        "prompt_tokens": trace.total_prompt_tokens,
        "blocks": curve.blocks,
        "unique_blocks": trace.unique_blocks,
        "capacities_blocks": list(capacities),
        "hit_tokens": curve.hit_tokens(at).tolist(),
        "hit_rate_tokens": _shares(curve.hit_tokens(at), curve.prompt_tokens),
        "hit_blocks": curve.hit_blocks(at).tolist(),
        "hit_rate_blocks": _shares(curve.hit_blocks(at), curve.blocks),
        "unlimited": unlimited(trace) if owner is None else {"token_weighted": round(curve.ceiling_share, DIGITS)},
        "knee_blocks": curve.knee(),
    }
    if asked.ttl_s:
        line["ttl"] = [
            {"ttl_s": limit, "hit_rate_tokens": _shares(limited.hit_tokens(at), limited.prompt_tokens)}
            for limit, limited in zip(asked.ttl_s, curves_with_limits(trace, asked.ttl_s), strict=True)
        ]
    return line | {"notes": [str(note) for note in read.notes]}


def _read(path: Path) -> ReadTrace:
    """JSON Lines with hashes as they are; any other file as the Workload page reads a log."""
    try:
        return read_hash_trace(path)
    except UnreadableFile as not_lines:
        with Store(IN_MEMORY) as store:
            try:
                added = load_log(store.database, GivenLog.of_path(path))
            except PlimsollError:
                raise not_lines from None
            return ReadTrace(trace=in_order_of_time(block_trace(store, added.log_id)))


def seen_by(trace: BlockTrace, asked: ReuseAsked) -> tuple[BlockTrace, IntArray | None]:
    """The trace under the conditions asked for, and who has each request where there are several caches."""
    if asked.coarser > 1:
        trace = coarser(trace, asked.coarser)
    if asked.answers:
        trace = with_answers(trace)
    if asked.full_blocks:
        trace = full_blocks_only(trace)
    tenant = _tenant(trace, asked)
    if tenant is not None and not asked.own_caches:
        trace = told_apart(trace, tenant)
    if asked.replicas > 1:
        return trace, dealt(trace, asked.replicas, asked.routing)
    return trace, tenant if asked.own_caches else None


def usual_capacities(unique_blocks: int) -> tuple[int, ...]:
    """0, then 1, 2, 5, 10 … up to a cache that holds every block."""
    decades = range(len(str(max(1, unique_blocks))))
    rising = [step * 10**decade for decade in decades for step in _STEPS_PER_DECADE]
    return (0, *(capacity for capacity in rising if capacity < unique_blocks), unique_blocks)


def unlimited(trace: BlockTrace) -> dict[str, float]:
    """What a cache without end finds, weighted by tokens, by blocks, and as means over the requests."""
    end = np.array([trace.unique_blocks], dtype=np.int64)
    found = stack.found_by_request(trace.offsets, trace.block_ids, trace.looked_up, trace.unique_blocks, end, 1)[:, 0]
    tokens = np.minimum(found * trace.block_size_tokens, trace.prompt_tokens)
    asked_blocks, asked_tokens = np.maximum(trace.looked_up, 1), np.maximum(trace.prompt_tokens, 1)
    figures = {
        "token_weighted": tokens.sum() / asked_tokens.sum(),
        "block_weighted": found.sum() / asked_blocks.sum(),
        "mean_of_requests_tokens": (tokens / asked_tokens).mean(),
        "mean_of_requests_blocks": (found / asked_blocks).mean(),
        "share_requests_zero_hit": (found == 0).mean(),
    }
    return {name: round(float(share), DIGITS) for name, share in figures.items()}


def _curve(
    trace: BlockTrace, owner: IntArray | None, asked: ReuseAsked, capacities: Sequence[int]
) -> tuple[HitCurve, IntArray]:
    """The curve, and where to read it for each capacity asked for: tenants with caches of their own share it."""
    at = np.array(capacities, dtype=np.int64)
    if owner is None:
        return hit_curve(trace), at
    count = int(owner.max()) + 1
    return curve_of_owners(trace, owner, count), at // count if asked.own_caches else at


def _tenant(trace: BlockTrace, asked: ReuseAsked) -> IntArray | None:
    if asked.tenants:
        return np.arange(trace.requests, dtype=np.int64) % asked.tenants
    if not asked.by_tenant:
        return None
    if trace.tenant is None:
        raise InputError(msg("this trace names no tenants: add a column tenant, or leave out the split by tenant."))
    return trace.tenant + 1


def _shares(found: IntArray, of: int) -> list[float]:
    return [round(float(share), DIGITS) for share in found / max(1, of)]
