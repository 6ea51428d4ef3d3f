"""Several replicas at once: exact against a plain stepped version, in the order theory gives, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepped_fleet import SteppedFleet
from test_simulate import NEVER_A_TIE, scenarios

from calc.simulator import layout as at
from calc.simulator.fleet import POLICIES, Fleet, simulate_fleet
from calc.simulator.simulate import (
    PrefixPlan,
    RequestPlan,
    SchedulerRules,
    SimulationResult,
    StepCosts,
    kernel_for,
    simulate,
    tables_of,
)


@st.composite
def fleets(draw: st.DrawFn, *, split: bool) -> tuple[RequestPlan, Fleet, SchedulerRules, StepCosts]:
    """The small crowded scenarios of one replica, on several."""
    plan, rules, costs = draw(scenarios())
    rules = replace(rules, fixed_blocks=0, prefill_alone=False, reserves_output=False)
    fleet = Fleet(
        schedulers=draw(st.integers(1, 4)),
        routing=draw(st.sampled_from(POLICIES[:3])),
        prefill_schedulers=draw(st.integers(1, 3)) if split else 0,
        handover_s=draw(st.sampled_from([0.0, 0.11 * NEVER_A_TIE])),
        token_move_s=draw(st.sampled_from([0.0013, 0.07])) * NEVER_A_TIE,
    )
    if fleet.schedulers + fleet.prefill_schedulers > 1:
        # An answer of one replica that brings another a request at that moment may meet a boundary of its steps.
        plan = replace(plan, think_s=max(plan.think_s, 0.01 * NEVER_A_TIE))
    return plan, fleet, rules, costs


def check(found: SimulationResult, slow: SteppedFleet) -> None:
    requests = [slow.place[index][1] for index in range(slow.count)]
    entries = [(slow.entry or slow.place)[index][1] for index in range(slow.count)]
    assert found.arrival_s == pytest.approx(slow.arrival, rel=1e-9)
    assert found.admitted_s == pytest.approx([one.admitted for one in entries], rel=1e-9)
    assert found.first_token_s == pytest.approx([one.first for one in requests], rel=1e-9)
    assert found.finished_s == pytest.approx([one.finish for one in requests], rel=1e-9)
    assert found.preemptions == sum(node.preemptions for node in slow.answering)


@settings(max_examples=100, deadline=None)
@given(fleets(split=False))
def test_replicas_together_give_the_times_of_stepping(
    asked: tuple[RequestPlan, Fleet, SchedulerRules, StepCosts],
) -> None:
    found = simulate_fleet(*asked, max_events=20_000)
    slow = SteppedFleet(*asked)
    slow.run()
    check(found, slow)


@settings(max_examples=100, deadline=None)
@given(fleets(split=True))
def test_split_prefill_gives_the_times_of_stepping(asked: tuple[RequestPlan, Fleet, SchedulerRules, StepCosts]) -> None:
    found = simulate_fleet(*asked, max_events=20_000)
    slow = SteppedFleet(*asked)
    slow.run()
    assert found.complete
    check(found, slow)
    assert found.transfer_s == pytest.approx(slow.landed - slow.handed, rel=1e-7, abs=1e-9)


@st.composite
def grouped(draw: st.DrawFn, *, split: bool) -> tuple[RequestPlan, Fleet, SchedulerRules, StepCosts]:
    """Requests that share prefixes, on caches too small for all of them."""
    plan, fleet, rules, costs = draw(fleets(split=split))
    count, groups = plan.prompt_tokens.size, draw(st.integers(1, 5))
    group = np.array(draw(st.lists(st.integers(0, groups - 1), min_size=count, max_size=count)))
    share = draw(st.sampled_from([0.4, 0.8, 1.0]))
    tokens = np.minimum(np.floor(share * plan.prompt_tokens), plan.prompt_tokens - 1).astype(np.int64)
    rules = replace(rules, prefix_caching=True)
    prefixes = PrefixPlan(group=group, shared_blocks=tokens // rules.block_tokens, count=groups)
    plan = replace(plan, cached_tokens=plan.cached_tokens * 0, groups=prefixes)
    return plan, replace(fleet, routing=draw(st.sampled_from(POLICIES))), rules, costs


@settings(max_examples=100, deadline=None)
@given(grouped(split=False))
def test_prefixes_are_found_where_a_list_of_free_blocks_keeps_them(
    asked: tuple[RequestPlan, Fleet, SchedulerRules, StepCosts],
) -> None:
    found = simulate_fleet(*asked, max_events=20_000)
    slow = SteppedFleet(*asked)
    slow.run()
    assert found.complete
    check(found, slow)


@settings(max_examples=100, deadline=None)
@given(grouped(split=True))
def test_prefill_replicas_share_prefixes_too(asked: tuple[RequestPlan, Fleet, SchedulerRules, StepCosts]) -> None:
    found = simulate_fleet(*asked, max_events=20_000)
    slow = SteppedFleet(*asked)
    slow.run()
    assert found.complete
    check(found, slow)


@settings(max_examples=80, deadline=None)
@given(scenarios(), st.floats(0.01, 3.0))
def test_a_run_cut_into_pieces_is_the_whole_run(
    scenario: tuple[RequestPlan, SchedulerRules, StepCosts], piece_s: float
) -> None:
    """Also where each open arrival is put in only when its time has come."""
    plan, rules, costs = scenario
    whole = simulate(plan, rules, costs)
    n, x, r, t, q = tables_of(plan, rules, costs, 10**6)
    run = kernel_for(plan, rules)
    until, known = 0.0, 0 if not plan.closed else plan.start_s.size
    n[at.USERS] = known
    while n[at.MEASURED] < plan.prompt_tokens.size:
        until += piece_s
        while known < plan.start_s.size and plan.start_s[known] < until:
            x[at.UNTIL_S] = plan.start_s[known]
            run(n, x, r, t, q)
            known += 1
            n[at.USERS] = known
        x[at.UNTIL_S] = until
        run(n, x, r, t, q)
    assert t[at.FINISH] == pytest.approx(whole.finished_s, rel=1e-9)
    assert t[at.ADMITTED] == pytest.approx(whole.admitted_s, rel=1e-9)
    assert n[at.PREEMPTIONS] == whole.preemptions
    assert np.array_equal(n[n[at.GAPS] : n[at.GAPS] + at.GAP_BINS].sum(), whole.gap_counts.sum())


STEP_COSTS = StepCosts(tokens_s=0.008 + 2e-5 * np.arange(2050), token_beyond_s=2e-5, context_s=5e-8, sequence_s=1e-5)
RULES = SchedulerRules(max_tokens=2048, max_seqs=32, total_blocks=8000)


def loaded(rate_per_s: float, count: int, seed: int = 1) -> RequestPlan:
    """Poisson arrivals of prompts and outputs of very different length."""
    rng = np.random.default_rng(seed)
    prompt = np.rint(300 * np.exp(rng.standard_normal(count))).astype(np.int64).clip(1, 4000)
    output = np.rint(120 * np.exp(rng.standard_normal(count))).astype(np.int64).clip(1, 2000)
    return RequestPlan(
        prompt_tokens=prompt,
        output_tokens=output,
        cached_tokens=prompt * 0,
        start_s=np.cumsum(rng.exponential(1 / rate_per_s, count)),
        first_measured=count // 10,
    )


def waits(found: SimulationResult) -> np.ndarray:
    return (found.admitted_s - found.arrival_s)[found.measured]


def test_counting_requests_waits_less_than_taking_turns_and_taking_turns_less_than_chance() -> None:
    replicas = 4
    plan = loaded(replicas * 12.0, 4000)
    found = {
        one: simulate_fleet(plan, Fleet(schedulers=replicas, routing=one), RULES, STEP_COSTS) for one in POLICIES[:3]
    }
    tails = {one: float(np.quantile(waits(result), 0.99)) for one, result in found.items()}
    assert tails["least-loaded"] <= tails["round-robin"] <= tails["random"]
    assert tails["least-loaded"] < 0.9 * tails["random"]


def test_replicas_fed_by_chance_are_like_one_with_its_share() -> None:
    replicas, share = 4, 8.0
    together = simulate_fleet(loaded(replicas * share, 8000), Fleet(schedulers=replicas), RULES, STEP_COSTS)
    alone = simulate(loaded(share, 8000, seed=2), RULES, STEP_COSTS)
    for found in (together, alone):
        assert found.complete
    stays = [float((found.finished_s - found.arrival_s)[found.measured].mean()) for found in (together, alone)]
    assert stays[0] == pytest.approx(stays[1], rel=0.08)
    assert together.gap_mean_s == pytest.approx(alone.gap_mean_s, rel=0.04)


def repeated(groups: int, count: int = 1000) -> RequestPlan:
    """2,048 shared and 500 own prompt tokens, hardly an output, each prefix equally often, one request at a time."""
    group = np.random.default_rng(3).permutation(np.repeat(np.arange(groups), count // groups))
    same = np.ones(count, np.int64)
    return RequestPlan(
        prompt_tokens=2548 * same,
        output_tokens=same,
        cached_tokens=0 * same,
        start_s=np.arange(count) * 10.0,
        groups=PrefixPlan(group=group, shared_blocks=128 * same, count=groups),
    )


@pytest.mark.parametrize(
    ("groups", "free_tokens", "hit_share"),
    [
        (500, 2_000_000, 0.402),
        (500, 1_000_000, 0.292),
        (500, 200_000, 0.064),
        (250, 2_000_000, 0.603),
        (250, 200_000, 0.191),
        (5, 200_000, 0.800),
    ],
)
def test_hits_follow_from_how_often_a_prefix_comes_and_from_free_memory(
    groups: int, free_tokens: int, hit_share: float
) -> None:
    """Counted with an LRU of whole prompts, outputs left out; with unlimited memory (N - G)/N x 2048/2548 exactly."""
    rules = SchedulerRules(max_tokens=8192, max_seqs=64, total_blocks=free_tokens // 16)
    found = simulate(repeated(groups), rules, StepCosts(tokens_s=np.full(8194, 0.01)))
    assert found.hit_share == pytest.approx(hit_share, abs=0.025)


def test_taking_turns_dilutes_the_cache_and_following_the_prefix_keeps_it() -> None:
    """A cache that holds a quarter of the prefixes: with four replicas round-robin finds at most about that, and
    prefix-aware routing what one cache of four times the size would."""
    replicas, rules = 4, SchedulerRules(max_tokens=8192, max_seqs=64, total_blocks=9000)
    plan = repeated(100, 2000)
    found = {
        one: simulate_fleet(
            plan, Fleet(schedulers=replicas, routing=one), rules, StepCosts(tokens_s=np.full(8194, 0.01))
        )
        for one in ("round-robin", "prefix-aware")
    }
    turns, aware = found["round-robin"].hit_share or 0.0, found["prefix-aware"].hit_share or 0.0
    ceiling = 2048 / 2548
    assert turns < 0.5 * ceiling
    assert aware > 0.85 * ceiling


def test_a_prefill_replica_of_equal_prompts_is_a_single_server_with_equal_service() -> None:
    """M/D/1 to the last bit: waits follow Lindley's recursion, and the first token comes one decode step later."""
    prefill_s, load, count = 0.1, 0.6, 500
    same = np.ones(count, np.int64)
    start = np.cumsum(np.random.default_rng(3).exponential(prefill_s / load, count))
    plan = RequestPlan(prompt_tokens=1000 * same, output_tokens=2 * same, cached_tokens=0 * same, start_s=start)
    rules = SchedulerRules(max_tokens=1000, max_seqs=64, total_blocks=10**6, chunked=False)
    costs = StepCosts(tokens_s=np.where(np.arange(1001) == 1000, prefill_s, 1e-6))
    found = simulate_fleet(plan, Fleet(schedulers=1, prefill_schedulers=1), rules, costs)
    free, expected = 0.0, []
    for arrival in start:
        begins = max(float(arrival), free)
        expected.append(begins - arrival)
        free = begins + prefill_s
    assert found.admitted_s - start == pytest.approx(expected, abs=1e-9)
    assert found.first_token_s - found.admitted_s == pytest.approx(np.full(count, prefill_s + 1e-6), abs=1e-9)


def test_kv_moves_after_its_handover_one_transfer_of_a_replica_at_a_time() -> None:
    """Two prompts prefilled in one step: hand-shakes overlap, transfers queue."""
    same = np.ones(2, np.int64)
    plan = RequestPlan(
        prompt_tokens=100 * same, output_tokens=3 * same, cached_tokens=0 * same, start_s=np.array([0.0, 0.0])
    )
    fleet = Fleet(schedulers=2, routing="round-robin", prefill_schedulers=1, handover_s=0.5, token_move_s=0.01)
    found = simulate_fleet(plan, fleet, SchedulerRules(max_tokens=512, max_seqs=4, total_blocks=64), STEP_COSTS)
    assert found.transfer_s == pytest.approx([1.5, 2.5])
    assert found.blocks_left == 64
