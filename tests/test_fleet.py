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
    if split:
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


@settings(max_examples=200, deadline=None)
@given(fleets(split=False))
def test_replicas_together_give_the_times_of_stepping(
    asked: tuple[RequestPlan, Fleet, SchedulerRules, StepCosts],
) -> None:
    found = simulate_fleet(*asked, max_events=20_000)
    slow = SteppedFleet(*asked)
    slow.run()
    check(found, slow)


@settings(max_examples=200, deadline=None)
@given(fleets(split=True))
def test_split_prefill_gives_the_times_of_stepping(asked: tuple[RequestPlan, Fleet, SchedulerRules, StepCosts]) -> None:
    found = simulate_fleet(*asked, max_events=20_000)
    slow = SteppedFleet(*asked)
    slow.run()
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


@settings(max_examples=200, deadline=None)
@given(grouped(split=False))
def test_prefixes_are_found_where_a_list_of_free_blocks_keeps_them(
    asked: tuple[RequestPlan, Fleet, SchedulerRules, StepCosts],
) -> None:
    found = simulate_fleet(*asked, max_events=20_000)
    slow = SteppedFleet(*asked)
    slow.run()
    check(found, slow)


@settings(max_examples=100, deadline=None)
@given(grouped(split=True))
def test_prefill_replicas_share_prefixes_too(asked: tuple[RequestPlan, Fleet, SchedulerRules, StepCosts]) -> None:
    found = simulate_fleet(*asked, max_events=20_000)
    slow = SteppedFleet(*asked)
    slow.run()
    check(found, slow)


@settings(max_examples=150, deadline=None)
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
