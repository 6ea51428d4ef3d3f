"""What a scenario does in one row: memory, latency at the SLO's percentile, load carried, cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from calc.cost import cost_of
from calc.evidence import Provenance
from calc.judge.trials import is_fine
from calc.latency import LatencyReport, load_of, predict, with_load
from calc.memory import estimate_memory, sequences_at
from calc.scenario import Scenario
from calc.strategies.strategy import SEED
from calc.workload import Closed

REQUESTS = 1000
SEARCH_REQUESTS = 300
SEARCH_STEPS = 6
"""Halvings of the stable range in the search for the highest load within the SLO: to 2 % of it."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a scenario does: memory, latency at the SLO's percentile, load carried, cost. ``None`` = not known."""

    scenario: Scenario
    fits: bool
    gpu_count: int
    held_requests: float | None
    """Requests of this load's mean length that the pools of all replicas hold."""
    ttft_s: float | None = None
    itl_s: float | None = None
    e2e_s: float | None = None
    tpot_s: float | None = None
    """Mean over requests."""
    max_load: float | None = None
    """Highest load that meets every target (requests/s, or concurrency of a closed loop); without targets the
    stability limit."""
    max_rate_per_s: float | None = None
    """Stability limit."""
    saturated: bool = False
    slo_met: bool | None = None
    cost_per_million: float | None = None
    """Per million output tokens, at today's load."""
    provenance: str = Provenance.SIMULATED.value
    latency: LatencyReport | None = None


def figures(scenario: Scenario) -> Figures:
    """Memory, latency at today's load, and the highest load within the SLO."""
    steady = replace(scenario, workload=replace(scenario.workload, num_requests=None))
    memory = estimate_memory(steady.deployment, steady.workload)
    count = steady.deployment.gpu_count
    if not memory.fits:
        return Figures(scenario=steady, fits=False, gpu_count=count, held_requests=0.0)
    load = steady.workload
    live = min(memory.max_model_len_tokens, load.prompt_tokens.mean() + load.output_tokens.mean() / 2)
    held = sequences_at(steady.deployment, memory, max(1, round(live))) * steady.deployment.replicas
    report = predict(steady, memory=memory, requests=REQUESTS, seed=SEED)
    share, cost = steady.slo.percentile_share, cost_of(steady, report)
    return Figures(
        scenario=steady,
        fits=True,
        gpu_count=count,
        held_requests=held,
        ttft_s=report.ttft.at(share),
        itl_s=report.itl.at(share),
        e2e_s=report.e2e.at(share),
        tpot_s=report.tpot.mean_s,
        max_load=_highest(steady, report),
        max_rate_per_s=report.max_rate_per_s,
        saturated=report.saturated,
        slo_met=report.slo_met,
        cost_per_million=cost.per_million_output_tokens if cost else None,
        latency=report,
    )


def _highest(scenario: Scenario, now: LatencyReport) -> float | None:
    """Highest load that meets every target; without targets the stability limit (not known for a closed loop)."""
    load, closed = load_of(scenario.workload), isinstance(scenario.workload.arrivals, Closed)
    if now.slo_met is None:
        return None if closed else now.max_rate_per_s
    low, high = (load, math.inf) if is_fine(now) else (0.0, load)
    ceiling = math.inf if closed else now.max_rate_per_s
    high = min(high, ceiling)
    for _ in range(SEARCH_STEPS):
        middle = 2 * low if math.isinf(high) else (low + high) / 2
        report = predict(
            replace(scenario, workload=with_load(scenario.workload, middle)), requests=SEARCH_REQUESTS, seed=SEED
        )
        low, high = (middle, high) if is_fine(report) else (low, middle)
    return low
