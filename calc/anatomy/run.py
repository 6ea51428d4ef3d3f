"""The simulated requests of one load point, one by one, as the other modules here take them apart."""

from __future__ import annotations

from dataclasses import dataclass

from calc.memory import MemoryReport
from calc.request_times import Times, answered
from calc.scenario import Scenario
from calc.simulator.replica import Replica, prepare, run_replica
from calc.simulator.simulate import SimulationResult
from calc.workload import IntArray


@dataclass(frozen=True, kw_only=True)
class Run:
    """One replica under its share of the load, and the times of its measured requests."""

    replica: Replica
    result: SimulationResult
    times: Times
    prompt_tokens: IntArray
    """Of the requests in ``times``, in the same order."""


def run_of(scenario: Scenario, *, memory: MemoryReport | None = None, requests: int = 1000, seed: int = 1) -> Run:
    """The same simulation that the latency report of ``scenario`` is made of."""
    replica = prepare(scenario, memory, seed)
    result = run_replica(replica, scenario.workload, requests, seed)
    return Run(
        replica=replica,
        result=result,
        times=Times.of(result, replica.model.http_s, replica.first_token_steps),
        prompt_tokens=result.prompt_tokens[result.measured][answered(result)],
    )
