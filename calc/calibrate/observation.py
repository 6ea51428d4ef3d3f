"""A measured load point beside the scenario it was measured on, and its figures one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from calc.calibrate.prior import SIGMA, STATISTICS
from calc.errors import InputError
from calc.evidence import Percentiles
from calc.latency import LatencyReport
from calc.messages import msg
from calc.scenario import Scenario
from calc.workload import Closed

Key: TypeAlias = tuple[str, str]
"""Latency (``ttft``, ``tpot``, ``itl``, ``e2e``, ``throughput``) and statistic (``mean``, ``p50`` …)."""

LATENCIES = ("ttft", "tpot", "itl", "e2e")
THROUGHPUT: Key = ("throughput", "mean")
LONGEST_S = 1e6


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was measured at one load point, in seconds and output tokens per second; ``None`` = not measured."""

    ttft: Percentiles = field(default_factory=Percentiles)
    tpot: Percentiles = field(default_factory=Percentiles)
    itl: Percentiles = field(default_factory=Percentiles)
    e2e: Percentiles = field(default_factory=Percentiles)
    output_tokens_per_s: float | None = None

    def __post_init__(self) -> None:
        for (latency, statistic), value in self.figures().items():
            if not (math.isfinite(value) and value > 0) or (latency in LATENCIES and value > LONGEST_S):
                raise InputError(
                    msg(
                        "measured {latency} {statistic} must be above 0 and no longer than {limit:count} seconds, got "
                        "{value}: correct it or leave it out.",
                        latency=latency.upper(),
                        statistic=statistic,
                        limit=LONGEST_S,
                        value=value,
                    )
                )

    def figures(self) -> dict[Key, float]:
        """Every figure that was measured."""
        found = {
            (latency, statistic): value
            for latency in LATENCIES
            for statistic in STATISTICS
            if (value := getattr(getattr(self, latency), f"{statistic}_s")) is not None
        }
        return found if self.output_tokens_per_s is None else {**found, THROUGHPUT: self.output_tokens_per_s}


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One load point: what ran, and what was measured."""

    scenario: Scenario
    measured: Measured
    source: str = ""
    date: str = ""

    def usable(self) -> dict[Key, float]:
        """Figures that say something about costs: the throughput of an open loop only repeats its rate."""
        figures = self.measured.figures()
        if not isinstance(self.scenario.workload.arrivals, Closed):
            figures.pop(THROUGHPUT, None)
        return figures


def predicted(report: LatencyReport, key: Key) -> float | None:
    """The same figure of a prediction."""
    if key == THROUGHPUT:
        return report.output_tokens_per_s or None
    latency, statistic = key
    value: float | None = getattr(getattr(report, latency), f"{statistic}_s")
    return value or None


def sigma(key: Key) -> float:
    """Relative error that a good model leaves in this figure."""
    latency, statistic = key
    return SIGMA[latency] * STATISTICS[statistic]


def central(figures: dict[Key, float], latency: str) -> Iterator[tuple[Key, float]]:
    """Mean and median of a latency, where measured."""
    yield from ((key, value) for key, value in figures.items() if key[0] == latency and key[1] in ("mean", "p50"))
