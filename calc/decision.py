"""What a decision is made of: findings with their numbers, what-ifs, and one of six outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calc.evidence import Evidence
from calc.latency import LatencyReport
from calc.memory import MemoryReport
from calc.messages import Message
from calc.scenario import Scenario


class Outcome(StrEnum):
    """The six answers."""

    OPTIMISE_CACHE = "optimise-cache"
    ADD_MEMORY = "add-memory"
    RE_ARCHITECT = "re-architect"
    TUNE_SCHEDULING = "tune-scheduling"
    NO_CHANGE = "no-change"
    MEASURE_FIRST = "measure-first"


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
