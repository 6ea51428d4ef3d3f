"""The other way round: how few GPUs of each type hold the model and one longest sequence, or the planned peak."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from calc.deployment import MAX_GPUS, Deployment
from calc.engine import resolve
from calc.hardware import Gpu
from calc.judge.lever_changes import estimated_pool
from calc.memory import MemoryReport, estimate_memory
from calc.scenario import Scenario
from calc.ways.gap import Peak, sequence_bytes
from calc.ways.levers import tp_sizes

STAGES = (1, 2, 4, 8)
"""Pipeline stages tried on top of the widest split of one server."""
OTHER_MAKERS = ("AMD", "Intel", "Huawei")
"""First words of GPU names; a change of maker is a change of engine build too, so the same one is proposed first."""
REPLICAS_WORTH_JOINING = 3
"""With two, a split twice as wide takes as many GPUs at best."""


@dataclass(frozen=True, kw_only=True)
class SmallestCount:
    """The fewest GPUs of one type; ``None`` = not with the splits tried, or the peak is not known."""

    gpu: Gpu
    to_start: Deployment | None
    """Weights, runtime and one sequence of max length; one replica."""
    to_carry: Deployment | None
    """The planned peak, in as many replicas as needed."""


def smallest_counts(scenario: Scenario, gpus: Iterable[Gpu], peak: Peak) -> tuple[SmallestCount, ...]:
    """One row per GPU type, in the order given; splits inside a server first, then pipeline stages over several."""
    base = _alone(scenario.deployment)
    weights: dict[tuple[int, int], int] = {}
    return tuple(_count(scenario, replace(base, gpu=gpu), peak, weights) for gpu in gpus)


def _count(scenario: Scenario, base: Deployment, peak: Peak, weights: dict[tuple[int, int], int]) -> SmallestCount:
    """``weights``: bytes per GPU by split, the same on every type, filled in on the way."""
    first: Deployment | None = None
    carrying: list[Deployment] = []
    for split in _splits(base):
        if weights.get((split.tp, split.pp), 0) >= split.gpu.memory_bytes or _beaten(split, carrying):
            continue
        memory = estimate_memory(split, scenario.workload, 1.0)
        weights[(split.tp, split.pp)] = memory.weights_bytes
        if memory.fits:
            first = first or split
            carrying += _replicated(split, memory, peak)
            if not carrying or carrying[-1].replicas < REPLICAS_WORTH_JOINING:
                break
    fewest = min(carrying, key=lambda deployment: deployment.gpu_count, default=None)
    return SmallestCount(gpu=base.gpu, to_start=first, to_carry=fewest)


def _beaten(split: Deployment, carrying: Iterable[Deployment]) -> bool:
    return any(split.gpu_count >= deployment.gpu_count for deployment in carrying)


def _splits(base: Deployment) -> list[Deployment]:
    widths = [tp for tp in tp_sizes(base) if tp & (tp - 1) == 0]
    inside = [replace(base, tp=tp) for tp in widths]
    if base.gpu.link_bytes_per_s is None:
        return inside
    stages = [pp for pp in STAGES[1:] if pp <= base.model.layers]
    return inside + [replace(base, tp=widths[-1], pp=pp) for pp in stages]


def _replicated(split: Deployment, memory: MemoryReport, peak: Peak) -> list[Deployment]:
    """With the replicas that share the peak; ``memory`` was estimated for one request in flight."""
    if peak.requests is None:
        return []
    replicas = max(1, math.ceil(peak.requests * memory.kv_demand_bytes / memory.kv_pool_bytes))
    return [replace(split, replicas=replicas)] if replicas * split.gpu_count <= MAX_GPUS else []


def _maker(gpu: Gpu) -> str:
    return next((maker for maker in OTHER_MAKERS if gpu.name.startswith(maker)), "NVIDIA")


@dataclass(frozen=True, kw_only=True)
class _Need:
    """One split, as the scenario's own GPU type shows it."""

    split: Deployment
    covered_bytes: int
    sequence_bytes: int
    request_bytes: int

    def count(self, gpu: Gpu, budget_bytes: float, peak: Peak) -> float:
        """GPUs of a type that would do, had it the same runtime; infinite where it would not start."""
        if self.split.gpus_per_replica > 1 and gpu.link_bytes_per_s is None:
            return math.inf
        room = budget_bytes - self.covered_bytes
        if room < self.sequence_bytes:
            return math.inf
        replicas = 1 if peak.requests is None else max(1, math.ceil(peak.requests * self.request_bytes / room))
        return self.split.gpu_count * replicas


def other_types(scenario: Scenario, gpus: Iterable[Gpu], peak: Peak) -> list[Deployment]:
    """The smallest type each with fewer, as many and more GPUs that holds the peak (or starts, where it is unknown).

    All types are judged by the runtime of the scenario's own; the ones picked are then estimated themselves.
    """
    now = scenario.deployment
    needs = _needs(scenario)
    budgets = [(gpu, gpu.memory_bytes * resolve(replace(now, gpu=gpu)).memory_fraction) for gpu in gpus]
    sized = [
        (min(need.count(gpu, budget, peak) for need in needs), gpu) for gpu, budget in budgets if gpu.id != now.gpu.id
    ]
    foreign = {gpu.id: _maker(gpu) != _maker(now.gpu) for _, gpu in sized}
    sized.sort(key=lambda row: (foreign[row[1].id], row[1].memory_bytes, row[0]))
    fewer = [gpu for count, gpu in sized if count < now.gpu_count]
    same = [gpu for count, gpu in sized if count == now.gpu_count]
    more = [row[1] for row in sorted(sized, key=lambda row: (foreign[row[1].id], row[0])) if row[0] > now.gpu_count]
    picked = smallest_counts(scenario, [gpus[0] for gpus in (fewer, same, more) if gpus], peak)
    found = [row.to_start if peak.requests is None else row.to_carry for row in picked]
    return [deployment for deployment in found if deployment is not None]


def _needs(scenario: Scenario) -> list[_Need]:
    base = _alone(scenario.deployment)
    needs = []
    for split in _splits(base):
        memory = estimate_memory(split, scenario.workload, 1.0)
        needs.append(
            _Need(
                split=split,
                covered_bytes=memory.weights_bytes + memory.runtime_in_budget_bytes,
                sequence_bytes=sequence_bytes(split, memory),
                request_bytes=memory.kv_demand_bytes,
            )
        )
    return needs


def _alone(deployment: Deployment) -> Deployment:
    return estimated_pool(replace(deployment, tp=1, pp=1, dp=1, ep=False, replicas=1))
