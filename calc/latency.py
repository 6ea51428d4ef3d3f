"""Scenario → latency: decomposed, with percentiles, at one load and over a sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from calc.latency_report import LatencyReport, LoadSweep, build_report, verdict
from calc.memory import MemoryReport
from calc.order_statistics import Bands
from calc.scenario import Scenario
from calc.simulator.replica import Replica, prepare, run_replica
from calc.step.efficiency import Efficiency
from calc.step.ingress import front_notes
from calc.workload import (
    MAX_CONCURRENCY,
    MAX_RATE_PER_S,
    MIN_RATE_PER_S,
    Closed,
    Mmpp,
    OpenLoop,
    PerMinute,
    Recorded,
    Slo,
    Workload,
)

__all__ = ["Bands", "LatencyReport", "LoadSweep", "headroom_per_s", "load_of", "predict", "sweep", "with_load"]

SWEEP_LOW_SHARE = 0.15
SWEEP_HIGH_SHARE = 1.1
"""A sweep covers these shares of the stability limit."""
SWEEP_REQUESTS = 20_000
"""Most requests of a finite benchmark simulated per point of a sweep."""
KNEE_ROUNDS = 7
"""Bisections of the knee: within 1 % of the interval between two sweep points."""


def predict(
    scenario: Scenario,
    *,
    memory: MemoryReport | None = None,
    requests: int = 1000,
    seed: int = 1,
    efficiency: Efficiency | None = None,
    calibration: str | None = None,
) -> LatencyReport:
    """Latency at the scenario's load, simulated on one replica's even share of it.

    A workload with ``num_requests`` is simulated whole, ramp included, like the benchmark it describes; otherwise
    ``requests`` are measured in steady load. T_queue runs from arrival to the first step that works on the request,
    T_prefill to its first token, T_decode to its last, T_network is client and HTTP; their means add up to E2E.
    The scenario's own calibration is applied and named unless ``efficiency`` is given.
    """
    replica = prepare(scenario, memory, seed, efficiency)
    name = replica.calibration if calibration is None else calibration
    return _predict(scenario.slo, replica, scenario.workload, requests, seed, name)


def sweep(
    scenario: Scenario,
    *,
    points: int = 5,
    requests: int = 1000,
    memory: MemoryReport | None = None,
    seed: int = 1,
    efficiency: Efficiency | None = None,
    calibration: str | None = None,
    operating: LatencyReport | None = None,
) -> LoadSweep:
    """Reports from light load to beyond the stability limit, the operating load among them, and the knee.

    ``operating``: what :func:`predict` said of the operating load with the same requests and seed, if it is known.
    """
    replica = prepare(scenario, memory, seed, efficiency)
    name = replica.calibration if calibration is None else calibration
    workload = scenario.workload
    if workload.num_requests is not None:
        workload = replace(workload, num_requests=min(workload.num_requests, SWEEP_REQUESTS))

    def at(load: float) -> LatencyReport:
        if operating is not None and load == load_of(workload):
            return operating
        return _predict(scenario.slo, replica, with_load(workload, load), requests, seed, name)

    def met(load: float) -> bool:
        loaded = with_load(workload, load)
        return verdict(scenario.slo, replica, loaded, run_replica(replica, loaded, requests, seed)).fine

    loads = _loads(replica, workload, points)
    reports = tuple(at(load) for load in loads)
    return LoadSweep(
        axis="concurrency" if isinstance(workload.arrivals, Closed) else "rate",
        loads=loads,
        reports=reports,
        operating_load=load_of(workload),
        knee_load=_knee(loads, reports, met) if scenario.slo.has_target else None,
        max_rate_per_s=replica.limits.max_rate_per_s * replica.split,
    )


def headroom_per_s(scenario: Scenario, *, load_sweep: LoadSweep | None = None) -> float | None:
    """Requests per second above today's load that still meet the SLO; negative when it is missed; ``None`` = no target.

    For a closed loop both loads are turned into the rates they complete.
    """
    found = load_sweep or sweep(scenario)
    if not scenario.slo.has_target:
        return None
    if found.axis == "rate":
        return (found.knee_load or 0.0) - found.operating_load
    rates = [report.request_rate_per_s for report in found.reports]
    knee_rate = float(np.interp(found.knee_load, found.loads, rates)) if found.knee_load else 0.0
    return knee_rate - float(np.interp(found.operating_load, found.loads, rates))


def load_of(workload: Workload) -> float:
    """Requests per second of an open loop, concurrency of a closed one."""
    if isinstance(workload.arrivals, Closed):
        return float(workload.arrivals.concurrency)
    return workload.arrivals.rate_per_s


def with_load(workload: Workload, load: float) -> Workload:
    """The same requests at another load, as far as loads are accepted; what changes over time keeps its shape."""
    match workload.arrivals:
        case Closed():
            users = min(max(1, round(load)), MAX_CONCURRENCY)
            return replace(workload, arrivals=Closed(concurrency=users))
        case OpenLoop():
            rate = min(max(load, MIN_RATE_PER_S), MAX_RATE_PER_S)
            return replace(workload, arrivals=replace(workload.arrivals, rate_per_s=rate))
        case (PerMinute(rates_per_s=rates) | Mmpp(rates_per_s=rates)) as shape:
            factor = min(max(load, MIN_RATE_PER_S) / shape.rate_per_s, MAX_RATE_PER_S / max(rates))
            return replace(workload, arrivals=replace(shape, rates_per_s=tuple(rate * factor for rate in rates)))
        case Recorded(times_s=times) as log:
            factor = log.rate_per_s / min(max(load, MIN_RATE_PER_S), MAX_RATE_PER_S)
            return replace(workload, arrivals=replace(log, times_s=tuple(time * factor for time in times)))


def _loads(replica: Replica, workload: Workload, points: int) -> tuple[float, ...]:
    """``points`` rising loads; the one nearest to the operating load is moved onto it."""
    operating = load_of(workload)
    limit = replica.limits
    if isinstance(workload.arrivals, Closed):
        top = max(2.0, SWEEP_HIGH_SHARE * limit.max_batch * replica.split, operating)
        loads = np.unique(np.rint(np.geomspace(1, top, points)))
    else:
        top = max(SWEEP_HIGH_SHARE * limit.max_rate_per_s * replica.split, operating)
        low = min(SWEEP_LOW_SHARE * limit.max_rate_per_s * replica.split, operating)
        loads = np.linspace(low, top, points)
    loads[int(np.argmin(np.abs(np.log(loads / operating))))] = operating
    return tuple(float(load) for load in np.unique(loads))


def _predict(
    slo: Slo, replica: Replica, workload: Workload, requests: int, seed: int, calibration: str
) -> LatencyReport:
    report = build_report(slo, replica, workload, run_replica(replica, workload, requests, seed), calibration)
    if not workload.http:
        return report
    servers = replica.split
    front = front_notes(report.request_rate_per_s / servers, report.output_tokens_per_s / servers)
    return replace(report, notes=report.notes + front)


def _knee(
    loads: tuple[float, ...],
    reports: tuple[LatencyReport, ...],
    is_met: Callable[[float], bool],
) -> float | None:
    """Highest load that meets the SLO: the last sweep point that does, refined by bisection towards the next."""
    met = [index for index, report in enumerate(reports) if report.slo_met]
    if met and met[-1] == len(loads) - 1:
        return loads[-1]
    low = loads[met[-1]] if met else 0.0
    high = loads[met[-1] + 1] if met else loads[0]
    closed = reports[0].offered_rate_per_s is None
    for _ in range(KNEE_ROUNDS):
        middle = round((low + high) / 2) if closed else (low + high) / 2
        if middle in (low, high):
            break
        if is_met(middle):
            low = float(middle)
        else:
            high = float(middle)
    return low or None
