"""The constants of a step refitted on recorded serving points, one setup left out at a time.

Free are the constants no kernel table gives: launches, the engine's own code, what lies between matrix products, how
unevenly tokens take to experts. Around the shipped values the logarithm of a prediction is taken as linear in the
logarithms of the constants; each fit is then a ridge regression towards the values that stood before any fit.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calc.evidence import Percentiles
from calc.latency import LatencyReport, predict
from calc.scenario import Scenario
from calc.step.efficiency import GENERIC, Efficiency, efficiency_of
from data.case import read_case

Vector: TypeAlias = npt.NDArray[np.float64]
METRICS = ("tpot_ms", "ttft_ms", "e2e_ms")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
SATURATED_MS = 5000.0
"""A mean time to first token beyond this is a queue that grew for the whole run."""
BEFORE: Mapping[str, float] = {
    "layer_s": 21e-6,
    "moe_layer_s": 9e-6,
    "shared_expert_s": 9e-6,
    "mla_layer_s": 12e-6,
    "sequence_s": 4e-6,
    "step_s": 0.126e-3,
    "sync_step_s": 2e-3,
    "prefill_s": 0.1e-3,
    "http_s": 5.5e-3,
    "activation_share": 0.8,
    "expert_evenness": 10.0,
    "eager_layer_s": 0.1e-3,
    "eager_moe_layer_s": 0.2e-3,
}
"""Before any fit: 3 µs a kernel (four matrix products, three small ones; three more per MoE layer, three with shared
experts, four with MLA), 4 µs a sequence and 126 µs a step as BLIS publishes, 0.8 of the bandwidth as the kernel tables
themselves assume where they have no entry, hardly uneven experts, 10 µs a launch on the host (ten kernels per layer,
thirty with experts)."""
BEFORE_ENGINE: Mapping[str, float] = {
    "layer_launch_share": 1.0,
    "weight_bandwidth_gain": 1.0,
    "host_launch_factor": 1.0,
}
"""Every engine like vLLM."""
UNTUNED = "expert_bandwidth_share"
"""Before any fit expert kernels reach what other matrix products reach, on every GPU."""
WIDTH = 0.4
"""Standard deviation of a constant's logarithm around its value before the fit."""
WIDTHS: Mapping[str, float] = {"weight_bandwidth_gain": 0.1, "http_s": 0.2, "activation_share": 0.2, UNTUNED: 0.3}
NOISE = 0.08
"""Relative error that stays whatever the constants."""
ROBUST = 2.0
"""Beyond so many times the noise a point pulls with constant force."""
WEIGHTS: Mapping[str, float] = {"tpot_ms": 1.0, "ttft_ms": 0.5, "e2e_ms": 0.0}
"""E2E follows from the two."""
STEP = 0.05
ROUNDS = 20


@dataclass(frozen=True, kw_only=True)
class Served:
    """One recorded serving point."""

    id: str
    group: str
    setup: str
    """Equal model, GPU, split, engine, dtypes, lengths and hit share."""
    case: Mapping[str, Any]
    scenario: Scenario
    measured: Mapping[str, Mapping[str, float]]

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> Served:
        case = line["case"]
        load = case["workload"]
        kept = {name: case.get(name) for name in SETUP}
        kept |= {name: load.get(name) for name in ("prompt_tokens", "output_tokens", "prefix_hit_share")}
        return cls(
            id=line["id"],
            group=line["group"],
            setup=json.dumps(kept, sort_keys=True),
            case=case,
            scenario=read_case(case)[0],
            measured=line["measured"],
        )

    @property
    def saturated(self) -> bool:
        return self.measured.get("ttft_ms", {}).get("mean", 0.0) > SATURATED_MS


SETUP = ("model", "gpu", "tp", "pp", "dp", "ep", "engine", "weight_dtype", "kv_dtype")


def served_points(folder: Path) -> list[Served]:
    text = (folder / "latency" / "predict_cases.jsonl").read_text(encoding="utf-8")
    return [Served.read(json.loads(line)) for line in text.splitlines() if line.strip()]


def percentiles_of(report: LatencyReport) -> dict[str, Percentiles]:
    return {"tpot_ms": report.tpot, "ttft_ms": report.ttft, "e2e_ms": report.e2e}


def log_errors(point: Served, report: LatencyReport, statistic: str = "mean") -> dict[str, float]:
    """ln(predicted ÷ measured) by metric, where both exist."""
    found = {}
    for metric, predicted in percentiles_of(report).items():
        measured = point.measured.get(metric, {}).get(statistic)
        ours_s = getattr(predicted, f"{statistic}_s")
        if measured and ours_s:
            found[metric] = float(np.log(1000 * ours_s / measured))
    return found


def shipped(scenario: Scenario) -> dict[str, float]:
    """The free constants as they are."""
    shares, engine = efficiency_of(scenario.deployment.gpu), scenario.deployment.engine
    found = {name: float(getattr(shares, name)) for name in BEFORE}
    found |= {name: float(getattr(engine, name)) for name in BEFORE_ENGINE}
    return found | {UNTUNED: shares.expert_bandwidth_share}


def at_factors(scenario: Scenario, factors: Mapping[str, float]) -> tuple[Scenario, Efficiency]:
    """The scenario and its efficiencies with constants multiplied. Of engines and of expert kernels only what differs
    from the plain value is a constant of its own."""
    deployment = scenario.deployment
    shares, engine = efficiency_of(deployment.gpu), deployment.engine
    changes = {name: getattr(shares, name) * factors.get(name, 1.0) for name in BEFORE}
    if shares.expert_bandwidth_share != 1:
        changes[UNTUNED] = shares.expert_bandwidth_share * factors.get(UNTUNED, 1.0)
    of_engine = {}
    for name, plain in BEFORE_ENGINE.items():
        value = getattr(engine, name)
        of_engine[name] = value if value == plain else value * factors.get(name, 1.0)
    changed = replace(deployment, engine=replace(engine, **of_engine))
    return replace(scenario, deployment=changed), replace(shares, **changes)


def predicted_at(point: Served, factors: Mapping[str, float]) -> LatencyReport:
    scenario, shares = at_factors(point.scenario, factors)
    return predict(scenario, efficiency=shares)


def before_fit(scenario: Scenario) -> tuple[Scenario, Efficiency]:
    """Kernel tables and published costs alone."""
    deployment = scenario.deployment
    shares = efficiency_of(deployment.gpu)
    changed = replace(deployment, engine=replace(deployment.engine, **BEFORE_ENGINE))
    narrow = {**shares.bandwidth_share, **TABLE_NARROW.get(shares.row, {})}
    compute = {**shares.compute_share, **TABLE_COMPUTE.get(shares.row, {})}
    kept: Mapping[str, Any] = {**BEFORE, UNTUNED: 1.0, "bandwidth_share": narrow, "compute_share": compute}
    return replace(scenario, deployment=changed), replace(shares, **kept)


TABLE_NARROW: Mapping[str, Mapping[str, float]] = {
    "h100": {"fp8": 0.80},
    "h200": {"fp8": 0.74},
    "b200": {"fp8": 0.68, "fp4": 0.61},
    "generic": {"fp8": GENERIC[1]["fp8"]},
}
TABLE_COMPUTE: Mapping[str, Mapping[str, float]] = {
    "h200": {"fp8": 0.64},
    "b200": {"fp8": 0.50, "fp4": 0.42},
}
"""Shares of narrow weights as the kernel tables give them, where the shipped ones were moved."""


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Log errors at the shipped constants and how they change with the logarithm of each."""

    names: tuple[str, ...]
    points: tuple[int, ...]
    """Index of the point each row belongs to."""
    metrics: tuple[str, ...]
    errors: Vector
    slopes: npt.NDArray[np.float64]
    weights: Vector


def linearise(points: Sequence[Served], reports: Sequence[LatencyReport]) -> Linear:
    """One prediction of every point per constant."""
    names = (*BEFORE, *BEFORE_ENGINE, UNTUNED)
    base = [log_errors(point, report) for point, report in zip(points, reports, strict=True)]
    rows = [(i, metric) for i, errors in enumerate(base) for metric in errors]
    slopes = np.zeros((len(rows), len(names)))
    for column, name in enumerate(names):
        moved = [log_errors(point, predicted_at(point, {name: float(np.exp(STEP))})) for point in points]
        slopes[:, column] = [(moved[i][metric] - base[i][metric]) / STEP for i, metric in rows]
    systems = Counter(point.setup for point in points)
    weights = [
        0.0 if points[i].saturated else WEIGHTS[metric] / float(np.sqrt(systems[points[i].setup])) for i, metric in rows
    ]
    return Linear(
        names=names,
        points=tuple(i for i, _ in rows),
        metrics=tuple(metric for _, metric in rows),
        errors=np.array([base[i][metric] for i, metric in rows]),
        slopes=slopes,
        weights=np.array(weights),
    )


def centre(names: Iterable[str], scenarios: Sequence[Scenario]) -> Vector:
    """ln(value before the fit ÷ shipped value) of each constant."""
    found = []
    for name in names:
        values = [shipped(scenario)[name] for scenario in scenarios]
        plain = {**BEFORE, **BEFORE_ENGINE, UNTUNED: 1.0}[name]
        special = next((value for value in values if value != plain), plain)
        found.append(float(np.log(plain / special)))
    return np.array(found)


def solve(linear: Linear, start: Vector, kept: npt.NDArray[np.bool_]) -> Vector:
    """Log factors on the shipped constants: robust ridge regression over the kept rows."""
    widths = np.array([WIDTHS.get(name, WIDTH) for name in linear.names])
    x, errors, weights = linear.slopes[kept], linear.errors[kept], linear.weights[kept]
    found: Vector = np.zeros(len(linear.names))
    for _ in range(ROUNDS):
        left = np.abs(errors + x @ found) / NOISE
        pull = weights**2 / np.sqrt(1 + (left / ROBUST) ** 2)
        normal = (x.T * pull) @ x / NOISE**2 + np.diag(widths**-2)
        target = -(x.T * pull) @ errors / NOISE**2 + start / widths**2
        found = np.linalg.solve(normal, target)
    return found


def left_out(points: Sequence[Served], linear: Linear) -> tuple[Vector, dict[str, tuple[float, float]]]:
    """Log errors of each row when its setup had no part in the fit, and the range of each constant's log factor."""
    start = centre(linear.names, [point.scenario for point in points])
    owner = np.array([points[i].setup for i in linear.points])
    errors = linear.errors.copy()
    spread = []
    for setup in dict.fromkeys(owner.tolist()):
        out = owner == setup
        factors = solve(linear, start, ~out)
        spread.append(factors)
        errors[out] += linear.slopes[out] @ factors
    ranges = np.array(spread)
    return errors, {name: (float(ranges[:, i].min()), float(ranges[:, i].max())) for i, name in enumerate(linear.names)}
