"""What a decision is made of: findings with their numbers, what-ifs, and one of six outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from calc.evidence import Evidence
from calc.latency import LatencyReport
from calc.memory import MemoryReport
from calc.messages import Message, msg
from calc.metrics import Layer
from calc.scenario import Scenario


class Outcome(StrEnum):
    """The six answers."""

    OPTIMISE_CACHE = "optimise-cache"
    ADD_MEMORY = "add-memory"
    RE_ARCHITECT = "re-architect"
    TUNE_SCHEDULING = "tune-scheduling"
    NO_CHANGE = "no-change"
    MEASURE_FIRST = "measure-first"


OUTCOME_NAMES: Mapping[Outcome, Message] = MappingProxyType(
    {
        Outcome.OPTIMISE_CACHE: msg("Optimise the cache"),
        Outcome.ADD_MEMORY: msg("Add memory or GPUs"),
        Outcome.RE_ARCHITECT: msg("Re-architect"),
        Outcome.TUNE_SCHEDULING: msg("Tune scheduling"),
        Outcome.NO_CHANGE: msg("Change nothing"),
        Outcome.MEASURE_FIRST: msg("Measure first"),
    }
)
"""The six answers in words."""


BOTTLENECK_NAMES: Mapping[str, Message] = MappingProxyType(
    {
        "compute": msg("compute"),
        "memory_bandwidth": msg("memory bandwidth"),
        "memory_capacity": msg("memory capacity"),
        "sequences": msg("max sequences"),
        "scheduling": msg("scheduling"),
        "communication": msg("communication"),
        "transfer": msg("transfer"),
        "overhead": msg("per-step overhead"),
        "none": msg("nothing"),
        "unknown": msg("not known"),
    }
)
"""What binds, in words."""


class Verdict(StrEnum):
    """A condition against its evidence."""

    MET = "met"
    NOT_MET = "not-met"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One condition, what the evidence says about it, and against which threshold."""

    rule: str
    """Code, e.g. ``cache.prefill-share``."""
    supports: Outcome
    title: Message
    verdict: Verdict
    statement: Message
    """The condition with the number and the threshold in it, or what is missing."""
    evidence: tuple[Evidence, ...]
    threshold: str
    source: str
    guard: bool = False
    """True: when met, speaks against ``supports``."""
    sources: tuple[Message, ...] = ()
    """Where each line was published, or what the condition rests on; ``source`` is all of them in English."""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """One lever pulled on the user's own scenario, everything else unchanged."""

    lever: str
    """Code, e.g. ``prefix-cache``."""
    title: Message
    supports: Outcome
    scenario: Scenario | None
    """``None`` when the lever cannot be applied; ``note`` says why."""
    memory: MemoryReport | None
    latency: LatencyReport | None
    cost_per_million_tokens: float | None
    headroom_per_s: float | None
    """Requests/s above today's load that still meet the SLO."""
    meets_slo: bool | None
    note: Message
    """Condition for use, cost and quality warning."""
    carries: bool | None = None
    """Fits, is stable and meets the SLO at today's load and at the load planned for (today's ÷ 0.8)."""
    limit_load: float | None = None
    """Highest load carried, in the unit of the arrivals: requests per second, or concurrency of a closed loop."""
    cost_per_hour: float | None = None
    """Reserved, in the currency of the prices."""


class Strain(StrEnum):
    """How a layer of the service stands."""

    CALM = "calm"
    STRAINED = "strained"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class LayerState:
    """One layer and the finding that speaks for it."""

    layer: Layer
    strain: Strain
    statement: Message


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The answer, why, what else, and what would change it."""

    outcome: Outcome
    bottleneck: str
    """compute, memory_bandwidth, memory_capacity, scheduling, transfer, none or unknown."""
    diagnosis: str
    """cache_not_hit, cache_fills_memory, transfer_is_bottleneck, model_or_scheduling or unknown."""
    headline: Message
    because: tuple[Message, ...]
    """At most three facts."""
    runner_up: Outcome | None
    flips_when: Message | None
    first_lever: str | None
    findings: tuple[Finding, ...]
    what_ifs: tuple[WhatIf, ...]
    missing: tuple[Message, ...]
    risks: tuple[Message, ...]
    legs_agree: bool
    """False: the conditions and the what-ifs point to different outcomes; the page says so."""
    model_version: str
    conditions_outcome: Outcome | None = None
    """What the conditions alone say."""
    what_ifs_outcome: Outcome | None = None
    """What the levers alone say; ``None`` when none was simulated."""
    first_lever_title: Message | None = None
    layers: tuple[LayerState, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    """Everything known, measured figures in place of calculated ones."""
