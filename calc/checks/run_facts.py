"""What the validity rules look at and what they answer with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from calc.evidence import Percentiles
from calc.messages import Message

DRAINED_IN = 2.0
"""Times the highest percentile known: the slowest request of all is slower, and it ends the run."""
ERROR, WARNING, INFO = "E", "W", "I"
"""E = cannot be used as it stands, ask; W = a badge on the run; I = information."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """The numbers of one load point that the rules look at. Seconds, tokens, shares; ``None`` = not known."""

    model: str | None = None
    request_rate_per_s: float | None = None
    request_rate_is_infinite: bool = False
    max_concurrency: int | None = None
    achieved_concurrency: float | None = None
    """Requests in flight on the mean, as the file states it."""
    peak_concurrency: int | None = None
    """Most requests in flight at any moment, never less than there were."""
    num_prompts: int | None = None
    completed: int | None = None
    failed: int | None = None
    incomplete: int | None = None
    """Requests cut off by the end of the run."""
    success_share: float | None = None
    duration_s: float | None = None
    input_tokens_mean: float | None = None
    input_tokens_p50: float | None = None
    output_tokens_mean: float | None = None
    request_throughput_per_s: float | None = None
    output_token_throughput_per_s: float | None = None
    total_token_throughput_per_s: float | None = None
    ambiguous_throughput_per_s: float | None = None
    ttft: Percentiles = field(default_factory=Percentiles)
    tpot: Percentiles = field(default_factory=Percentiles)
    itl: Percentiles = field(default_factory=Percentiles)
    e2e: Percentiles = field(default_factory=Percentiles)
    prefix_hit_share: float | None = None
    client_queue_timed: bool = False
    """True when the client's own waiting is part of the file."""
    schedule_delay_s: float | None = None
    """How far the client sent behind its own schedule, at the highest percentile the file has."""
    latency_growth_ratio: float | None = None
    """Median latency of the last third of the requests over that of the first, where it is a trend and no chance."""
    dataset: str | None = None
    """What the prompts were made of, in the tool's word: ``random``, ``sharegpt``, ``prefix_repetition`` …"""
    reuse_declared: bool | None = None
    """False when the run was meant to have no prefix reuse."""
    prefill_limit_tokens_per_s: float | None = None
    """Fastest possible prefill of this model on these GPUs, when the caller knows it."""
    started_at: str | None = None
    """When the run began, as text that sorts by time."""
    tool: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    gpu: str | None = None
    gpu_count: int | None = None
    settings: tuple[tuple[str, str | float], ...] = ()
    """Further settings that tell two runs apart: GPU, GPU count, swept engine options."""
    table: bool = False
    """A hand-made table: columns it does not have are seen on the page and are no finding."""
    flags: tuple[str, ...] = ()
    """Codes the reader of the file found itself."""


@dataclass(frozen=True, kw_only=True)
class ValidityFinding:
    """One code of the closed list, with the numbers that fired it and what to do."""

    code: str
    severity: str
    text: Message
    fields: tuple[str, ...] = ()


Rule: TypeAlias = Callable[[RunFacts], ValidityFinding | None]


def latencies(facts: RunFacts) -> tuple[Percentiles, ...]:
    """TTFT, TPOT, ITL and E2E."""
    return facts.ttft, facts.tpot, facts.itl, facts.e2e


def scaled(stats: Percentiles, factor: float) -> Percentiles:
    """Every statistic times ``factor``; what is not known stays so."""
    known = {field.name: getattr(stats, field.name) for field in fields(Percentiles)}
    return Percentiles(**{name: None if value is None else value * factor for name, value in known.items()})


def has_tail(facts: RunFacts) -> bool:
    """True when any latency has a percentile above the median."""
    return any(p is not None for stats in latencies(facts) for p in (stats.p90_s, stats.p95_s, stats.p99_s))


def answered(facts: RunFacts) -> int | None:
    """Requests the statistics rest on: completed, else sent."""
    return facts.completed if facts.completed is not None else facts.num_prompts


def slowest_s(stats: Percentiles) -> float | None:
    """The highest statistic that is known, seconds."""
    known = [v for v in (stats.p99_s, stats.p95_s, stats.p90_s, stats.p50_s, stats.mean_s) if v is not None]
    return max(known, default=None)


def is_drained(facts: RunFacts) -> bool:
    """A load sent on a schedule: its duration may end with the last request sent, its rate with the last answer."""
    rate, slowest = facts.request_throughput_per_s, slowest_s(facts.e2e)
    if facts.schedule_delay_s is None or not rate or not facts.completed or not facts.duration_s or slowest is None:
        return False
    return 0 <= facts.completed / rate - facts.duration_s <= DRAINED_IN * slowest


def achieved_per_s(facts: RunFacts) -> float | None:
    """Requests per second as written, else completed / duration."""
    if facts.request_throughput_per_s is not None:
        return facts.request_throughput_per_s
    return facts.completed / facts.duration_s if facts.completed is not None and facts.duration_s else None
