"""Classes, impatient clients, tiers, speculation, swapping, static batches: against theory, order and conservation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from test_simulate import COSTS, STEADY, STEP_S, small_plan

from calc.simulator.draws import draw_paces
from calc.simulator.simulate import (
    ClassRule,
    FetchTier,
    RequestPlan,
    SchedulerRules,
    SimulationResult,
    StepCosts,
    simulate,
)

Measure = Callable[[SimulationResult], float]


def poisson_plan(
    rate_per_s: float, seed: int, *, exponential: bool = True, prompt: int = 1, **more: object
) -> RequestPlan:
    """Service of mean 1 s as output steps."""
    rng = np.random.default_rng(seed)
    service = rng.exponential(1 / STEP_S, STEADY) if exponential else np.full(STEADY, 1 / STEP_S)
    ones = np.ones(STEADY, np.int64)
    return RequestPlan(
        prompt_tokens=ones * prompt,
        output_tokens=np.maximum(1, np.rint(service)).astype(np.int64),
        cached_tokens=ones * 0,
        start_s=np.cumsum(rng.exponential(1 / rate_per_s, STEADY)),
        first_measured=STEADY // 10,
        **more,  # type: ignore[arg-type]
    )


STEPS = StepCosts(tokens_s=np.full(2, STEP_S))


def over_seeds(plan: Callable[[int], RequestPlan], rules: SchedulerRules, measure: Measure) -> tuple[float, float]:
    """Mean over seeds and three standard errors of it."""
    found = [measure(simulate(plan(seed), rules, STEPS)) for seed in range(8)]
    return float(np.mean(found)), 3 * float(np.std(found, ddof=1)) / math.sqrt(len(found))


def wait_of(index: int) -> Measure:
    """Mean wait of one class."""

    def measure(result: SimulationResult) -> float:
        assert result.class_index is not None
        of_class = result.class_index[result.measured] == index
        return float((result.admitted_s - result.arrival_s)[result.measured][of_class].mean())

    return measure


def halves(seed: int) -> np.ndarray:
    return np.random.default_rng((seed, 9)).integers(0, 2, STEADY)


def test_priorities_wait_as_cobham_says() -> None:
    """One server, two classes: W1 = ρ/(1−ρ1), W2 = W1/(1−ρ) for exponential service of mean 1 (Cobham 1954)."""
    rules = SchedulerRules(
        max_tokens=4096, max_seqs=1, total_blocks=10**9, classes=(ClassRule(priority=0), ClassRule(priority=1))
    )
    for place, expected in ((0, 0.7 / 0.65), (1, 0.7 / 0.65 / 0.3)):
        found, band = over_seeds(lambda seed: poisson_plan(0.7, seed, class_index=halves(seed)), rules, wait_of(place))
        assert found == pytest.approx(expected, abs=band + 2 * STEP_S)


def test_a_quota_makes_each_class_a_queue_of_its_own() -> None:
    """Two slots, at most one for each class: two M/M/1 queues at load 0.6."""
    rules = SchedulerRules(
        max_tokens=4096, max_seqs=2, total_blocks=10**9, classes=(ClassRule(max_running=1), ClassRule(max_running=1))
    )
    for place in (0, 1):
        found, band = over_seeds(lambda seed: poisson_plan(1.2, seed, class_index=halves(seed)), rules, wait_of(place))
        assert found == pytest.approx(0.6 / 0.4, abs=band + 2 * STEP_S)


def test_impatient_clients_give_up_as_often_as_barrer_says() -> None:
    """M/M/1 with patience τ for the start: P = (1−ρ)·ρ·e^−(1−ρ)τ / (1 − ρ²·e^−(1−ρ)τ) (Barrer 1957)."""
    load, patience = 0.8, 2.0
    left = math.exp(-(1 - load) * patience)
    expected = (1 - load) * load * left / (1 - load**2 * left)
    rules = SchedulerRules(max_tokens=4096, max_seqs=1, total_blocks=10**9)

    def gave_up(result: SimulationResult) -> float:
        assert result.gave_up_s is not None
        return float(np.isfinite(result.gave_up_s[result.measured]).mean())

    found, band = over_seeds(lambda seed: poisson_plan(load, seed, patience_s=patience), rules, gave_up)
    assert found == pytest.approx(expected, abs=band + STEP_S)


def fetch_wait(result: SimulationResult) -> float:
    assert result.fetch_s is not None
    return float(result.fetch_s[result.measured].mean())


@pytest.mark.parametrize(("concurrency", "expected"), [(1, 1 + 0.6 / (2 * 0.4)), (5000, 1 / 0.4)])
def test_fetches_queue_like_md1_and_share_like_ps(concurrency: int, expected: float) -> None:
    """One at a time: M/D/1 stay 1 + ρ/(2(1−ρ)). All at once: processor sharing, 1/(1−ρ)."""
    ones = np.ones(STEADY, np.int64)
    tier = FetchTier(token_s=1 / 100, concurrency=concurrency)
    rules = SchedulerRules(max_tokens=10**6, max_seqs=5000, total_blocks=10**9, tiers=(tier,))

    def plan(seed: int) -> RequestPlan:
        made = poisson_plan(0.6, seed, prompt=101, fetch_tokens=ones * 100, fetch_tier=ones * 0)
        return replace(made, output_tokens=ones)

    found, band = over_seeds(plan, rules, fetch_wait)
    assert found == pytest.approx(expected, abs=band + 2 * STEP_S)


def test_one_class_with_patience_without_end_is_the_plain_queue() -> None:
    rules = SchedulerRules(max_tokens=512, max_seqs=64, total_blocks=100)
    plain = simulate(small_plan(400), rules, COSTS)
    told_apart = simulate(replace(small_plan(400), patience_s=1e6), replace(rules, classes=(ClassRule(),)), COSTS)
    assert plain.preemptions > 0
    assert told_apart.preemptions == plain.preemptions
    assert told_apart.finished_s == pytest.approx(plain.finished_s, rel=1e-12)


def test_nothing_drafted_and_nothing_accepted_is_the_plain_engine() -> None:
    rules = SchedulerRules(max_tokens=512, max_seqs=64, total_blocks=100)
    plain = simulate(small_plan(400), rules, COSTS)
    paced = simulate(replace(small_plan(400), pace_tokens=np.ones(400)), rules, COSTS)
    assert paced.preemptions == plain.preemptions > 0
    assert paced.finished_s == pytest.approx(plain.finished_s, rel=1e-12)
    assert paced.gap_counts.sum() == plain.gap_counts.sum()


def test_drafts_that_are_all_refused_only_cost() -> None:
    rules = SchedulerRules(max_tokens=512, max_seqs=64, total_blocks=4000)
    plain = simulate(small_plan(300), rules, COSTS)
    refused = simulate(replace(small_plan(300), pace_tokens=np.ones(300)), replace(rules, verified_tokens=4), COSTS)
    assert (refused.finished_s - refused.arrival_s).mean() > (plain.finished_s - plain.arrival_s).mean()


def test_an_accepted_token_per_step_halves_the_decode_time_but_not_the_gap() -> None:
    """Alone on an engine whose step takes the same time whatever is in it."""
    plan = RequestPlan(
        prompt_tokens=np.array([10]),
        output_tokens=np.array([2001]),
        cached_tokens=np.array([0]),
        start_s=np.array([0.0]),
        pace_tokens=np.array([2.0]),
    )
    result = simulate(plan, SchedulerRules(max_tokens=64, max_seqs=1, total_blocks=1000, verified_tokens=2), STEPS)
    assert float(result.finished_s[0] - result.first_token_s[0]) == pytest.approx(1000 * STEP_S)
    assert result.gap_counts.sum() == 1000
    assert result.gap_mean_s == pytest.approx(STEP_S)


@pytest.mark.parametrize(("accepted", "drafted"), [(0.0, 3), (0.7, 1), (1.4, 3), (2.9, 3)])
def test_paces_give_as_many_tokens_per_step_as_are_accepted(accepted: float, drafted: int) -> None:
    """Against steps drawn one by one: each drafted token accepted with the chance that gives this mean."""
    rng = np.random.default_rng(5)
    chances = np.linspace(0, 1, 100_001)
    chance = float(np.interp(accepted, (chances[:, None] ** np.arange(1, drafted + 1)).sum(axis=1), chances))
    gained = 1 + np.cumprod(rng.random((2000, 300, drafted)) < chance, axis=2).sum(axis=2)
    steps = (np.cumsum(gained, axis=1) < 300).sum(axis=1) + 1
    drawn = 300 / draw_paces(np.full(20_000, 301), accepted, drafted, 1)
    assert drawn.mean() == pytest.approx(steps.mean(), rel=0.01)
    assert drawn.std() == pytest.approx(steps.std(), rel=0.1, abs=0.05)


def test_swapping_over_a_link_without_end_is_never_slower_than_computing_again() -> None:
    rules = SchedulerRules(max_tokens=512, max_seqs=64, total_blocks=60, prefix_caching=False)
    again = simulate(small_plan(300), rules, COSTS)
    stays = []
    for block_s in (0.0, 1e-4, 1e-2):
        result = simulate(small_plan(300), replace(rules, swap_block_s=block_s), COSTS)
        assert result.preemptions > 0
        stays.append(float((result.finished_s - result.arrival_s).mean()))
    assert stays == sorted(stays)
    assert stays[0] <= float((again.finished_s - again.arrival_s).mean())


def test_a_fetch_over_a_link_without_end_is_a_free_hit() -> None:
    plan = small_plan(300)
    found = np.minimum(plan.prompt_tokens - 1, 100)
    rules = SchedulerRules(max_tokens=512, max_seqs=64, total_blocks=4000)
    hit = simulate(replace(plan, cached_tokens=found), rules, COSTS)
    tiers = (FetchTier(token_s=1e-15),)
    fetched = simulate(replace(plan, fetch_tokens=found, fetch_tier=found * 0), replace(rules, tiers=tiers), COSTS)
    computed = simulate(plan, rules, COSTS)
    stays = [float((one.finished_s - one.arrival_s).mean()) for one in (hit, fetched, computed)]
    assert stays == sorted(stays)
    assert stays[1] == pytest.approx(stays[0], rel=0.02)


def test_slower_tiers_never_answer_sooner() -> None:
    plan = small_plan(300)
    found = np.minimum(plan.prompt_tokens - 1, 100)
    rules = SchedulerRules(max_tokens=512, max_seqs=64, total_blocks=4000)
    firsts = []
    for token_s in (1e-6, 1e-5, 1e-4, 5e-4):
        tiers = (FetchTier(token_s=token_s, concurrency=2),)
        result = simulate(replace(plan, fetch_tokens=found, fetch_tier=found * 0), replace(rules, tiers=tiers), COSTS)
        firsts.append(float((result.first_token_s - result.arrival_s).mean()))
    assert firsts == sorted(firsts)


def test_a_static_batch_of_equal_requests_runs_like_a_continuous_one_and_unequal_ones_wait_for_the_longest() -> None:
    count = 64
    prompt = np.full(count, 8)
    plan = RequestPlan(
        prompt_tokens=prompt, output_tokens=np.full(count, 50), cached_tokens=prompt * 0, start_s=np.zeros(count)
    )
    rules = SchedulerRules(max_tokens=4096, max_seqs=8, total_blocks=10**6)
    static = replace(rules, reserved_tokens=50)
    assert simulate(plan, static, STEPS).end_s == pytest.approx(simulate(plan, rules, STEPS).end_s)
    mixed = replace(plan, output_tokens=np.where(np.arange(count) % 8 == 0, 50, 1))
    assert simulate(mixed, static, STEPS).end_s == pytest.approx(simulate(plan, static, STEPS).end_s)
    assert simulate(mixed, rules, STEPS).end_s < simulate(mixed, static, STEPS).end_s / 3


def test_retries_make_an_overload_worse() -> None:
    """Clients that come back load the engine with prompts whose answers nobody waits for."""
    plan = replace(small_plan(600), start_s=np.cumsum(np.full(600, 0.02)), patience_s=0.5)
    rules = SchedulerRules(max_tokens=256, max_seqs=16, total_blocks=400)
    shares = []
    for retries in (0, 3):
        result = simulate(replace(plan, retries=retries, retry_after_s=0.1), rules, COSTS)
        assert result.attempts is not None
        assert result.complete
        assert result.attempts.max() <= 1 + retries
        shares.append(float(np.isfinite(result.first_token_s).sum() / result.attempts.sum()))
    assert shares[1] < shares[0]
