"""A tier under load: the same requests with and without it, at today's load and near the knee."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calc.latency import LatencyReport, load_of, predict, sweep, with_load
from calc.scenario import Scenario
from calc.serving import Tier

NEAR_KNEE_SHARE = 0.9
"""Of the highest load that meets the SLO without the tier, or of the stability limit where no target is set."""
SWEEP_POINTS, SWEEP_REQUESTS = 5, 400
SEED = 1


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One load, both ways."""

    load: float
    """Requests per second, or concurrency of a closed loop."""
    is_today: bool
    without: LatencyReport
    with_tiers: LatencyReport


def without_tiers(scenario: Scenario) -> Scenario:
    """What the GPU does not hold is computed again."""
    return _served(scenario, (), 0.0)


def with_tiers(scenario: Scenario, tiers: tuple[Tier, ...], hit_share: float) -> Scenario:
    """``hit_share`` of prompt tokens lie in the tiers; what the GPU's own cache finds stays found there."""
    left = 1.0 - scenario.workload.prefix_hit_share
    return _served(scenario, tiers, min(hit_share, left))


def _served(scenario: Scenario, tiers: tuple[Tier, ...], hit_share: float) -> Scenario:
    deployment = scenario.deployment
    return replace(
        scenario,
        deployment=replace(deployment, serving=replace(deployment.serving, tiers=tiers)),
        workload=replace(scenario.workload, offload_hit_share=hit_share, num_requests=None),
    )


def under_load(
    scenario: Scenario, tiers: tuple[Tier, ...], hit_share: float, *, requests: int = 1000
) -> tuple[Effect, ...]:
    """Today's load, then one near the knee that the scenario has without the tiers."""
    before, after = without_tiers(scenario), with_tiers(scenario, tiers, hit_share)
    found = sweep(before, points=SWEEP_POINTS, requests=SWEEP_REQUESTS, seed=SEED)
    near = NEAR_KNEE_SHARE * (found.knee_load or found.max_rate_per_s)

    def effect(load: float, *, is_today: bool) -> Effect:
        reports = (
            predict(replace(one, workload=with_load(one.workload, load)), requests=requests, seed=SEED)
            for one in (before, after)
        )
        without, with_it = reports
        return Effect(load=load, is_today=is_today, without=without, with_tiers=with_it)

    return effect(load_of(scenario.workload), is_today=True), effect(near, is_today=False)
