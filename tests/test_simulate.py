"""The leaping simulator against a plain stepped one, against theory, and against conservation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepped import Stepped

from calc.simulator.simulate import (
    ClassRule,
    FetchTier,
    RequestPlan,
    SchedulerRules,
    SimulationResult,
    StepCosts,
    simulate,
)

HISTOGRAM_STEP = 1 / 256
"""Widest bin of the gap histogram, relative."""
NEVER_A_TIE = math.sqrt(2) / 1.9
"""Arrivals on an irrational grid never meet a step boundary, where rounding would decide."""


def lengths(low: int, high: int, count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, high), min_size=count, max_size=count)


Scenario: TypeAlias = tuple[RequestPlan, SchedulerRules, StepCosts]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Small and crowded: few blocks, small budgets, windows, open and closed loops."""
    count = draw(st.integers(1, 24))
    prompt = np.array(draw(lengths(1, 40, count)))
    output = np.array(draw(lengths(1, 30, count)))
    cached = np.minimum(np.array(draw(lengths(0, 20, count))), prompt - 1)
    block = draw(st.sampled_from([1, 4, 16]))
    needed = int(-(-(prompt + output - 1).max() // block))
    closed = draw(st.booleans())
    users = draw(st.integers(1, count)) if closed else count
    gaps = np.array(draw(lengths(0, 60, users))) * NEVER_A_TIE * draw(st.sampled_from([0.02, 0.3, 2.0]))
    caching = draw(st.booleans())
    fixed = draw(st.sampled_from([0, 0, 3]))
    plan = RequestPlan(
        prompt_tokens=prompt,
        output_tokens=output,
        cached_tokens=cached if caching else cached * 0,
        start_s=np.cumsum(gaps + 1e-3 * NEVER_A_TIE),
        closed=closed,
        think_s=draw(st.sampled_from([0.0, 0.37 * NEVER_A_TIE])),
    )
    rules = SchedulerRules(
        max_tokens=draw(st.integers(2, 60)),
        max_seqs=draw(st.integers(1, 12)),
        total_blocks=needed + fixed + draw(st.integers(0, 3 * needed)),
        block_tokens=block,
        fixed_blocks=fixed,
        watermark_blocks=draw(st.integers(0, 2)),
        chunked=draw(st.booleans()),
        prefix_caching=caching,
        queued_step=draw(st.booleans()),
        prefill_alone=draw(st.booleans()),
        reserves_output=draw(st.booleans()),
    )
    return plan, rules, draw(costs())


@st.composite
def costs(draw: st.DrawFn) -> StepCosts:
    """Of all kinds, with a short and a long table."""
    window = draw(st.sampled_from([0, 0, 12]))
    return StepCosts(
        tokens_s=0.05 + 0.011 * np.arange(draw(st.sampled_from([3, 100]))),
        token_beyond_s=0.011,
        sequence_s=0.003,
        prefill_s=0.007,
        context_s=draw(st.sampled_from([0.0, 0.0013])),
        window_s=0.0007 if window else 0.0,
        pair_s=0.00021,
        window_pair_s=0.00017 if window else 0.0,
        window_tokens=window,
    )


@st.composite
def rich_scenarios(draw: st.DrawFn) -> Scenario:
    """Any mixture of classes, clients, tiers, swapping, speculation and static batches on top."""
    plan, rules, steps = draw(scenarios())
    for feature in (classes, clients, tiers, swapping, speculation, static):
        if draw(st.booleans()):
            plan, rules = feature(draw, plan, rules)
    return plan, rules, steps


def classes(draw: st.DrawFn, plan: RequestPlan, rules: SchedulerRules) -> tuple[RequestPlan, SchedulerRules]:
    quotas = draw(st.lists(st.sampled_from([None, 1, 2, 5]), min_size=1, max_size=4))
    found = tuple(ClassRule(priority=draw(st.integers(-1, 1)), max_running=quota) for quota in quotas)
    index = np.array(draw(lengths(0, len(found) - 1, plan.prompt_tokens.size)))
    return replace(plan, class_index=index), replace(rules, classes=found)


def clients(draw: st.DrawFn, plan: RequestPlan, rules: SchedulerRules) -> tuple[RequestPlan, SchedulerRules]:
    patience = draw(st.sampled_from([0.05, 0.4, 1.7, 6.0, 40.0])) * NEVER_A_TIE * 1.01
    retry_after = draw(st.sampled_from([0.0, 0.3, 2.9])) * NEVER_A_TIE * 0.97
    return replace(
        plan, patience_s=patience, retries=draw(st.sampled_from([0, 1, 3])), retry_after_s=retry_after
    ), rules


def tiers(draw: st.DrawFn, plan: RequestPlan, rules: SchedulerRules) -> tuple[RequestPlan, SchedulerRules]:
    found = tuple(
        FetchTier(
            token_s=draw(st.sampled_from([0.0009, 0.011, 0.13])) * NEVER_A_TIE,
            latency_s=draw(st.sampled_from([0.0, 0.023, 0.7])) * NEVER_A_TIE * 1.03,
            concurrency=draw(st.integers(1, 3)),
        )
        for _ in range(draw(st.integers(1, 2)))
    )
    count = plan.prompt_tokens.size
    fetch = np.minimum(np.array(draw(lengths(0, 30, count))), plan.prompt_tokens - 1 - plan.cached_tokens)
    tier = np.array(draw(lengths(0, len(found) - 1, count)))
    return replace(plan, fetch_tokens=fetch, fetch_tier=tier), replace(rules, tiers=found)


def swapping(draw: st.DrawFn, plan: RequestPlan, rules: SchedulerRules) -> tuple[RequestPlan, SchedulerRules]:
    return plan, replace(rules, swap_block_s=draw(st.sampled_from([0.0, 0.0017, 0.05])))


def speculation(draw: st.DrawFn, plan: RequestPlan, rules: SchedulerRules) -> tuple[RequestPlan, SchedulerRules]:
    drafted = draw(st.integers(0, 4))
    paces = st.lists(st.floats(1, 1 + drafted), min_size=plan.prompt_tokens.size, max_size=plan.prompt_tokens.size)
    budget = max(rules.max_tokens, 1 + drafted)
    return replace(plan, pace_tokens=np.array(draw(paces))), replace(
        rules, verified_tokens=1 + drafted, max_tokens=budget
    )


def static(draw: st.DrawFn, plan: RequestPlan, rules: SchedulerRules) -> tuple[RequestPlan, SchedulerRules]:
    """No batch of this kind fetches."""
    return replace(plan, fetch_tokens=None), replace(rules, tiers=(), reserved_tokens=draw(st.integers(1, 40)))


def compare(scenario: Scenario) -> None:
    """The leaping simulator's times and counts against the stepped one's."""
    fast = simulate(*scenario)
    slow = Stepped(*scenario)
    slow.run()
    names = ("arrival", "admitted", "first", "finish")
    columns = (fast.arrival_s, fast.admitted_s, fast.first_token_s, fast.finished_s)
    for name, column in zip(names, columns, strict=True):
        assert column == pytest.approx([getattr(one, name) for one in slow.requests], rel=1e-9, nan_ok=True), name
    assert fast.preemptions == slow.preemptions
    assert fast.gap_counts.sum() == len(slow.gaps)
    if slow.gaps:
        assert fast.gap_mean_s == pytest.approx(float(np.mean(slow.gaps)))
        assert fast.gap_quantiles((0.5,))[0] == pytest.approx(
            np.quantile(slow.gaps, 0.5, method="inverted_cdf"), rel=0.006
        )
    if fast.gave_up_s is not None and fast.attempts is not None:
        assert fast.gave_up_s == pytest.approx([one.gave_up for one in slow.requests], rel=1e-9, nan_ok=True)
        assert fast.attempts.tolist() == [one.attempts for one in slow.requests]
    if fast.fetch_s is not None:
        assert fast.fetch_s == pytest.approx([one.fetch_wait for one in slow.requests], rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(scenarios())
def test_leaping_gives_the_times_of_stepping(scenario: Scenario) -> None:
    compare(scenario)


@settings(max_examples=100, deadline=None)
@given(rich_scenarios())
def test_leaping_gives_the_times_of_stepping_whatever_is_on(scenario: Scenario) -> None:
    compare(scenario)


@settings(max_examples=60, deadline=None)
@given(rich_scenarios())
def test_every_request_ends_once_and_every_block_comes_back(scenario: Scenario) -> None:
    plan, rules, steps = scenario
    result = simulate(plan, rules, steps)
    assert result.complete
    assert result.blocks_left == rules.total_blocks
    answered = np.isfinite(result.finished_s)
    gave_up = np.isfinite(result.gave_up_s) if result.gave_up_s is not None else ~answered
    assert (answered ^ gave_up).all()
    assert (result.arrival_s <= result.admitted_s)[answered].all()
    assert (result.admitted_s < result.first_token_s)[answered].all()
    single = (result.first_token_s == result.finished_s)[answered]
    assert (single == (plan.output_tokens == 1)[answered]).all()
    if plan.pace_tokens is None:
        assert result.gap_counts.sum() == (plan.output_tokens - 1)[answered].sum()
    assert result.kv_used_max_share <= 1


STEP_S = 1e-3
"""Engine step of the queueing tests: a thousandth of the mean service time, so that time is all but continuous."""
STEADY = 60_000


def queue(
    load: float, slots: int = 1, *, exponential: bool = True, poisson: bool = True, shared: bool = False, seed: int = 1
) -> SimulationResult:
    """A textbook queue: one-token prompts, service of mean 1 s as output steps, ``slots`` servers."""
    rng = np.random.default_rng(seed)
    mean_steps = 1 / STEP_S
    service = rng.exponential(mean_steps, STEADY) if exponential else np.full(STEADY, mean_steps)
    rate = load * (1 if shared else slots)
    gaps = rng.exponential(1 / rate, STEADY) if poisson else np.full(STEADY, 1 / rate)
    output = np.maximum(1, np.rint(service)).astype(np.int64)
    ones = np.ones(STEADY, np.int64)
    plan = RequestPlan(
        prompt_tokens=ones,
        output_tokens=output,
        cached_tokens=ones * 0,
        start_s=np.cumsum(gaps),
        first_measured=STEADY // 10,
    )
    rules = SchedulerRules(max_tokens=4096, max_seqs=slots, total_blocks=10**9)
    per_sequence = STEP_S if shared else 0.0
    return simulate(plan, rules, StepCosts(tokens_s=np.full(2, 0.0 if shared else STEP_S), sequence_s=per_sequence))


def mean_wait(result: SimulationResult) -> float:
    return float((result.admitted_s - result.arrival_s)[result.measured].mean())


def mean_stay(result: SimulationResult) -> float:
    return float((result.finished_s - result.arrival_s)[result.measured].mean())


def over_seeds(measure, **kind) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Mean over seeds and three standard errors of it."""
    found = [measure(queue(seed=seed, **kind)) for seed in range(8)]
    return float(np.mean(found)), 3 * float(np.std(found, ddof=1)) / math.sqrt(len(found))


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_one_slot_with_exponential_service_waits_like_mm1(load: float) -> None:
    wait, band = over_seeds(mean_wait, load=load)
    assert wait == pytest.approx(load / (1 - load), abs=band)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_one_slot_with_equal_service_waits_like_md1(load: float) -> None:
    wait, band = over_seeds(mean_wait, load=load, exponential=False)
    assert wait == pytest.approx(load / (2 * (1 - load)), abs=band + STEP_S)


def test_four_slots_wait_like_erlang_c() -> None:
    wait, band = over_seeds(mean_wait, load=0.8, slots=4)
    assert wait == pytest.approx(0.5964 / (4 * 0.2), abs=band + STEP_S)  # Erlang C table: 4 servers, 3.2 Erlang


def test_a_step_per_sequence_is_processor_sharing() -> None:
    """Stay of M/G/1-PS is E[S]/(1−ρ) whatever the service distribution."""
    for exponential in (True, False):
        stay, band = over_seeds(mean_stay, load=0.5, slots=4096, shared=True, exponential=exponential)
        assert stay == pytest.approx(2.0, abs=band + 0.02)


def test_constant_arrivals_and_service_below_capacity_never_wait() -> None:
    assert mean_wait(queue(0.9, exponential=False, poisson=False)) < STEP_S


def test_without_load_a_request_takes_its_steps() -> None:
    result = queue(1e-4, exponential=False)
    assert mean_stay(result) == pytest.approx(1.0, rel=1e-3)


def test_littles_law_holds() -> None:
    """Mean number in the system, integrated over time, equals rate × stay."""
    result = queue(0.7, poisson=False)
    span = float(result.finished_s[-1] - result.arrival_s[0])
    events = np.concatenate([result.arrival_s, result.finished_s])
    order = np.argsort(events)
    inside = np.cumsum(np.where(order < STEADY, 1, -1))[:-1]
    number = float((inside * np.diff(events[order])).sum()) / span
    assert number == pytest.approx(STEADY / span * float((result.finished_s - result.arrival_s).mean()), rel=1e-3)


def small_plan(count: int, *, cached: int = 0) -> RequestPlan:
    rng = np.random.default_rng(3)
    prompt = rng.integers(50, 400, count)
    return RequestPlan(
        prompt_tokens=prompt,
        output_tokens=rng.integers(1, 200, count),
        cached_tokens=np.minimum(prompt - 1, cached),
        start_s=np.cumsum(rng.exponential(0.1, count)),
    )


COSTS = StepCosts(tokens_s=0.005 + 4e-5 * np.arange(600), token_beyond_s=4e-5, context_s=2e-7, sequence_s=2e-5)


def test_more_prefix_hits_never_raise_the_mean_time_to_first_token() -> None:
    rules = SchedulerRules(max_tokens=512, max_seqs=64, total_blocks=2000)
    means = []
    for cached in (0, 50, 150, 400):
        result = simulate(small_plan(400, cached=cached), rules, COSTS)
        means.append(float((result.first_token_s - result.arrival_s).mean()))
    assert means == sorted(means, reverse=True)


def test_a_smaller_pool_preempts_and_is_never_faster() -> None:
    ends = []
    for blocks in (4000, 100, 60, 40):
        result = simulate(small_plan(200), SchedulerRules(max_tokens=512, max_seqs=64, total_blocks=blocks), COSTS)
        ends.append((result.preemptions, float((result.finished_s - result.arrival_s).mean())))
    assert ends[0][0] == 0 < ends[-1][0]
    assert [stay for _, stay in ends] == sorted(stay for _, stay in ends)


def test_a_smaller_token_budget_shortens_the_longest_gaps() -> None:
    rules = {"max_tokens": 512, "max_seqs": 64, "total_blocks": 4000}
    chunked = simulate(small_plan(400), SchedulerRules(**rules), COSTS)
    tight = simulate(small_plan(400), SchedulerRules(**{**rules, "max_tokens": 128}), COSTS)
    assert tight.gap_quantiles((0.999,)) < chunked.gap_quantiles((0.999,))


def test_a_request_longer_than_the_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than the KV pool"):
        simulate(small_plan(10), SchedulerRules(max_tokens=512, max_seqs=8, total_blocks=3), COSTS)


def test_a_hopeless_run_stops_and_says_so() -> None:
    result = simulate(
        small_plan(400), SchedulerRules(max_tokens=64, max_seqs=64, total_blocks=4000), COSTS, max_events=100
    )
    assert not result.complete
    assert result.events == 100


def test_a_million_token_prompt_and_a_hundred_thousand_users_end() -> None:
    count = 1000
    plan = RequestPlan(
        prompt_tokens=np.full(count, 10**6),
        output_tokens=np.full(count, 20),
        cached_tokens=np.zeros(count, np.int64),
        start_s=np.zeros(count),
    )
    long = simulate(plan, SchedulerRules(max_tokens=2048, max_seqs=256, total_blocks=10**7), COSTS)
    assert long.complete
    many = np.full(150_000, 30)
    crowd = RequestPlan(
        prompt_tokens=many, output_tokens=many, cached_tokens=many * 0, start_s=np.zeros(100_000), closed=True
    )
    assert simulate(crowd, SchedulerRules(max_tokens=8192, max_seqs=1024, total_blocks=10**5), COSTS).complete
