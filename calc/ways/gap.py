"""What one GPU must hold against what its budget allows, part by part, and how far the two are apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from calc.deployment import Deployment
from calc.latency import load_of
from calc.memory import MemoryReport, estimate_memory
from calc.room.capacity import Room
from calc.scenario import Scenario
from calc.units import GIB
from calc.workload import Closed, LengthDistribution, Workload

AMPLE_POOL_BYTES = 4096 * GIB
"""A pool so large that the bytes of one sequence can be read off it to a block."""
LENGTH_GRAIN_TOKENS = 16
"""Lengths are looked for in whole blocks of the usual size."""
GRID = 400
"""Points of each length distribution when the share of longer requests is worked out: to a quarter of a per cent."""


class PeakFrom(StrEnum):
    """How the number of requests in flight at the peak is known."""

    DECLARED = "declared"
    """Closed loop: the user says it."""
    SIMULATED = "simulated"
    TARGET = "target"
    """Rate × E2E target (Little's law): the most in flight while the target holds."""
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """The first part that no longer fits."""

    NONE = "none"
    WEIGHTS = "weights"
    RUNTIME = "runtime"
    SEQUENCE = "sequence"
    DEMAND = "demand"


@dataclass(frozen=True, kw_only=True)
class Peak:
    """Requests in flight on the whole deployment at the planned load; ``None`` = not known."""

    requests: float | None
    source: PeakFrom


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Per GPU of the stage with the least room. ``over_bytes`` below 0 is room to spare."""

    budget_bytes: int
    weights_bytes: int
    runtime_bytes: int
    """The part of the runtime zone that the engine's memory fraction covers."""
    room_bytes: int
    """Budget − weights − runtime: the KV pool; below 0 where these alone are too much."""
    sequence_bytes: int
    """KV cache of one sequence of the max model length."""
    demand_bytes: int | None
    """KV cache at the planned peak; ``None`` = the peak is not known."""
    over_bytes: int
    cause: Cause


def planned_peak(scenario: Scenario, memory: MemoryReport) -> Peak:
    """The peak of the planned load, from the best source there is."""
    load = scenario.workload
    if isinstance(load.arrivals, Closed):
        return Peak(requests=float(load.arrivals.concurrency), source=PeakFrom.DECLARED)
    if memory.fits and memory.peak_is_known:
        return Peak(requests=memory.peak_concurrency * scenario.deployment.replicas, source=PeakFrom.SIMULATED)
    if scenario.slo.e2e_s is not None:
        return Peak(requests=load_of(load) * scenario.slo.e2e_s, source=PeakFrom.TARGET)
    return Peak(requests=None, source=PeakFrom.UNKNOWN)


def at_peak(scenario: Scenario, peak: Peak) -> MemoryReport:
    """Memory with the demand of that peak, shared evenly by the replicas."""
    each = None if peak.requests is None else peak.requests / scenario.deployment.replicas
    return estimate_memory(scenario.deployment, scenario.workload, each)


def room_bytes(memory: MemoryReport) -> int:
    """What the budget leaves for the KV pool; below 0 when weights and runtime alone exceed it."""
    if memory.kv_pool_bytes > 0:
        return memory.kv_pool_bytes
    return memory.budget_bytes - memory.weights_bytes - memory.runtime_in_budget_bytes


def gap_of(deployment: Deployment, memory: MemoryReport, peak: Peak) -> Gap:
    """Need − room: positive exactly when the longest sequence, or the planned peak, finds no room."""
    room, sequence = room_bytes(memory), sequence_bytes(deployment, memory)
    demand = None if peak.requests is None else memory.kv_demand_bytes
    over = max(sequence, demand or 0) - room
    if not memory.fits:
        over = max(over, 1)
    elif (demand or 0) <= room:
        over = min(over, 0)
    return Gap(
        budget_bytes=memory.budget_bytes,
        weights_bytes=memory.weights_bytes,
        runtime_bytes=memory.runtime_in_budget_bytes,
        room_bytes=room,
        sequence_bytes=sequence,
        demand_bytes=demand,
        over_bytes=over,
        cause=_cause(memory, room, over),
    )


def _cause(memory: MemoryReport, room: int, over: int) -> Cause:
    if over <= 0:
        return Cause.NONE
    if memory.weights_bytes >= memory.budget_bytes:
        return Cause.WEIGHTS
    if room <= 0:
        return Cause.RUNTIME
    return Cause.DEMAND if memory.fits else Cause.SEQUENCE


def sequence_bytes(deployment: Deployment, memory: MemoryReport) -> int:
    """KV bytes per GPU of one sequence of max length, in whole blocks as the engine counts them."""
    if memory.max_concurrency > 0 and memory.kv_pool_bytes > 0:
        return round(memory.kv_pool_bytes * deployment.dp / memory.max_concurrency)
    ample = estimate_memory(replace(deployment, kv_pool_bytes_per_gpu=AMPLE_POOL_BYTES, kv_tokens=None))
    return round(AMPLE_POOL_BYTES * deployment.dp / ample.max_concurrency)


def carries(memory: MemoryReport, peak: Peak) -> bool | None:
    """Whether the pool holds the planned peak; ``None`` = the peak is not known."""
    if not memory.fits:
        return False
    if peak.requests is None:
        return None
    return memory.kv_demand_bytes <= memory.kv_pool_bytes


def longest_length(deployment: Deployment, memory: MemoryReport) -> int | None:
    """The longest max model length with which the engine starts, up to the model's own; ``None`` = none does."""
    if memory.kv_pool_bytes == 0:
        return None
    room = Room.of(deployment, memory)
    low, high = 0, deployment.model.max_position_tokens // LENGTH_GRAIN_TOKENS
    while low < high:
        middle = (low + high + 1) // 2
        fits = room.sequences(middle * LENGTH_GRAIN_TOKENS) >= 1
        low, high = (middle, high) if fits else (low, middle - 1)
    # The engine keeps blocks back that the sequences above are counted with, and its budget may follow the length.
    for grains in range(low, max(0, low - 2 - low // 100), -1):
        if estimate_memory(replace(deployment, max_model_len_tokens=grains * LENGTH_GRAIN_TOKENS)).fits:
            return grains * LENGTH_GRAIN_TOKENS
    return None


def lost_share(workload: Workload, limit_tokens: int) -> float:
    """Share of requests whose prompt + output is longer than ``limit_tokens``; lengths taken as independent."""
    prompts, outputs = _grid(workload.prompt_tokens), _grid(workload.output_tokens)
    fitting = np.searchsorted(outputs, limit_tokens - prompts, side="right")
    return float(1 - fitting.mean() / GRID)


def _grid(lengths: LengthDistribution) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([lengths.quantile((step + 0.5) / GRID) for step in range(GRID)])
