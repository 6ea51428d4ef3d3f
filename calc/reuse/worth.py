"""What a hit rate is worth: how much of a KV pool is free for reuse, prefill that need not be done, and its seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calc.deployment import Deployment
from calc.memory import MemoryReport
from calc.reuse.curve import HitCurve
from calc.reuse.found import FoundRows
from calc.reuse.trace import BlockTrace, FloatArray, IntArray
from calc.step.roofline import StepModel
from calc.units import SECONDS_PER_HOUR


@dataclass(frozen=True, kw_only=True)
class Room:
    """The KV pool of one cache (one DP rank of one replica), and what of it may hold blocks nobody uses right now."""

    pool_tokens: int
    held_tokens: float | None
    """By requests in flight, at the mean of the planned load; None = that load is not known."""

    @property
    def free_tokens(self) -> float:
        """Left for reuse. Blocks of running requests can be found too, yet count as gone here: a careful figure."""
        return max(0.0, self.pool_tokens - (self.held_tokens or 0.0))


def room_of(deployment: Deployment, memory: MemoryReport) -> Room:
    """Pool and demand as the memory report counts them; idle sessions are what reuse is about, and not taken off."""
    pool_tokens = memory.kv_tokens // deployment.dp
    if not memory.peak_is_known or not memory.kv_pool_bytes:
        return Room(pool_tokens=pool_tokens, held_tokens=None)
    held_share = (memory.kv_demand_bytes - memory.idle_kv_bytes) / memory.kv_pool_bytes
    return Room(pool_tokens=pool_tokens, held_tokens=min(1.0, held_share) * pool_tokens)


@dataclass(frozen=True, kw_only=True)
class Worth:
    """One capacity on the curve."""

    capacity_tokens: float
    hit_share: float
    of_ceiling_share: float | None
    """Of what a cache without end finds; None where that is nothing."""
    saved_tokens_per_hour: float | None
    """Prompt tokens not prefilled again, all replicas; None without times."""
    saved_s_per_hour: float | None
    """Seconds of prefill of one replica not spent, all replicas together; None without times or a step model."""


def worths(
    trace: BlockTrace,
    curve: HitCurve,
    found: FoundRows,
    capacities_tokens: Sequence[float],
    models: Sequence[StepModel | None],
) -> tuple[Worth, ...]:
    """Capacities of each cache, read off the curve; ``found`` at the same ones, a step model for each."""
    hours = _hours(trace)
    result = []
    for place, (tokens, model) in enumerate(zip(capacities_tokens, models, strict=True)):
        share = curve.hit_share(tokens)
        seconds = _saved_s(trace, found.requests, found.blocks[:, place], model) if model else None
        result.append(
            Worth(
                capacity_tokens=tokens,
                hit_share=share,
                of_ceiling_share=share / curve.ceiling_share if curve.ceiling_share else None,
                saved_tokens_per_hour=share * trace.total_prompt_tokens / hours if hours else None,
                saved_s_per_hour=seconds / hours if hours and seconds is not None else None,
            )
        )
    return tuple(result)


def _saved_s(trace: BlockTrace, requests: IntArray, found_blocks: IntArray, model: StepModel) -> float:
    """Prefill of each prompt alone, without and with what is found; one token at least is always computed."""
    prompts = np.maximum(trace.prompt_tokens[requests], 1).astype(np.float64)
    cached = np.minimum(found_blocks * trace.block_size_tokens, prompts - 1).astype(np.float64)
    saved: FloatArray = model.prefill_only_s(prompts, np.zeros_like(prompts)) - model.prefill_only_s(prompts, cached)
    return float(saved.mean()) * trace.requests


def _hours(trace: BlockTrace) -> float | None:
    if trace.arrival_s is None or not trace.requests:
        return None
    span = float(trace.arrival_s.max() - trace.arrival_s.min())
    return span / SECONDS_PER_HOUR if span > 0 else None


@dataclass(frozen=True, kw_only=True)
class LimitAdvice:
    """What dropping unused blocks after a time costs, at one capacity."""

    limits_s: tuple[float, ...]
    hit_shares: tuple[float, ...]
    without_share: float
    """Hit rate without a limit."""
    enough_s: float | None
    """Shortest limit of those tried that costs next to nothing; None = none of them."""


USUAL_LIMITS_S = (60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Five minutes and one hour are what hosted APIs sell as cache lifetimes; the others stand around them."""
NEXT_TO_NOTHING = 0.02
"""Share of the hits that a limit may cost to count as long enough."""


def limit_advice(
    limits_s: Sequence[float], curves: Sequence[HitCurve], without: HitCurve, capacity_tokens: float
) -> LimitAdvice:
    """Time limits at one capacity, against no limit."""
    plain = without.hit_share(capacity_tokens)
    shares = tuple(curve.hit_share(capacity_tokens) for curve in curves)
    enough = [limit for limit, share in zip(limits_s, shares, strict=True) if share >= (1 - NEXT_TO_NOTHING) * plain]
    return LimitAdvice(
        limits_s=tuple(limits_s),
        hit_shares=shares,
        without_share=plain,
        enough_s=min(enough) if enough and plain > 0 else None,
    )
