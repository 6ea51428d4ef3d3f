"""What a strategy is: a switch with its condition for use, its benefit, its cost and its quality warning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from calc.engine import Settings, resolve
from calc.judge.decision import Verdict
from calc.judge.lever_changes import Today
from calc.latency import LatencyReport
from calc.memory import MemoryReport, estimate_memory
from calc.messages import Message
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.simulator.replica import Replica, prepare
from calc.units import GB

SEED = 1
"""The same requests for every strategy: differences are the strategy's, not the draw's."""


class Goal(StrEnum):
    """What a strategy is chosen for."""

    COST = "cost"
    LATENCY = "latency"
    LONG_CONTEXT = "long-context"


class Risk(StrEnum):
    """What a strategy adds to the risks of others when several are stacked."""

    ACCURACY = "accuracy"
    FRAGMENTATION = "fragmentation"
    SCHEDULING = "scheduling"
    ROLLBACK = "rollback"


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What a what-if needs and the scenario does not say; every use of one is named in its note."""

    offload_hit_share: float = 0.3
    """Of prompt tokens, found outside the GPU; as much as traces of conversations repeat beyond a small cache."""
    spec_tokens: int = 3
    """Drafted per step."""
    accepted_tokens: float = 1.5
    """Of those, accepted on average: half."""
    kept_share: float = 0.2
    """Of a sequence's tokens, kept by eviction (H2O's budget)."""
    transfer_bytes_per_s: float = 42 * GB
    """Between a prefill and a decode replica: one 400 Gbit/s adapter (Mooncake#813)."""
    routed_share: float = 0.5
    """Of requests, easy enough for the small model."""
    small_model: ModelSpec | None = None
    """Which model those go to; ``None`` = not chosen."""


Changed: TypeAlias = Scenario | Message
"""The scenario with the strategy switched, or one sentence why it cannot be."""
Switch: TypeAlias = Callable[[Scenario, Assumed], Changed]


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The scenario as it is, read once for every condition."""

    scenario: Scenario
    settings: Settings
    memory: MemoryReport
    replica: Replica | None
    """``None`` when it does not fit."""
    latency: LatencyReport | None

    @classmethod
    def of(cls, scenario: Scenario, latency: LatencyReport | None = None) -> Ground:
        """The ground of ``scenario``; ``latency`` is its report, where one was made."""
        memory = estimate_memory(scenario.deployment, scenario.workload)
        replica = prepare(scenario, memory, SEED) if memory.fits else None
        settings = resolve(scenario.deployment)
        return cls(scenario=scenario, settings=settings, memory=memory, replica=replica, latency=latency)

    @property
    def today(self) -> Today:
        """The same as the levers of the decision take it."""
        return Today(
            scenario=self.scenario,
            settings=self.settings,
            memory=self.memory,
            latency=self.latency,
            limit_load=None,
        )


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A condition for use on the scenario."""

    verdict: Verdict
    statement: Message
    """With its numbers."""


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One row of the table."""

    code: str
    name: Message
    goals: tuple[Goal, ...]
    is_on: Callable[[Scenario], bool]
    switch_on: Switch
    switch_off: Switch
    judge: Callable[[Ground], Judged]
    benefit: Message
    """Which metric gains, and by what."""
    cost: Message
    quality: Message | None
    """What it may do to answers; ``None`` = answers are the same."""
    source: Message
    risks: tuple[Risk, ...] = ()
    assumes: tuple[str, ...] = ()
    """Fields of :class:`Assumed` that its change rests on while the scenario does not say."""
