"""Setups calibrated on two of their points, and judged on the others: a part of docs/accuracy.md.

A setup = equal model, GPU, TP, PP, DP, EP, engine, weight and KV format, length distributions and hit share. Its lowest
and its middle load are fitted; setups of three points and more count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from memory_accuracy import lines, percent, table

from calc.calibrate import prior
from calc.calibrate.calibration import CODES
from calc.calibrate.fit import Fit, calibrate
from calc.calibrate.observation import Observation
from calc.errors import CalibrationRefused
from calc.latency import predict
from calc.workload import Closed
from data.case import read_case
from data.case_calibration import read_observation

FEWEST_POINTS = 3
LATENCIES = ("tpot", "ttft")
AIMS = {"tpot": 0.04, "ttft": 0.12}
"""Median size of the error on the remaining points."""
SCALES = (0.5, 1.0, 2.0)
"""All widths of the prior times this."""
SHAPE = ("model", "gpu", "tp", "pp", "dp", "ep", "engine", "weight_dtype", "kv_dtype")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One point of a setup that its calibration has not seen: relative errors without and with it."""

    before: Mapping[str, float]
    after: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Points of one setup by rising load, and what the fit to two of them found."""

    name: str
    group: str
    points: int
    fit: Fit | None
    judged: Sequence[Judged]


def setups(folder: Path) -> list[list[dict[str, Any]]]:
    """Points of each setup by rising load."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines(folder / "latency" / "predict_cases.jsonl"):
        case, load = line["case"], line["case"]["workload"]
        shape = [case.get(key) for key in SHAPE]
        lengths = [load[key] for key in ("prompt_tokens", "output_tokens")] + [load.get("prefix_hit_share", 0)]
        found.setdefault(json.dumps([shape, lengths], sort_keys=True), []).append(line)
    return [sorted(points, key=_load) for points in found.values() if len(points) >= FEWEST_POINTS]


def _load(line: Mapping[str, Any]) -> float:
    arrivals = line["case"]["workload"]["arrivals"]
    return float(arrivals.get("concurrency") or arrivals["rate_per_s"])


def judge(points: Sequence[Mapping[str, Any]]) -> Setup:
    """Fit the lowest and the middle load, and predict the others."""
    observations = [read_observation(_plain(line), read_case) for line in points]
    middle = (len(points) - 1) // 2
    fit = _fit([observations[0], observations[middle]])
    rest = [one for place, one in enumerate(observations) if place not in (0, middle)]
    return Setup(
        name=_name(observations[0]),
        group=str(points[0]["group"]),
        points=len(points),
        fit=fit,
        judged=[Judged(before=_errors(one, None), after=_errors(one, fit)) for one in rest],
    )


def _fit(two: Sequence[Observation]) -> Fit | None:
    """``None`` = refused: the points would need more than a peak."""
    try:
        return calibrate(two, source="two points")
    except CalibrationRefused:
        return None


def _plain(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"case": line["case"], "measured": line["measured"]}


def _errors(observation: Observation, fit: Fit | None) -> dict[str, float]:
    report = predict(replace(observation.scenario, calibration=fit and fit.calibration))
    found = {}
    for latency in LATENCIES:
        measured, ours = getattr(observation.measured, latency).mean_s, getattr(report, latency).mean_s
        found[latency] = ours / measured - 1
    return found


def _name(observation: Observation) -> str:
    scenario = observation.scenario
    deployment, load = scenario.deployment, scenario.workload
    prompt = load.prompt_tokens.quantile(1.0)
    kind = "users" if isinstance(load.arrivals, Closed) else "requests/s"
    model, storage = deployment.model.name.split("/")[-1], deployment.model.storage.code
    where = f"{deployment.gpu.id} TP {deployment.tp}, {deployment.engine.id}"
    return f"{model} {storage}, {where}, prompts to {prompt:,.0f}, by {kind}"


def median_error(found: Sequence[Setup], latency: str, state: str) -> float:
    """Median size over all remaining points."""
    return float(np.median([abs(getattr(one, state)[latency]) for setup in found for one in setup.judged]))


def judge_all(folder: Path) -> list[Setup]:
    """Every setup."""
    return [judge(points) for points in setups(folder)]


def two_point_table(folder: Path) -> str:
    """Medians over the remaining points, without and with the calibration; per setup, and with other widths."""
    chosen = setups(folder)
    found = [judge(points) for points in chosen]
    return "\n\n".join([_summary(found), _by_setup(found), _told(found), _widths(chosen)])


def _summary(found: Sequence[Setup]) -> str:
    groups = dict.fromkeys(setup.group for setup in found)
    rows = [_medians(group, [setup for setup in found if setup.group == group]) for group in groups]
    return table(
        ("setups", "number", "points judged", "TPOT", "calibrated", "TTFT", "calibrated"),
        [*rows, _medians("all", found)],
    ) + (
        "\n\nMedian sizes of the errors on points that the calibration has not seen. Aimed at over all: "
        + ", ".join(f"{latency.upper()} at most {percent(aim)}" for latency, aim in AIMS.items())
        + "."
    )


def _medians(name: str, found: Sequence[Setup]) -> list[str]:
    errors = [median_error(found, latency, state) for latency in LATENCIES for state in ("before", "after")]
    judged = sum(len(setup.judged) for setup in found)
    return [name, str(len(found)), str(judged), *(percent(error) for error in errors)]


def _by_setup(found: Sequence[Setup]) -> str:
    rows = [[setup.name, *_medians("", [setup])[2:]] for setup in found]
    return table(("setup", "points judged", "TPOT", "calibrated", "TTFT", "calibrated"), rows)


def _told(found: Sequence[Setup]) -> str:
    """Which factors two points tell, and how large they come out."""
    rows = []
    for code in CODES:
        fits = [setup.fit for setup in found if setup.fit]
        fitted = [one for fit in fits for one in fit.factors if one.code == code and one.identified]
        values = sorted(one.value for one in fitted)
        span = f"{values[0]:.2g} to {values[-1]:.2g}, median {float(np.median(values)):.2g}" if values else "–"
        rows.append([code.replace("_", " "), f"{prior.WIDTHS[code]:.2g}", f"{len(values)} of {len(found)}", span])
    return table(("factor", "width of its prior (log)", "told by two points", "fitted where told"), rows)


def _widths(chosen: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Errors with narrower and wider priors, and with the scale chosen on the other setups each time."""
    scaled = {scale: list(_at_scale(chosen, scale)) for scale in SCALES}
    rows = [
        [f"× {scale:g}", *(percent(median_error(found, latency, "after")) for latency in LATENCIES)]
        for scale, found in scaled.items()
    ]
    held_out = [scaled[_best(scaled, place)][place] for place in range(len(chosen))]
    rows.append(
        ["best on the other setups", *(percent(median_error(held_out, latency, "after")) for latency in LATENCIES)]
    )
    return table(("widths of the prior", "TPOT", "TTFT"), rows)


def _at_scale(chosen: Sequence[Sequence[Mapping[str, Any]]], scale: float) -> Iterator[Setup]:
    with patch.dict(prior.WIDTHS, {code: width * scale for code, width in prior.WIDTHS.items()}):
        yield from (judge(points) for points in chosen)


def _best(scaled: Mapping[float, Sequence[Setup]], left_out: int) -> float:
    """The scale with the least sum of median errors, each in parts of its aim, where one setup is left out."""

    def score(scale: float) -> float:
        others = [setup for place, setup in enumerate(scaled[scale]) if place != left_out]
        return sum(median_error(others, latency, "after") / AIMS[latency] for latency in LATENCIES)

    return min(scaled, key=score)
