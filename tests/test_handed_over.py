"""Measured figures that are handed over to a decision, and whose they are."""

from __future__ import annotations

from calc.evidence import Evidence, Provenance
from data.case import example_case, read_case
from data.run_evidence import of_model


def test_an_engine_that_names_another_model_leaves_a_caveat_on_its_own_figures_only() -> None:
    scenario = read_case(example_case())[0]
    engine, log = _figure("running"), _figure("hit_rate_share")
    served = scenario.deployment.model.name
    assert of_model((engine, log), (f"owner/{served.rpartition('/')[2].lower()}", (engine,)), scenario) == (engine, log)
    marked, plain = of_model((engine, log), ("opt-125m", (engine,)), scenario)
    assert "opt-125m" in str(marked.caveats[0])
    assert plain == log


def _figure(metric: str) -> Evidence:
    return Evidence(metric=metric, value=0.5, unit="share", provenance=Provenance.MEASURED)
