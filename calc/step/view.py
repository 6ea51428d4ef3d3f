"""Why a load point is as fast as it is: what the mean step waits for, and its arithmetic intensity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calc.latency import LatencyReport
from calc.memory import MemoryReport
from calc.scenario import Scenario
from calc.simulator.replica import prepare
from calc.step.kernels import peak_flops_per_s


@dataclass(frozen=True, kw_only=True)
class StepView:
    """The mean engine step of one replica at one load."""

    shares: Mapping[str, float]
    """Of the step's time, by compute, memory_bandwidth, communication and overhead."""
    sequences: float
    """Requests running in it."""
    decode_flop_per_byte: float
    """Arithmetic intensity of a step that only decodes."""
    mixed_flop_per_byte: float
    """The same with the mean prefill of this load in it."""
    ridge_flop_per_byte: float
    """Peak FLOP/s over bandwidth: below it the GPU waits for memory (Williams et al., Roofline, CACM 52(4), 2009)."""


def step_view(scenario: Scenario, memory: MemoryReport, latency: LatencyReport) -> StepView:
    """The mean step at the load of ``latency``: as many sequences as Little's law says are running."""
    replica = prepare(scenario, memory, seed=1)
    model, demand, gpu = replica.model, replica.demand, scenario.deployment.gpu
    busy_s = latency.prefill_s + latency.decode_s
    running = max(1.0, latency.request_rate_per_s / replica.split * busy_s)
    starts = running / demand.output
    tokens = running + starts * demand.fresh
    parts = model.parts_s(tokens, running, running * demand.held, starts * demand.pairs)
    total = sum(parts.values())
    peak, _ = peak_flops_per_s(gpu, scenario.deployment.model.storage.compute_dtype)
    return StepView(
        shares={name: seconds / total for name, seconds in parts.items()},
        sequences=running,
        decode_flop_per_byte=model.intensity(running, running * demand.held),
        mixed_flop_per_byte=model.intensity(tokens, running * demand.held),
        ridge_flop_per_byte=peak / model.bandwidth_bytes_per_s,
    )
