"""Predictions of all measured points as a function of the factors: what the solver asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calc.calibrate import prior
from calc.calibrate.calibration import CODES, Calibration, Factors
from calc.calibrate.observation import Key, Observation, predicted, sigma
from calc.latency import LatencyReport, predict
from calc.memory import MemoryReport, estimate_memory
from calc.scenario import Scenario
from calc.workload import FloatArray

FIT_REQUESTS = 2000
"""Most requests of a finite run simulated while fitting, unless it saturates: then its length is part of the answer."""
MISSED_SIGMAS = 30.0
"""Residual of a figure that a trial does not yield at all."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One observation, ready to be predicted again and again with the same random numbers."""

    scenario: Scenario
    memory: MemoryReport
    figures: dict[Key, float]

    @classmethod
    def of(cls, observation: Observation) -> Point:
        """The observation without a calibration of its own, its run cut where the length says nothing."""
        scenario = replace(observation.scenario, calibration=None)
        memory = estimate_memory(scenario.deployment)
        requests = scenario.workload.num_requests
        if requests is not None and requests > FIT_REQUESTS and not predict(scenario, memory=memory).saturated:
            scenario = replace(scenario, workload=replace(scenario.workload, num_requests=FIT_REQUESTS))
        return cls(scenario=scenario, memory=memory, figures=observation.usable())

    def report(self, calibration: Calibration | None) -> LatencyReport:
        """Its prediction."""
        return predict(replace(self.scenario, calibration=calibration), memory=self.memory)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Residuals in sigmas over z, the logarithms of the factors in widths of their prior."""

    points: Sequence[Point]
    template: Calibration
    least: Mapping[str, float]
    """Factors below which a kernel would exceed its peak."""

    @property
    def codes(self) -> tuple[str, ...]:
        """Factors that can play a part here: on one GPU there is no link, inside the engine no network."""
        scope = self.template.scope
        absent = {"link"} if scope.tp * scope.dp == 1 else set()
        if not any(point.scenario.workload.http for point in self.points):
            absent.add("network")
        return tuple(code for code in CODES if code not in absent)

    def value(self, code: str, z: float) -> float:
        """A factor at its coordinate, no peak exceeded; of the first token the steps."""
        log = z * prior.WIDTHS[code]
        if code == "first_token_steps":
            return float(np.expm1(log))
        return max(float(np.exp(log)), self.least.get(code, 0.0))

    def factors(self, z: FloatArray) -> Factors:
        """All factors; absent ones as assumed."""
        return Factors(**{code: self.value(code, float(one)) for code, one in zip(self.codes, z, strict=True)})

    def calibration(self, z: FloatArray) -> Calibration:
        """The calibration under trial."""
        return replace(self.template, factors=self.factors(z))

    def residuals(self, z: FloatArray) -> FloatArray:
        """Of every figure of every point, in order."""
        return np.concatenate([self.residuals_of(index, z) for index in range(len(self.points))])

    def residuals_of(self, index: int, z: FloatArray) -> FloatArray:
        """Of the figures of one point."""
        point = self.points[index]
        report = point.report(self.calibration(z))
        return np.array([_residual(predicted(report, key), value, key) for key, value in point.figures.items()])

    def rows(self, index: int) -> slice:
        """Where the figures of one point lie among all residuals."""
        begin = sum(len(point.figures) for point in self.points[:index])
        return slice(begin, begin + len(self.points[index].figures))


def _residual(value: float | None, measured: float, key: Key) -> float:
    return MISSED_SIGMAS if value is None else float(np.log(value / measured)) / sigma(key)
