"""A fit as JSON for other programs: constants in their own units, residuals, errors, and the calibration for a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from calc import MODEL_VERSION
from calc.calibrate.calibration import MEANINGS
from calc.calibrate.constants import Constant
from calc.calibrate.fit import Fit, Residual
from calc.units import KILO
from data.case_calibration import KEY, write_calibration
from data.case_fields import plain_json

_DIGITS = 6


def calibration_answer(fit: Fit, constants: Sequence[Constant], ids: Sequence[Any]) -> dict[str, Any]:
    """What was fitted. ``calibration`` is what a predict case takes under that key."""
    return {
        "points": [place if identity is None else plain_json(identity) for place, identity in enumerate(ids, 1)],
        "valid_for": asdict(fit.calibration.scope),
        "constants": {one.code: _constant(one) for one in constants},
        "factors": {one.code: {"value": one.value, "low": one.low, "high": one.high} for one in fit.factors},
        "residuals": [_residual(one, ids) for one in fit.residuals],
        "median_error": {latency: _errors(fit, latency) for latency in _latencies(fit)},
        "leave_one_out_error": None
        if fit.leave_one_out is None
        else {one.latency: _rounded(one.error_share) for one in fit.leave_one_out},
        "not_identified": list(fit.calibration.not_identified),
        KEY: write_calibration(fit.calibration),
        "name": fit.calibration.name,
        "model_version": MODEL_VERSION,
    }


def _constant(one: Constant) -> dict[str, Any]:
    scale, unit = (KILO, "ms") if one.unit == "s" else (1.0, one.unit)
    values = {"assumed": one.assumed, "value": one.fitted, "low": one.low, "high": one.high}
    scaled = {name: _rounded(value * scale) for name, value in values.items()}
    return {"meaning": str(MEANINGS[one.code]), "unit": unit, **scaled, "identified": one.identified}


def _residual(one: Residual, ids: Sequence[Any]) -> dict[str, Any]:
    throughput = one.latency == "throughput"
    scale = 1.0 if throughput else KILO
    values = {"measured": one.measured, "before": one.before, "after": one.after, "left_out": one.left_out}
    return {
        "point": one.observation + 1 if ids[one.observation] is None else plain_json(ids[one.observation]),
        "figure": "output_tokens_per_s" if throughput else f"{one.latency}_ms {one.statistic}",
        **{name: None if value is None else _rounded(value * scale) for name, value in values.items()},
        "error_before": None if one.before is None else _rounded(one.before / one.measured - 1),
        "error_after": None if one.after is None else _rounded(one.after / one.measured - 1),
    }


def _latencies(fit: Fit) -> list[str]:
    return list(dict.fromkeys(one.latency for one in fit.residuals))


def _errors(fit: Fit, latency: str) -> dict[str, float | None]:
    """Median relative error of means and medians, before and after."""
    found = [one for one in fit.residuals if one.latency == latency and one.statistic in ("mean", "p50")]
    return {
        name: _rounded(median(abs((getattr(one, name) or 0.0) / one.measured - 1) for one in found)) if found else None
        for name in ("before", "after")
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
