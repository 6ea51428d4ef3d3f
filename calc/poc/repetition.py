"""Loads that repeat prompts to a known degree, and the hit rate they must show on a cache of known size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calc.poc.cells import Repetition

PREFIX_SHARE = 0.8
"""Of a prompt that can repeat: the ceiling of every hit rate, whatever the level. Published traffic hits 37-65 %."""
USES_MEDIUM = 2
HIGH_PREFIXES = 5
"""High: so few prefixes that no cache is too small for them. Most tools' own defaults are this level."""
REQUESTS_MULTIPLE = HIGH_PREFIXES * USES_MEDIUM
"""Requests come in tens, so that every level divides them without a rest."""
DRAWN_POOL_SHARE = 0.627
"""Prefixes drawn with replacement from a pool: with 0.627 N of them half of N requests meet a new one."""
HIT_TOLERANCE = 0.02
"""A server's own hit rate off by more than two points: the load is not what the command says."""
ROUNDS = 60
"""Bisections; more than a float can tell apart."""


@dataclass(frozen=True, kw_only=True)
class PromptShape:
    """One request: a prefix that others may share, a rest that is its own, and a fixed answer."""

    prefix_tokens: int
    suffix_tokens: int
    output_tokens: int

    @property
    def prompt_tokens(self) -> int:
        """Whole prompt."""
        return self.prefix_tokens + self.suffix_tokens

    @property
    def ceiling_share(self) -> float:
        """Highest hit rate of this shape: every prefix found."""
        return self.prefix_tokens / self.prompt_tokens


@dataclass(frozen=True, kw_only=True)
class RepeatedLoad:
    """``requests`` prompts over ``groups`` distinct prefixes, each used equally often, in shuffled order."""

    shape: PromptShape
    requests: int
    groups: int

    @property
    def uses(self) -> int:
        """Requests that share one prefix."""
        return self.requests // self.groups

    @property
    def working_set_tokens(self) -> int:
        """All prefixes together: to keep it whole the cache needs room for it beside what runs."""
        return self.groups * self.shape.prefix_tokens

    @property
    def pool(self) -> int:
        """Prefixes to offer a tool that draws with replacement, so that as many distinct ones are drawn; 0 = none."""
        if self.uses == 1:
            return 0
        return self.groups if self.groups <= HIGH_PREFIXES else round(DRAWN_POOL_SHARE * self.requests)


@dataclass(frozen=True, kw_only=True)
class Room:
    """What one deployment's cache holds, in tokens of one replica."""

    kv_tokens: float
    running: float = 0.0
    """Requests in flight on one replica."""
    replicas: int = 1
    """Among which requests are spread without looking at their prefixes."""


def shape_of(prompt_tokens: int, output_tokens: int, block_tokens: int) -> PromptShape:
    """A prompt of this length whose prefix ends at a block's end: caches reuse whole blocks only."""
    blocks = int(PREFIX_SHARE * prompt_tokens) // block_tokens
    prefix = max(1, blocks * block_tokens or int(PREFIX_SHARE * prompt_tokens))
    return PromptShape(
        prefix_tokens=prefix, suffix_tokens=max(1, prompt_tokens - prefix), output_tokens=max(1, output_tokens)
    )


def load_of(level: Repetition, shape: PromptShape, requests: int) -> RepeatedLoad:
    """Low: every prefix once. Medium: every prefix twice. High: five prefixes for all."""
    return RepeatedLoad(shape=shape, requests=requests, groups=_GROUPS[level](requests))


_GROUPS: Mapping[Repetition, Callable[[int], int]] = MappingProxyType(
    {
        Repetition.LOW: lambda requests: requests,
        Repetition.MEDIUM: lambda requests: requests // USES_MEDIUM,
        Repetition.HIGH: lambda _: HIGH_PREFIXES,
    }
)


def unlimited_hit_share(load: RepeatedLoad) -> float:
    """Hit rate of a cache that never evicts: (N − G)/N · prefix/prompt."""
    return (1 - load.groups / load.requests) * load.shape.ceiling_share


def expected_hit_share(load: RepeatedLoad, room: Room) -> float:
    """Hit rate of prompt tokens under least-recently-used eviction, exact counts in shuffled order.

    A prefix is found again when no more than m other requests came between: m is how many fit into the cache beside
    what runs. Of k uses spread at random over N requests a gap is at most m with 1 − (1 − m/N)^k. Replicas that are
    chosen at random each have to see a prefix once: R·(1 − (1 − 1/R)^k) first uses of k in place of one.
    """
    uses, replicas = load.uses, room.replicas
    reached: float = 1 - (1 - _window(load, room, _distinct_exact) / load.requests) ** uses
    first_uses: float = replicas * (1 - (1 - 1 / replicas) ** uses)
    return max(0.0, 1 - first_uses / uses) * reached * load.shape.ceiling_share


def drawn_hit_share(load: RepeatedLoad, room: Room) -> float:
    """The same for tools that draw each prefix with replacement from ``load.pool``.

    Request i finds its prefix among the last min(i, m) with 1 − (1 − 1/pool)^min(i, m).
    """
    if not load.pool:
        return 0.0
    window, requests = _window(load, room, _distinct_drawn), load.requests
    kept: float = (1 - 1 / load.pool) ** (1 / room.replicas)
    full = int(window)
    rising = full - (1 - kept**full) / (1 - kept)
    return max(0.0, rising + (requests - full) * (1 - kept**full)) / requests * load.shape.ceiling_share


def missed_at_start_share(load: RepeatedLoad, concurrency: float) -> float:
    """Most that the start can cost: requests in flight together all miss a prefix that none has computed yet."""
    first = min(float(load.requests), concurrency)
    return max(0.0, first - _distinct_exact(load, first)) / load.requests * load.shape.ceiling_share


def _window(load: RepeatedLoad, room: Room, distinct: Callable[[RepeatedLoad, float], float]) -> float:
    """Requests back to which everything is still cached: those that run, and as many finished ones as the rest holds.

    In requests of the whole deployment: a replica sees one in R of them.
    """
    shape = load.shape

    def running_tokens(requests: float) -> float:
        return requests * (shape.suffix_tokens + shape.output_tokens / 2) + shape.prefix_tokens * distinct(
            load, requests
        )

    def finished_tokens(requests: float) -> float:
        new = distinct(load, room.running + requests) - distinct(load, room.running)
        return requests * (shape.suffix_tokens + shape.output_tokens) + shape.prefix_tokens * new

    free = room.kv_tokens - running_tokens(room.running)
    most = max(0.0, load.requests / room.replicas - room.running)
    kept = _largest(lambda requests: finished_tokens(requests) <= free, most)
    return min(float(load.requests), (room.running + kept) * room.replicas)


def _largest(fits: Callable[[float], bool], most: float) -> float:
    """Largest number up to ``most`` that fits, where smaller ones fit whenever larger ones do."""
    if fits(most):
        return most
    low, high = 0.0, most
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _distinct_exact(load: RepeatedLoad, requests: float) -> float:
    """Distinct prefixes among so many neighbouring requests."""
    seen: float = 1 - (1 - min(1.0, requests / load.requests)) ** load.uses
    return load.groups * seen


def _distinct_drawn(load: RepeatedLoad, requests: float) -> float:
    seen: float = 1 - (1 - 1 / load.pool) ** requests
    return load.pool * seen
