"""What a search found: deployments in order, the two fronts among them, and what was ruled out and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from calc.cost import Cost
from calc.latency import LatencyReport
from calc.messages import Message, msg
from calc.scenario import Scenario


class Reason(StrEnum):
    """Why a combination is not among the answers."""

    SPLIT = "split"
    UNKNOWN = "unknown"
    MEMORY = "memory"
    TTFT = "ttft"
    ITL = "itl"
    E2E = "e2e"
    GPUS = "gpus"
    LOAD = "load"
    MISSED = "missed"
    DEARER = "dearer"


REASONS: Mapping[Reason, Message] = MappingProxyType(
    {
        Reason.SPLIT: msg("The model or the engine does not allow this split or setting"),
        Reason.UNKNOWN: msg("A figure of the GPU that latency needs is not known"),
        Reason.MEMORY: msg("Does not fit in memory"),
        Reason.TTFT: msg("One request alone misses the TTFT target"),
        Reason.ITL: msg("One request alone misses the ITL target"),
        Reason.E2E: msg("One request alone misses the E2E target"),
        Reason.GPUS: msg("Needs more GPUs than allowed to carry the load"),
        Reason.LOAD: msg("The replicas given cannot carry the load"),
        Reason.MISSED: msg("Simulated, and misses the SLO with every number of replicas tried"),
        Reason.DEARER: msg("Not simulated: costs several times what the cheapest answer costs"),
    }
)
"""In the order in which they are checked."""


@dataclass(frozen=True, kw_only=True)
class RuledOut:
    """How many combinations fell for one reason, and one of them in words."""

    reason: Reason
    count: int
    example: Message


@dataclass(frozen=True, kw_only=True)
class Found:
    """One simulated deployment. ``predict(scenario)`` gives the same latency."""

    scenario: Scenario
    latency: LatencyReport
    cost: Cost | None
    """``None`` where no price of its GPU is known."""
    meets: bool
    """Stable, and no target missed."""
    cautions: tuple[Message, ...] = ()
    """What it may do to the answers."""
    headroom_per_s: float | None = None
    """Requests per second above today's load that still meet the SLO; ``None`` = not worked out for this one."""

    @property
    def gpus(self) -> int:
        """Of the whole deployment."""
        return self.scenario.deployment.gpu_count

    @property
    def per_gpu(self) -> float:
        """Output tokens per second and GPU at this load."""
        return self.latency.output_tokens_per_s / self.gpus

    @property
    def interactivity(self) -> float | None:
        """Tokens per second each user sees, 1 ÷ TPOT at the SLO's percentile; ``None`` for answers of one token."""
        pace = self.latency.tpot.at(self.scenario.slo.percentile_share) or self.latency.tpot.p95_s
        return 1 / pace if pace else None

    @property
    def tail_s(self) -> float | None:
        """E2E P99."""
        return self.latency.e2e.p99_s


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The answer to one search, frozen."""

    rows: tuple[Found, ...]
    """What meets the SLO: cheapest first; those without a price after them, fewest GPUs first."""
    points: tuple[Found, ...]
    """Everything simulated and stable, for the pictures."""
    ruled_out: tuple[RuledOut, ...]
    combinations: int
    """Looked at."""
    simulated: int
    """Deployments simulated, replica counts told apart."""
    feasible: int
    """Rows there were; a result that is kept may hold the first of them only."""
    notes: tuple[Message, ...] = ()

    @property
    def fast_front(self) -> tuple[Found, ...]:
        """Nobody gives more tokens per GPU and more per user: rising interactivity."""
        return front(self.points, lambda one: -one.per_gpu, lambda one: _negative(one.interactivity))

    @property
    def cheap_front(self) -> tuple[Found, ...]:
        """Nobody costs less and has a shorter E2E P99, in the currency of the first priced row: rising cost."""
        priced = [one for one in self.points if one.cost is not None and one.meets]
        currency = next((row.cost.currency for row in self.rows if row.cost is not None), None)
        same = [one for one in priced if one.cost is not None and one.cost.currency == currency]
        return front(same, lambda one: one.cost.total_per_hour if one.cost else math.inf, lambda one: one.tail_s)


def shortened(result: SearchResult, rows: int, points: int) -> SearchResult:
    """The first rows, and both fronts with as many further points: what a page shows and a session can hold."""
    fronts = {id(one.latency): one for one in (*result.fast_front, *result.cheap_front)}
    others = [one for one in result.points if id(one.latency) not in fronts][: max(0, points - len(fronts))]
    return replace(result, rows=result.rows[:rows], points=(*fronts.values(), *others))


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def front(
    points: Iterable[Found], first: Callable[[Found], float], second: Callable[[Found], float | None]
) -> tuple[Found, ...]:
    """Points that no other one beats in both measures (less is better), along the first measure."""
    placed = [(first(one), value, index, one) for index, one in enumerate(points) if (value := second(one)) is not None]
    kept: list[Found] = []
    best = math.inf
    for _, value, _, one in sorted(placed, key=lambda row: row[:3]):
        if value < best:
            best = value
            kept.append(one)
    return tuple(kept)


def ranked(found: Sequence[Found], currency: str) -> tuple[Found, ...]:
    """Cheapest first; a price in another currency or none at all comes after, by GPUs. Equal ones: what touches the
    answers less, then the shorter tail."""
    return tuple(sorted(found, key=lambda one: _rank(one, currency)))


def _rank(one: Found, currency: str) -> tuple[bool, float, int, int, float]:
    comparable = one.cost is not None and one.cost.currency == currency
    price = one.cost.total_per_hour if one.cost is not None and comparable else 0.0
    return not comparable, round(price, 9), one.gpus, len(one.cautions), one.tail_s or math.inf
