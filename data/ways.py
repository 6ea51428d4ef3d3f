"""The ways out of a scenario, with what the catalogue knows: other weight formats of its model, other GPU types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from calc.deployment import Deployment
from calc.errors import InputError
from calc.hardware import Gpu
from calc.memory import MemoryReport
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.ways.counts import SmallestCount, other_types, smallest_counts
from calc.ways.gap import planned_peak
from calc.ways.out import WaysOut, ways_out
from calc.workload import Prices
from data import catalogue
from data.checkpoint import in_format

FORMATS = ("fp8", "int4")
"""Weight formats tried: the two that checkpoints of most models exist in."""
Counts: TypeAlias = tuple[SmallestCount, ...]


def find_ways(
    scenario: Scenario,
    memory: MemoryReport,
    gpus: Sequence[Gpu] | None = None,
    prices: Mapping[str, Prices] | None = None,
    formats: Mapping[str, ModelSpec] | None = None,
) -> WaysOut:
    """``memory`` is the scenario's own report, at the simulated peak where that is known.

    ``gpus``: the types to propose, the catalogue's where not given; ``prices``: of GPU types other than the
    scenario's; ``formats``: as :func:`other_formats` reads them.
    """
    types = tuple(catalogue.gpus().values()) if gpus is None else gpus
    others = other_types(scenario, types, planned_peak(scenario, memory))
    known = other_formats(scenario.deployment) if formats is None else formats
    return ways_out(scenario, memory, formats=known, others=others, prices=prices)


def count_types(scenario: Scenario, memory: MemoryReport, gpus: Sequence[Gpu] | None = None) -> Counts:
    """The fewest GPUs of every type."""
    types = tuple(catalogue.gpus().values()) if gpus is None else gpus
    return smallest_counts(scenario, types, planned_peak(scenario, memory))


def other_formats(deployment: Deployment) -> Mapping[str, ModelSpec]:
    """The model in other weight formats, by dtype code; a checkpoint that cannot be read so has none."""
    found = {}
    for code in FORMATS:
        try:
            found[code] = in_format(deployment, code)
        except InputError:
            continue
    return found
