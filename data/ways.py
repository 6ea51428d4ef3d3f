"""The ways out of a scenario, with what the catalogue knows: other weight formats of its model, other GPU types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from calc.errors import InputError
from calc.hardware import Gpu
from calc.memory import MemoryReport
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.ways_counts import SmallestCount, other_types, smallest_counts
from calc.ways_gap import planned_peak
from calc.ways_out import WaysOut, ways_out
from calc.workload import Prices
from data import catalogue
from data.checkpoint import in_format

FORMATS = ("fp8", "int4")
"""Weight formats tried: the two that checkpoints of most models exist in."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The ranked ways, and the fewest GPUs of every type of the catalogue."""

    out: WaysOut
    counts: tuple[SmallestCount, ...]


def find_ways(
    scenario: Scenario,
    memory: MemoryReport,
    gpus: Iterable[Gpu] | None = None,
    prices: Mapping[str, Prices] | None = None,
) -> Found:
    """``memory`` is the scenario's own report, at the simulated peak where that is known.

    ``gpus``: the types to count, the catalogue's where not given; ``prices``: of GPU types other than the scenario's.
    """
    peak = planned_peak(scenario, memory)
    counts = smallest_counts(scenario, catalogue.gpus().values() if gpus is None else gpus, peak)
    others = other_types(counts, scenario.deployment, peak)
    out = ways_out(scenario, memory, formats=_formats(scenario), others=others, prices=prices)
    return Found(out=out, counts=counts)


def _formats(scenario: Scenario) -> dict[str, ModelSpec]:
    """The model in other weight formats; a checkpoint that cannot be read so has none."""
    found = {}
    for code in FORMATS:
        try:
            found[code] = in_format(scenario.deployment, code)
        except InputError:
            continue
    return found
