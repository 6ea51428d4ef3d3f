"""The review of a case: a saved one as it was saved, or that of a scenario as the calculations have it now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from calc import cost, latency, memory
from calc.judge.decide import scenario_decision
from data import catalogue
from data.case import example_case, read_case
from data.case_lines import split_cases
from ui.sheet.build import build_review
from ui.sheet.codec import FORMAT, review_from_json
from ui.sheet.review import Filing, Review


def review_of(content: bytes | None) -> Review:
    """A saved review as it was saved, or the review of a scenario (without one, of the worked example)."""
    case = example_case() if content is None else split_cases(content)[0]
    if content is not None and isinstance(case, Mapping) and case.get("format") == FORMAT:
        return review_from_json(content)
    return _of_scenario(case)


def _of_scenario(case: Any) -> Review:
    scenario, _ = read_case(case)
    deployment, workload = scenario.deployment, scenario.workload
    planned = memory.estimate_memory(deployment, workload)
    load = latency.predict(scenario) if planned.fits else None
    prices = cost.cost_of(scenario, load)
    return build_review(
        scenario,
        memory.estimate_memory(deployment, workload, load.concurrency / deployment.replicas) if load else planned,
        load,
        scenario_decision(scenario, tuple(catalogue.gpus().values())),
        sweep=latency.sweep(scenario) if load else None,
        cost_per_million_tokens=prices.per_million_output_tokens if prices else None,
        filing=Filing(created_at=datetime.now(UTC).date().isoformat()),
        case=case,
    )
