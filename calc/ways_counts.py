"""The other way round: how few GPUs of each type hold the model and one longest sequence, or the planned peak."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from calc.deployment import MAX_GPUS, Deployment
from calc.hardware import Gpu
from calc.lever_changes import estimated_pool
from calc.memory import MemoryReport, estimate_memory
from calc.scenario import Scenario
from calc.ways_gap import Peak
from calc.ways_levers import tp_sizes

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
    base = estimated_pool(replace(scenario.deployment, dp=1, ep=False, replicas=1))
    weights: dict[tuple[int, int], int] = {}
    return tuple(_count(scenario, replace(base, tp=1, pp=1, gpu=gpu), peak, weights) for gpu in gpus)


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


def other_types(counts: Iterable[SmallestCount], now: Deployment, peak: Peak) -> list[Deployment]:
    """The smallest type each with fewer, as many and more GPUs that holds the peak (or starts, where it is unknown)."""
    found = [row.to_carry if peak.requests is not None else row.to_start for row in counts if row.gpu != now.gpu]
    known = sorted(
        (deployment for deployment in found if deployment is not None),
        key=lambda one: (_maker(one.gpu) != _maker(now.gpu), one.gpu.memory_bytes, one.gpu_count),
    )
    fewer = [deployment for deployment in known if deployment.gpu_count < now.gpu_count]
    same = [deployment for deployment in known if deployment.gpu_count == now.gpu_count]
    more = [deployment for deployment in known if deployment.gpu_count > now.gpu_count]
    more.sort(key=lambda one: (_maker(one.gpu) != _maker(now.gpu), one.gpu_count))
    return [deployments[0] for deployments in (fewer, same, more) if deployments]
