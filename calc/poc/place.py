"""Where a run belongs in the evaluation matrix, or what nobody has said yet and keeps it out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from calc.checks.run_facts import RunFacts, achieved_per_s
from calc.poc.cells import CacheStrategy, Cell, Repetition

SMALLEST_CONTEXT_TOKENS = 512
"""The scale of contexts doubles from here, upwards and downwards."""
CONTEXT_TOLERANCE = 0.25
"""A run within 25 % of a context that the plan names belongs to it."""
CONCURRENCY_TOLERANCE = 0.25
"""The same for requests in flight that come out of a rate; a cap is taken as it is."""
REUSE_SHARE = 0.01
"""From here on hits are no chance: prompts were found in the cache."""
MEDIUM_HITS = 0.15
HIGH_HITS = 0.6
"""Shared prefixes of four fifths of a prompt, used twice each, hit 40 %; four times 60 %; hundreds 80 %."""


class Gap(StrEnum):
    """What a run lacks for its place in the matrix. The first two are declared, the others measured."""

    STRATEGY = "strategy"
    REPETITION = "repetition"
    CONTEXT = "context"
    CONCURRENCY = "concurrency"


class Declared(Protocol):
    """Of a declaration, the two axes that no result file says."""

    @property
    def strategy(self) -> CacheStrategy | None:
        """How KV was kept while the run was measured."""

    @property
    def repetition(self) -> Repetition | None:
        """How much the prompts repeat earlier ones."""


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """What a measured hit rate hints at; a person confirms it before it counts."""

    strategy: CacheStrategy | None = None
    repetition: Repetition | None = None


def cell_of(
    facts: RunFacts,
    declared: Declared | None,
    *,
    contexts_tokens: Sequence[int] = (),
    concurrencies: Sequence[int] = (),
) -> Cell | tuple[Gap, ...]:
    """The cell a run fills, or everything that is missing for one.

    ``contexts_tokens`` and ``concurrencies`` are those of a plan; a run that is near none of them goes onto the
    doubling scale.
    """
    strategy = declared.strategy if declared else None
    repetition = declared.repetition if declared else None
    context, users = context_of(facts, contexts_tokens), concurrency_of(facts, concurrencies)
    if strategy is None or repetition is None or context is None or users is None:
        found = {Gap.STRATEGY: strategy, Gap.REPETITION: repetition, Gap.CONTEXT: context, Gap.CONCURRENCY: users}
        return tuple(gap for gap, value in found.items() if value is None)
    return Cell(strategy=strategy, repetition=repetition, context_tokens=context, concurrency=users)


def context_of(facts: RunFacts, planned: Sequence[int] = ()) -> int | None:
    """Mean prompt tokens as the plan's nearest context within 25 %, else the nearest 512·2^k in ratio."""
    tokens = facts.input_tokens_mean
    if not tokens:
        return None
    near = _near(tokens, planned, CONTEXT_TOLERANCE)
    return near if near is not None else _doubling(tokens, SMALLEST_CONTEXT_TOKENS)


def concurrency_of(facts: RunFacts, planned: Sequence[int] = ()) -> int | None:
    """Requests in flight: the cap of a closed load, else what the rate amounts to by Little's law.

    A cap beside a finite rate is a bound that the rate may never reach, so it counts only where nothing else is known.
    """
    cap = None if facts.max_concurrency is None else min(facts.max_concurrency, facts.num_prompts or math.inf)
    if cap and facts.request_rate_per_s is None:
        return int(cap)
    flying = in_flight(facts)
    if flying is None:
        return int(cap) if cap else None
    near = _near(flying, planned, CONCURRENCY_TOLERANCE)
    return near if near is not None else _doubling(flying, 1)


def in_flight(facts: RunFacts) -> float | None:
    """Mean requests in flight: as the file states it, else completed requests/s x mean E2E (Little's law)."""
    if facts.achieved_concurrency:
        return facts.achieved_concurrency
    rate, e2e = achieved_per_s(facts), facts.e2e.mean_s
    return rate * e2e if rate and e2e else None


def suggested(facts: RunFacts) -> Suggestion:
    """From the measured hit rate. No hits say nothing: the cache may have been off, too small, or never useful."""
    hits = facts.prefix_hit_share
    if hits is None or hits < REUSE_SHARE:
        return Suggestion()
    levels = ((HIGH_HITS, Repetition.HIGH), (MEDIUM_HITS, Repetition.MEDIUM), (REUSE_SHARE, Repetition.LOW))
    return Suggestion(strategy=CacheStrategy.PREFIX, repetition=next(level for least, level in levels if hits >= least))


def _near(value: float, planned: Sequence[int], tolerance: float) -> int | None:
    close = [one for one in planned if abs(value - one) <= tolerance * one]
    return min(close, key=lambda one: abs(value - one), default=None)


def _doubling(value: float, start: int) -> int:
    return max(1, round(start * 2.0 ** round(math.log2(value / start))))
