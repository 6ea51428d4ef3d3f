"""The leaping simulator against a plain stepped one, against theory, and against conservation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepped import Stepped

from calc.simulate import RequestPlan, SchedulerRules, SimulationResult, StepCosts, simulate

NEVER_A_TIE = math.sqrt(2) / 1.9
"""Arrivals on an irrational grid never meet a step boundary, where rounding would decide."""


def lengths(low: int, high: int, count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, high), min_size=count, max_size=count)


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[RequestPlan, SchedulerRules, StepCosts]:
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
        total_blocks=needed + draw(st.integers(0, 3 * needed)),
        block_tokens=block,
        watermark_blocks=draw(st.integers(0, 2)),
        chunked=draw(st.booleans()),
        prefix_caching=caching,
        queued_step=draw(st.booleans()),
    )
    tabulated = draw(st.sampled_from([3, 100]))
    window = draw(st.sampled_from([0, 0, 12]))
    costs = StepCosts(
        tokens_s=0.05 + 0.011 * np.arange(tabulated),
        token_beyond_s=0.011,
        sequence_s=0.003,
        prefill_s=0.007,
        context_s=draw(st.sampled_from([0.0, 0.0013])),
        window_s=0.0007 if window else 0.0,
        pair_s=0.00021,
        window_pair_s=0.00017 if window else 0.0,
        window_tokens=window,
    )
    return plan, rules, costs


@settings(max_examples=400, deadline=None)
@given(scenarios())
def test_leaping_gives_the_times_of_stepping(scenario: tuple[RequestPlan, SchedulerRules, StepCosts]) -> None:
    fast = simulate(*scenario)
    slow = Stepped(*scenario)
    slow.run()
    for name, column in (("arrival", fast.arrival_s), ("admitted", fast.admitted_s)):
        assert column == pytest.approx([getattr(request, name) for request in slow.requests], rel=1e-9)
    assert fast.first_token_s == pytest.approx([request.first for request in slow.requests], rel=1e-9)
    assert fast.finished_s == pytest.approx([request.finish for request in slow.requests], rel=1e-9)
    assert fast.preemptions == slow.preemptions
    assert fast.gap_counts.sum() == len(slow.gaps)
    if slow.gaps:
        assert fast.gap_mean_s == pytest.approx(float(np.mean(slow.gaps)))
        assert fast.gap_quantiles((0.5,))[0] == pytest.approx(
            np.quantile(slow.gaps, 0.5, method="inverted_cdf"), rel=0.006
        )


@settings(max_examples=200, deadline=None)
@given(scenarios())
def test_every_request_is_served_once_and_every_block_comes_back(
    scenario: tuple[RequestPlan, SchedulerRules, StepCosts],
) -> None:
    plan, rules, costs = scenario
    result = simulate(plan, rules, costs)
    assert result.complete
    assert result.blocks_left == rules.total_blocks
    assert np.isfinite(result.finished_s).all()
    assert (result.arrival_s <= result.admitted_s).all()
    assert (result.admitted_s < result.first_token_s).all()
    assert ((result.first_token_s == result.finished_s) == (plan.output_tokens == 1)).all()
    assert result.gap_counts.sum() == (plan.output_tokens - 1).sum()
    assert result.kv_used_max_share <= 1
