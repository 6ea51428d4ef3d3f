"""Fits of measured points, worked out once, and the calibrations the team stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from calc import MODEL_VERSION
from calc.calibrate.constants import constants_of
from calc.calibrate.fit import Fit
from calc.calibrate.probed import calibrate_probe
from calc.errors import InputError
from calc.messages import Message
from data.calibration_answer import calibration_answer
from data.case import read_case
from data.case_calibration import KEY, fit_points
from data.store import Action, AddOutcome, StoredCalibration
from probe.result import ProbeResult
from ui import resources
from ui.resources import Asked
from ui.story import words


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _fit(points: str) -> Fit | Message:
    try:
        return fit_points(json.loads(points), read_case)
    except InputError as error:
        return error.message


def fit(points: Sequence[Mapping[str, Any]]) -> Fit | Message:
    """The fit to points given as cases with measured figures, or why there is none."""
    return _fit(json.dumps(points, sort_keys=True, ensure_ascii=False))


def fit_probe(asked: Asked, result: ProbeResult) -> Fit | Message:
    """What a measurement of the scenario's GPU says about its constants: the best rates it reached."""
    steady = [point for point in result.decode if not point.timing.launch_bound]
    try:
        return calibrate_probe(
            asked.scenario.deployment,
            dtype=result.dtype,
            bytes_per_s=max((point.bytes_per_s for point in steady), default=None),
            flops_per_s=max((point.flops_per_s for point in result.prefill), default=None),
            source=f"plimsoll probe, {result.device_name}",
            date=words.day(result.started_at),
        )
    except InputError as error:
        return error.message


@st.cache_resource(show_spinner=False)
def stored() -> tuple[StoredCalibration, ...]:
    """Calibrations of the team, newest first; read once, and again after each change."""
    return resources.store().calibrations()


def store(asked: Asked, found: Fit, points: Sequence[Mapping[str, Any]]) -> AddOutcome:
    """Keep a fit with its points."""
    scenario = asked.scenario
    constants = constants_of(found.factors, scenario.deployment, http=scenario.workload.http)
    answer = calibration_answer(found, constants, [None] * max(1, len(points)))
    outcome = resources.store().add_calibration(answer.pop(KEY), points=points, fit=answer, model_version=MODEL_VERSION)
    stored.clear()
    return outcome


def remove(calibration_id: str) -> Action:
    """Hide a stored calibration."""
    action = resources.store().delete("calibration", calibration_id)
    stored.clear()
    return action


def restore(action: Action) -> None:
    """Bring a removed calibration back."""
    resources.store().undo(action)
    stored.clear()
