"""The kinds of requests of a load one by one, and what became of clients that did not wait for their answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.evidence import Percentiles
from calc.messages import Message, msg
from calc.order_statistics import percentiles_of
from calc.request_times import Times
from calc.simulator.simulate import SimulationResult
from calc.workload import Slo, Workload


@dataclass(frozen=True, kw_only=True)
class ClassReport:
    """One kind of requests at one load point, all replicas."""

    name: str
    share: float
    """Of all requests measured."""
    requests: int
    """Answered in the simulation."""
    ttft: Percentiles
    tpot: Percentiles
    e2e: Percentiles
    queue_s: float
    slo_attainment_share: float | None
    """Of those answered or given up; ``None`` without a target."""
    goodput_per_s: float | None
    """Requests per second that meet the whole SLO."""
    gave_up_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Leavers:
    """What became of the measured requests that were not answered in one go."""

    cancelled_share: float = 0.0
    gave_up_share: float = 0.0
    retried_share: float = 0.0
    """Further attempts per request."""


def class_reports(
    slo: Slo, workload: Workload, result: SimulationResult, http_s: float, later_steps: float, rate_per_s: float
) -> tuple[ClassReport, ...]:
    """Of every class in order; ``rate_per_s`` is that of all requests that end, answered or cancelled."""
    if result.class_index is None:
        return ()
    index = result.class_index[result.measured]
    ended = max(1, int((~np.isnan(result.finished_s[result.measured])).sum()))
    found = []
    for place, one in enumerate(workload.classes):
        times = Times.of(result, http_s, later_steps, index == place)
        met = times.meeting(slo)
        found.append(
            ClassReport(
                name=one.name,
                share=float((index == place).mean()),
                requests=times.ttft_s.size,
                ttft=percentiles_of(np.sort(times.ttft_s)),
                tpot=percentiles_of(np.sort(times.tpot_s)),
                e2e=percentiles_of(np.sort(times.e2e_s)),
                queue_s=mean_s(times.queue_s),
                slo_attainment_share=times.attained(slo) if times.asked else None,
                goodput_per_s=None if met is None else rate_per_s * met / ended,
                gave_up_share=times.gave_up / max(1, times.asked),
            )
        )
    return tuple(found)


def mean_s(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """0 where nobody was answered: there is nothing to average, and a note says so."""
    return float(values.mean()) if values.size else 0.0


def leavers(result: SimulationResult) -> Leavers:
    """Shares of the measured requests."""
    measured = result.measured
    count = max(1, measured.stop - measured.start)
    cancelled = 0 if result.cancelled is None else result.cancelled[measured] & ~np.isnan(result.finished_s[measured])
    gone = 0 if result.gave_up_s is None else ~np.isnan(result.gave_up_s[measured])
    again = 0 if result.attempts is None else result.attempts[measured] - 1
    return Leavers(
        cancelled_share=float(np.sum(cancelled)) / count,
        gave_up_share=float(np.sum(gone)) / count,
        retried_share=float(np.sum(again)) / count,
    )


def leaver_notes(found: Leavers) -> tuple[Message, ...]:
    """What percentiles leave out."""
    notes = []
    if found.cancelled_share:
        notes.append(
            msg(
                "{share:pct} of the requests were cancelled by their clients while tokens came: percentiles are of the "
                "others.",
                share=found.cancelled_share,
            )
        )
    if found.gave_up_share:
        notes.append(
            msg(
                "{share:pct} of the requests never got a first token in their clients' patience: percentiles are of "
                "answered requests, and SLO attainment counts the others as missed.",
                share=found.gave_up_share,
            )
        )
    return tuple(notes)
