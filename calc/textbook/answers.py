"""The textbook's answers at one load, beside the simulated ones."""

from __future__ import annotations

from calc.latency import LatencyReport, predict
from calc.memory import MemoryReport
from calc.queueing import dispersion
from calc.scenario import Scenario
from calc.simulator.replica import prepare
from calc.textbook.closed import closed_rows
from calc.textbook.engine import decode_rows, first_token_of, whole_rows
from calc.textbook.prefill import prefill_rows
from calc.textbook.results import QueueReport
from calc.workload import Closed


def textbook(
    scenario: Scenario,
    *,
    memory: MemoryReport | None = None,
    latency: LatencyReport | None = None,
    seed: int = 1,
    arrival_cv2: float | None = None,
) -> QueueReport:
    """Textbook figures beside the simulated ones of ``latency``; ``arrival_cv2`` in place of the arrivals' own."""
    replica = prepare(scenario, memory, seed)
    report = latency or predict(scenario, memory=memory, seed=seed)
    arrivals = replica.workload.arrivals
    if isinstance(arrivals, Closed):
        return QueueReport(
            limits=replica.limits,
            rate_per_s=None,
            utilisation_share=None,
            results=closed_rows(replica, arrivals.concurrency / replica.split, report, seed),
            arrival_cv2=0.0,
            given_cv2=0.0,
        )
    rate = arrivals.rate_per_s / replica.split
    own = dispersion(arrivals, replica.split)
    steady = None if report.saturated else report
    first = first_token_of(replica, rate, seed)
    cv2 = own if arrival_cv2 is None else arrival_cv2
    return QueueReport(
        limits=replica.limits,
        rate_per_s=rate,
        utilisation_share=rate / replica.limits.max_rate_per_s,
        results=(
            *prefill_rows(replica, rate, cv2, seed),
            *whole_rows(replica, rate, first, steady),
            *decode_rows(replica, rate, steady),
        ),
        arrival_cv2=cv2,
        given_cv2=own,
        first_token=first,
    )
