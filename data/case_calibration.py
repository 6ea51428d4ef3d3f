"""The ``calibration`` of a case, both ways: measured points that are fitted, or the factors of an earlier fit.

``[{"case": {…}, "measured": {"ttft_ms": {"mean": 80}, "tpot_ms": 12, …}, "source": …, "date": …}, …]`` is fitted while
the case is read; a scenario is written with the factors alone, which are small enough for a link.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from calc.calibrate.calibration import CODES, MOST_STEPS, MOST_TIMES, Calibration, Factors, Scope
from calc.calibrate.fit import MOST_POINTS, Fit, calibrate
from calc.calibrate.observation import LATENCIES, Measured, Observation
from calc.calibrate.prior import STATISTICS
from calc.deployment import MAX_GPUS
from calc.errors import CalibrationRefused, InputError, PlimsollError
from calc.evidence import Percentiles
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.units import KILO
from data.case_fields import Fields, as_list, as_object

KEY = "calibration"
ReadCase: TypeAlias = Callable[[Mapping[str, Any]], tuple[Scenario, tuple[Message, ...]]]

THROUGHPUTS = ("output_tokens_per_s", "out_tok_s")
"""Names of the output token throughput; the first that is there counts."""
SHARED = ("workload", "http")
"""What a point that names no model says itself; the rest is the case's own."""
MOST_FITS = 64
"""Fits kept, so that the same case is fitted once."""


def read_calibration(case: Fields, whole: Mapping[str, Any], read_case: ReadCase) -> Calibration | None:
    """The calibration in a case; ``whole`` is the case, for points that only name another load."""
    given = case.raw(KEY)
    if given is None:
        return None
    if isinstance(given, Mapping):
        child = case.child(KEY)
        assert child is not None  # it is there
        return _read_factors(child)
    points = [_completed(point, whole) for point in as_list(given, KEY, MOST_POINTS)]
    return _fitted(json.dumps(points, sort_keys=True), read_case).calibration


def _completed(point: Any, whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """A point of this case's own deployment needs no more than its load."""
    given = as_object(point, KEY)
    case = as_object(given.get("case"), f"{KEY}.case")
    if "model" in case:
        return given
    own = {key: value for key, value in whole.items() if key not in (KEY, "id", "name", *SHARED)}
    return {**given, "case": {**own, **case}}


@lru_cache(maxsize=MOST_FITS)
def _fitted(points: str, read_case: ReadCase) -> Fit:
    return fit_points(json.loads(points), read_case)


def fit_points(points: Sequence[Any], read_case: ReadCase, *, source: str = "", date: str = "") -> Fit:
    """The fit to points given as JSON."""
    observations = [_placed(place, point, read_case) for place, point in enumerate(points, 1)]
    return calibrate(observations, source=source, date=date)


def _placed(place: int, point: Any, read_case: ReadCase) -> Observation:
    try:
        return read_observation(point, read_case)
    except CalibrationRefused:
        raise
    except PlimsollError as error:
        raise InputError(msg("point {place}: {reason}", place=place, reason=error.message)) from error


def read_observation(point: Any, read_case: ReadCase) -> Observation:
    """One point: the case that ran and what was measured."""
    given = Fields(as_object(point, "a measured point"), "")
    case = as_object(given.needed("case"), "case")
    scenario, _ = read_case({key: value for key, value in case.items() if key != KEY})
    return Observation(
        scenario=scenario,
        measured=read_figures(given.needed_child("measured")),
        source=given.text("source") or "",
        date=given.text("date") or "",
    )


def read_figures(given: Fields) -> Measured:
    """Measured latencies in milliseconds, each a mean or statistics by name, and the output throughput."""
    latencies = {name: _latency(given, f"{name}_ms") for name in LATENCIES}
    throughput = next((given.number(name) for name in THROUGHPUTS if given.raw(name) is not None), None)
    return Measured(**latencies, output_tokens_per_s=throughput)


def _latency(given: Fields, key: str) -> Percentiles:
    value = given.raw(key)
    if value is None:
        return Percentiles()
    if not isinstance(value, Mapping):
        return Percentiles(mean_s=_seconds(given.number(key)))
    child = given.child(key)
    assert child is not None  # it is there
    return Percentiles(**{f"{name}_s": _seconds(child.number(name)) for name in STATISTICS})


def _seconds(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / KILO


def _read_factors(given: Fields) -> Calibration:
    scope, factors = given.needed_child("valid_for"), given.needed_child("factors")
    unknown = given.raw("not_identified")
    names = as_list(unknown, given.name_of("not_identified"), len(CODES)) if unknown is not None else ()
    return Calibration(
        source=given.needed_text("source"),
        date=given.text("date") or "",
        points=given.count("points", MOST_POINTS) or 1,
        scope=_read_scope(scope),
        factors=Factors(**{code: value for code in CODES if (value := _factor(factors, code)) is not None}),
        not_identified=tuple(code for code in CODES if code in names),
    )


def _read_scope(given: Fields) -> Scope:
    return Scope(
        model=given.needed_text("model"),
        gpu=given.needed_text("gpu"),
        engine=given.needed_text("engine"),
        engine_version=given.needed_text("engine_version"),
        weight_dtype=given.needed_text("weight_dtype"),
        kv_dtype=given.needed_text("kv_dtype"),
        tp=given.count("tp", MAX_GPUS) or 1,
        pp=given.count("pp", MAX_GPUS) or 1,
        dp=given.count("dp", MAX_GPUS) or 1,
        ep=bool(given.flag("ep")),
    )


def _factor(given: Fields, code: str) -> float | None:
    if code == "first_token_steps":
        value = given.number(code)
        if value is not None and abs(value) > MOST_STEPS:
            raise InputError(msg("{name} must be at most {most:count}.", name=given.name_of(code), most=MOST_STEPS))
        return value
    return given.positive(code, MOST_TIMES)


def write_calibration(calibration: Calibration) -> dict[str, Any]:
    """The JSON form that reads back as the same calibration; what is as assumed stays out."""
    scope, usual = vars(calibration.scope), {"tp": 1, "pp": 1, "dp": 1, "ep": False}
    factors = {code: getattr(calibration.factors, code) for code in CODES}
    assumed = vars(Factors())
    return {
        "source": calibration.source,
        **({"date": calibration.date} if calibration.date else {}),
        "points": calibration.points,
        "valid_for": {name: value for name, value in scope.items() if value != usual.get(name)},
        "factors": {code: value for code, value in factors.items() if value != assumed[code]},
        "not_identified": list(calibration.not_identified),
    }


def calibration_text(calibration: Calibration) -> str:
    """A calibration in one short line, as a link carries it."""
    return json.dumps(write_calibration(calibration), separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def calibration_of_text(text: str) -> Calibration:
    """The calibration in such a line."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            msg("The calibration of this link cannot be read: ask for the link again, or fit the points here.")
        ) from error
    return parse_calibration(value)


def parse_calibration(value: Any) -> Calibration:
    """A calibration given by itself, as it is written."""
    return _read_factors(Fields(as_object(value, KEY), KEY))


__all__ = [
    "KEY",
    "calibration_of_text",
    "calibration_text",
    "fit_points",
    "parse_calibration",
    "read_calibration",
    "read_figures",
    "read_observation",
    "write_calibration",
]
