"""Trying a scenario out: memory, latency at its load, and the highest load it carries."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from calc.errors import InputError
from calc.judge.lever_changes import PLANNED_SHARE
from calc.judge.lever_loads import with_hits
from calc.latency import LatencyReport, load_of, with_load
from calc.latency_report import Verdict, build_report, verdict
from calc.memory import MemoryReport, at_peak, estimate_memory
from calc.messages import Message
from calc.scenario import Scenario
from calc.simulator.replica import Replica, prepare, reloaded, run_replica
from calc.step.efficiency import Efficiency
from calc.workload import Closed, Slo, Workload

SEED = 1
"""The same requests for every lever: differences are the lever's, not the draw's."""
SEARCH_REQUESTS = 200
"""Requests simulated for each step of a search for the highest load."""
IDLE_REQUESTS = 200
"""Requests simulated one after the other on an idle server."""
SEARCH_STEPS = 2
"""Halvings of the bracket (doublings while it is open) around the highest load of a lever that meets the SLO now; one
that does not is left at that. The lower end is reported: the headroom is a promise."""
FINE_SEARCH_STEPS = 5
"""The same for the scenario as it is, from which the number of replicas is worked out."""
MOST_HITS_SHARE = 0.99
"""Highest hit rate looked for: the last tokens of a prompt are always computed (agentic coding reports 95-99 %)."""
BREAK_EVEN_STEPS = 5
"""Halvings of the hit share: to 3 points of a percent of 100."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A scenario tried out."""

    scenario: Scenario
    memory: MemoryReport
    latency: LatencyReport | None
    """``None`` when it does not fit or its speed cannot be predicted."""
    limit_load: float | None
    headroom_per_s: float | None
    carries: bool | None
    problem: Message | None = None
    """Why its speed cannot be predicted."""
    replica: Replica | None = None
    """What it was simulated on."""


def try_out(
    scenario: Scenario, requests: int, *, steps: int = SEARCH_STEPS, efficiency: Efficiency | None = None
) -> Trial:
    """Memory and latency of a scenario in steady load, and the highest load it carries."""
    steady = replace(scenario, workload=replace(scenario.workload, num_requests=None))
    memory = estimate_memory(steady.deployment, steady.workload)
    if not memory.fits:
        return replace(_unpredicted(steady, memory, None), carries=False)
    try:
        replica = prepare(steady, memory, SEED, efficiency)
        bench = _Bench(slo=steady.slo, workload=steady.workload, replica=replica)
        latency = bench.at(load_of(steady.workload), requests)
        limit, best_rate = _search(bench, latency, steps)
    except InputError as error:
        return _unpredicted(steady, memory, error.message)
    peak = latency.concurrency / steady.deployment.replicas
    return Trial(
        scenario=steady,
        memory=at_peak(memory, steady.deployment, steady.workload, peak),
        latency=latency,
        limit_load=limit,
        headroom_per_s=_headroom(steady.workload, latency, limit, best_rate),
        carries=_carries(latency, limit, load_of(steady.workload)),
        replica=replica,
    )


def _unpredicted(scenario: Scenario, memory: MemoryReport, problem: Message | None) -> Trial:
    return Trial(
        scenario=scenario,
        memory=memory,
        latency=None,
        limit_load=None,
        headroom_per_s=None,
        carries=None,
        problem=problem,
    )


def idle_report(trial: Trial) -> LatencyReport | None:
    """One request at a time: what an idle server answers with; ``None`` where its speed cannot be predicted."""
    if trial.replica is None:
        return None
    alone = replace(trial.scenario.workload, arrivals=Closed(concurrency=1))
    return _Bench(slo=trial.scenario.slo, workload=alone, replica=trial.replica).at(1.0, IDLE_REQUESTS)


def is_fine(report: LatencyReport) -> bool:
    """Stable, and no stated target missed."""
    return not report.saturated and report.slo_met is not False


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """One prepared replica on which several loads are tried."""

    slo: Slo
    workload: Workload
    replica: Replica

    def at(self, load: float, requests: int) -> LatencyReport:
        """What is shown of a load."""
        workload = with_load(self.workload, load)
        result = run_replica(self.replica, workload, requests, SEED)
        return build_report(self.slo, self.replica, workload, result, self.replica.calibration, bands=False)

    def judge(self, load: float) -> Verdict:
        """What a search asks of it."""
        workload = with_load(self.workload, load)
        return verdict(self.slo, self.replica, workload, run_replica(self.replica, workload, SEARCH_REQUESTS, SEED))


def _search(bench: _Bench, now: LatencyReport, steps: int) -> tuple[float | None, float | None]:
    """Highest load shown to be fine, and the rate completed there; the planned load is tried before anything else."""
    load, closed = load_of(bench.workload), isinstance(bench.workload.arrivals, Closed)
    if now.slo_met is None:
        return (None, None) if closed else (now.max_rate_per_s, None)
    ceiling = math.inf if closed else now.max_rate_per_s
    if not is_fine(now):
        return _bisect(bench, 0.0, min(load, ceiling), None, steps) if steps > SEARCH_STEPS else (None, None)
    planned = load / PLANNED_SHARE
    if planned <= ceiling:
        tried = bench.judge(planned)
        if tried.fine:
            return _bisect(bench, planned, ceiling, tried.request_rate_per_s, steps)
    return _bisect(bench, load, min(planned, ceiling), now.request_rate_per_s, steps)


def _bisect(bench: _Bench, low: float, high: float, best_rate: float | None, steps: int) -> tuple[float, float | None]:
    for _ in range(steps if high > low else 0):
        middle = (low + high) / 2 if math.isfinite(high) else 2 * low
        tried = bench.judge(middle)
        if tried.fine:
            low, best_rate = middle, tried.request_rate_per_s
        else:
            high = middle
    return low, best_rate


def _carries(now: LatencyReport, limit: float | None, load: float) -> bool | None:
    if not is_fine(now):
        return False
    return None if limit is None else limit >= load / PLANNED_SHARE


def _headroom(workload: Workload, now: LatencyReport, limit: float | None, best_rate: float | None) -> float | None:
    if limit is None:
        return None
    if isinstance(workload.arrivals, Closed):
        return (best_rate or 0.0) - now.request_rate_per_s
    return limit - load_of(workload)


def needed_hit_share(scenario: Scenario, *, efficiency: Efficiency | None = None) -> float | None:
    """Least hit share with which prefix reuse alone carries today's load; ``None`` when none does.

    Shares at which the load is beyond the stability limit are left out without a simulation.
    """
    steady = replace(scenario, workload=replace(scenario.workload, num_requests=None))
    load, memory = load_of(steady.workload) / PLANNED_SHARE, estimate_memory(steady.deployment)
    low, high = steady.workload.prefix_hit_share, MOST_HITS_SHARE
    if not memory.fits:
        return None
    reusing = prepare(with_hits(steady, high), memory, SEED, efficiency)
    is_open = not isinstance(steady.workload.arrivals, Closed)

    def fine(share: float) -> bool:
        workload = with_hits(steady, share).workload
        replica = reloaded(reusing, workload, SEED)
        if is_open and load >= replica.limits.max_rate_per_s * replica.split:
            return False
        return _Bench(slo=steady.slo, workload=workload, replica=replica).judge(load).fine

    if not fine(high):
        return None
    for _ in range(BREAK_EVEN_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if fine(middle) else (middle, high)
    return high
