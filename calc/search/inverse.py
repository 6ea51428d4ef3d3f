"""The inverse questions: how much load a box carries, how many GPUs some users need, how long prompts may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from calc.errors import InputError
from calc.judge import lever_loads
from calc.latency import LatencyReport, load_of, predict, with_load
from calc.memory import MemoryReport, estimate_memory
from calc.messages import msg
from calc.scenario import Scenario
from calc.units import SECONDS_PER_MINUTE
from calc.workload import MAX_CONCURRENCY, Closed, Workload, longest_request_tokens

REQUESTS = 1000
"""Simulated per step, as many as a page shows: the answer and the page then agree."""
STEPS = 7
"""Halvings of the bracket: to a hundredth of it."""
MAX_FACTOR = 64.0
"""How many times longer than today prompts are tried at most."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """From people to requests: users × active share × requests per minute × peak factor ÷ 60."""

    active_share: float = 0.2
    """Of all users, at work with the service at the same time (0-1). llm-d-planner plans with 10 to 25 %."""
    requests_per_minute: float = 1.0
    """Of an active user. llm-d-planner plans with 0.03 (batch) to 2 (chat, completion)."""
    peak_factor: float = 2.0
    """Busiest minute over the mean. llm-d-planner plans with 1.5 to 2.5."""

    def __post_init__(self) -> None:
        if not (0 < self.active_share <= 1 and self.requests_per_minute > 0 and self.peak_factor >= 1):
            raise InputError(
                msg(
                    "users need an active share above 0 and at most 1, requests per minute above 0, and a peak factor "
                    "of at least 1: correct them."
                )
            )

    def rate_per_s(self, users: float) -> float:
        """Requests per second at the peak."""
        return users * self.active_share * self.requests_per_minute * self.peak_factor / SECONDS_PER_MINUTE

    def users(self, rate_per_s: float) -> float:
        """People whose peak is this rate."""
        return rate_per_s / self.rate_per_s(1.0)


POPULATION_SOURCE = "llm-d-planner usecase_slo_workload.json: active 10-25 %, 0.03-2 requests a minute, peak 1.5-2.5"


@dataclass(frozen=True, kw_only=True)
class HighestLoad:
    """The highest load a deployment carries within its SLO."""

    load: float
    """Requests per second; concurrency for a closed loop; 0 = not even the least."""
    report: LatencyReport | None
    """At that load."""
    binds: str
    """``ttft``, ``itl`` or ``e2e``: the target missed just above it; else what limits stability."""


def highest_load(
    scenario: Scenario, *, memory: MemoryReport | None = None, requests: int = REQUESTS, steps: int = STEPS
) -> HighestLoad:
    """By halving between the load shown to hold and the one shown not to; the lower end is reported."""
    known = memory or estimate_memory(scenario.deployment)

    def at(load: float) -> LatencyReport:
        workload = replace(with_load(scenario.workload, load), num_requests=None)
        return predict(replace(scenario, workload=workload), memory=known, requests=requests)

    now = load_of(scenario.workload)
    first = at(now)
    closed = isinstance(scenario.workload.arrivals, Closed)
    limit = float(MAX_CONCURRENCY) if closed else first.max_rate_per_s
    if closed and not scenario.slo.has_target:
        return HighestLoad(load=now, report=first, binds=first.limit)
    return _halve(scenario, at, (now, first), limit, steps)


def _halve(
    scenario: Scenario,
    at: Callable[[float], LatencyReport],
    now: tuple[float, LatencyReport],
    limit: float,
    steps: int,
) -> HighestLoad:
    closed = isinstance(scenario.workload.arrivals, Closed)
    low, best = now if _fine(now[1]) else (0.0, None)
    high, missed = (limit, None) if best else now
    for _ in range(steps):
        open_end = missed is None and high > 2 * low
        middle = 2 * low if open_end and low else (low + high) / 2
        middle = round(middle) if closed else middle
        if middle in (low, high) or middle <= 0:
            break
        report = at(middle)
        if _fine(report):
            low, best = float(middle), report
        else:
            high, missed = float(middle), report
    return HighestLoad(load=low, report=best, binds=_missed_target(scenario, missed))


def _fine(report: LatencyReport) -> bool:
    return not report.saturated and report.slo_met is not False


def _missed_target(scenario: Scenario, report: LatencyReport | None) -> str:
    """The target furthest over, in a report that misses one; else what limits the rate."""
    if report is None:
        return "compute"
    slo, share = scenario.slo, scenario.slo.percentile_share
    pairs = (("ttft", report.ttft, slo.ttft_s), ("itl", report.itl, slo.itl_s), ("e2e", report.e2e, slo.e2e_s))
    over = {name: (stat.at(share) or 0.0) / target for name, stat, target in pairs if target is not None}
    worst = max(over, key=lambda name: over[name], default="")
    return worst if worst and over[worst] > 1 else report.limit


def headroom_of(scenario: Scenario, now: LatencyReport, *, steps: int = STEPS) -> float | None:
    """Requests per second above today's that still meet the SLO; a closed loop's loads are turned into rates."""
    found = highest_load(scenario, steps=steps)
    if isinstance(scenario.workload.arrivals, Closed):
        return None if found.report is None else found.report.request_rate_per_s - now.request_rate_per_s
    return found.load - load_of(scenario.workload)


@dataclass(frozen=True, kw_only=True)
class Enough:
    """The fewest replicas of the scenario's own kind that carry a load."""

    replicas: int | None
    """``None`` = not within the GPUs allowed."""
    report: LatencyReport | None
    rate_per_s: float


def gpus_for(scenario: Scenario, rate_per_s: float, *, most_gpus: int) -> Enough:
    """Replicas of the scenario's deployment for another rate, everything else as it is."""
    workload = replace(with_load(scenario.workload, rate_per_s), num_requests=None)
    memory = estimate_memory(scenario.deployment)
    each = scenario.deployment.gpus_per_replica

    def at(replicas: int) -> LatencyReport:
        asked = replace(scenario, deployment=replace(scenario.deployment, replicas=replicas), workload=workload)
        return predict(asked, memory=memory, requests=REQUESTS)

    most = most_gpus // each
    if most < 1:
        return Enough(replicas=None, report=None, rate_per_s=rate_per_s)
    least = max(1, math.floor(rate_per_s / at(1).max_rate_per_s) + 1)
    low, high, best = least - 1, least, None
    while high <= most:
        best = at(high)
        if _fine(best):
            break
        low, high, best = high, max(high + 1, math.ceil(high * 1.5)), None
        high = min(high, most) if low < most else high
    while best is not None and high - low > 1:
        middle = (low + high) // 2
        report = at(middle)
        low, high, best = (low, middle, report) if _fine(report) else (middle, high, best)
    return Enough(replicas=high if best else None, report=best, rate_per_s=rate_per_s)


@dataclass(frozen=True, kw_only=True)
class LongestContext:
    """How long prompts may be at today's load; the shape of their distribution stays."""

    factor: float
    """Of today's lengths; 0 = today's own are too long."""
    workload: Workload
    """With prompts of that length."""
    report: LatencyReport | None
    ends_at: str
    """What stops longer ones: ``model`` (its maximum length), ``memory``, a target, or the stability limit."""


def longest_context(scenario: Scenario, *, steps: int = STEPS) -> LongestContext:
    """By halving the factor between lengths that hold and lengths that do not."""
    low, high, best, end = 0.0, MAX_FACTOR, None, "model"
    middle = 1.0
    for _ in range(steps + 2):
        report, reason = _at_length(scenario, middle)
        if report is not None and _fine(report):
            low, best = middle, report
        else:
            high, end = middle, reason
        middle = low * 2 if low and low * 2 < high else (low + high) / 2
    workload = with_prompts(scenario, low or 1.0).workload
    return LongestContext(factor=low, workload=workload, report=best, ends_at=end)


def _at_length(scenario: Scenario, factor: float) -> tuple[LatencyReport | None, str]:
    """The report with prompts that much longer and an engine started for them, and what fails if it does."""
    asked = with_prompts(scenario, factor)
    longest = asked.deployment.max_model_len_tokens or 0
    if longest > asked.deployment.model.max_position_tokens:
        return None, "model"
    memory = estimate_memory(asked.deployment)
    if not memory.fits:
        return None, "memory"
    report = predict(asked, memory=memory, requests=REQUESTS)
    return report, _missed_target(asked, report)


def with_prompts(scenario: Scenario, factor: float) -> Scenario:
    """The scenario with prompts ``factor`` times as long, and a maximum length that takes them."""
    workload = replace(lever_loads.with_prompts(scenario, factor).workload, num_requests=None)
    now = scenario.deployment.max_model_len_tokens or scenario.deployment.model.max_position_tokens
    longest = max(longest_request_tokens(workload), now) if factor > 1 else now
    return replace(scenario, workload=workload, deployment=replace(scenario.deployment, max_model_len_tokens=longest))
