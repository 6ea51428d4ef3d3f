"""Many measured points as they come, sorted into fits: one for each deployment, in the order in which they appear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calc.calibrate.calibration import Scope
from calc.calibrate.constants import constants_of
from calc.calibrate.fit import calibrate
from calc.calibrate.observation import Observation
from calc.calibrate.transfer import scope_of
from calc.errors import PlimsollError
from data.calibration_answer import calibration_answer
from data.case import read_case
from data.case_calibration import read_observation
from data.case_fields import plain_json


def fits(lines: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """One answer for each deployment among the lines; before them, one error for each line that is no point."""
    groups: dict[Scope, list[tuple[Any, Observation]]] = {}
    for line in lines:
        identity = line.get("id") if isinstance(line, Mapping) else None
        try:
            if isinstance(line, PlimsollError):
                raise line
            observation = read_observation(line, read_case)
        except PlimsollError as error:
            yield {**({} if identity is None else {"id": plain_json(identity)}), "error": str(error)}
            continue
        scope = replace(scope_of(observation.scenario.deployment), engine_version="")
        groups.setdefault(scope, []).append((identity, observation))
    for group in groups.values():
        yield _fit(group)


def _fit(group: Sequence[tuple[Any, Observation]]) -> dict[str, Any]:
    ids, observations = [identity for identity, _ in group], [observation for _, observation in group]
    try:
        fit = calibrate(observations)
    except PlimsollError as error:
        return {"points": [plain_json(one) for one in ids], "error": str(error)}
    scenario = observations[0].scenario
    constants = constants_of(fit.factors, scenario.deployment, http=scenario.workload.http)
    return calibration_answer(fit, constants, ids)
