"""What reuse is worth: room in a pool, prefill not done again, sessions still there, limits, growth, and its words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_reuse import trace_of

from calc.memory import estimate_memory
from calc.reuse.curve import curves_with_limits, hit_curve
from calc.reuse.found import found_rows
from calc.reuse.growth import growth
from calc.reuse.returns import alive_shares, returns, stay_s
from calc.reuse.worth import limit_advice, room_of, worths
from calc.step.roofline import step_model
from data.case import example_case, read_case
from ui.charts import Tones
from ui.charts import reuse as charts
from ui.story import about_reuse

SCENARIO = read_case(example_case())[0]
TALK = trace_of(
    [[0, 1], [2, 3], [0, 1, 4, 5], [2, 3, 6, 7], [0, 1, 4, 5, 8]],
    block=512,
    outputs=[10] * 5,
    times_s=[0, 60, 120, 180, 3600],
)
"""Two conversations in turn; the first comes a third time, after most of an hour."""
ALONE = np.zeros(TALK.requests, np.int64)


def test_what_running_requests_hold_is_not_free_for_reuse() -> None:
    deployment, workload = SCENARIO.deployment, SCENARIO.workload
    idle = room_of(deployment, estimate_memory(deployment, workload, peak_concurrency=0))
    busy = room_of(deployment, estimate_memory(deployment, workload, peak_concurrency=10))
    held = workload.prompt_tokens.mean() + workload.output_tokens.mean() / 2
    assert idle.free_tokens == idle.pool_tokens == busy.pool_tokens
    assert busy.held_tokens == pytest.approx(10 * held, rel=0.02)
    unknown = room_of(deployment, replace(estimate_memory(deployment, workload), peak_is_known=False))
    assert (unknown.held_tokens, unknown.free_tokens) == (None, unknown.pool_tokens)
    full = room_of(deployment, estimate_memory(deployment, workload, peak_concurrency=10_000))
    assert full.free_tokens == 0


def test_prefill_saved_is_that_of_the_blocks_found() -> None:
    model, curve = step_model(SCENARIO.deployment), hit_curve(TALK)
    capacities = [0, 4 * 512, 100 * 512]
    rows = found_rows(TALK, ALONE, [0, 4, 100])
    none, some, all_ = worths(TALK, curve, rows, capacities, [model, model, None])
    assert (none.hit_share, none.saved_s_per_hour, none.saved_tokens_per_hour) == (0, 0, 0)
    assert 0 < some.hit_share < all_.hit_share == curve.ceiling_share
    assert (all_.of_ceiling_share, all_.saved_s_per_hour) == (1.0, None)
    # Four blocks hold the two prompts; the third request finds its two, and then fills all four itself. The trace
    # lasts an hour.
    prompts, cached = np.array([2048.0]), np.array([1024.0])
    saved = model.prefill_only_s(prompts, 0 * prompts) - model.prefill_only_s(prompts, cached)
    assert some.saved_s_per_hour == pytest.approx(saved.sum())
    assert some.saved_tokens_per_hour == pytest.approx(1024)


def test_sessions_are_alive_while_the_turn_before_is_in_the_cache() -> None:
    back = returns(TALK)
    assert back.parent.tolist() == [-1, -1, 0, 1, 2]
    assert back.away_s is not None
    assert back.away_s[0] == 120
    assert alive_shares(TALK, back, found_rows(TALK, ALONE, [2, 4, 8])) == (0.0, pytest.approx(1 / 3), 1.0)
    assert stay_s(TALK, 4) == pytest.approx(120)
    assert stay_s(TALK, 100) is None


def test_the_shortest_limit_that_costs_next_to_nothing_is_told() -> None:
    limits = [60.0, 300.0, 3600.0]
    advice = limit_advice(limits, curves_with_limits(TALK, limits), hit_curve(TALK), 100 * 512)
    assert advice.hit_shares[0] == 0
    assert advice.hit_shares[1] < advice.hit_shares[2] == advice.without_share
    assert advice.enough_s == 3600
    short = limit_advice(limits[:2], curves_with_limits(TALK, limits[:2]), hit_curve(TALK), 100 * 512)
    assert short.enough_s is None


def test_the_working_set_grows_to_all_distinct_blocks_and_forgets_in_its_window() -> None:
    course = growth(TALK, window_s=300.0)
    assert course.distinct_tokens[0] == 2 * 512
    assert course.distinct_tokens[-1] == TALK.unique_tokens == 9 * 512
    assert course.recent_tokens[-1] == 5 * 512
    assert (course.recent_tokens <= course.distinct_tokens).all()
    assert (np.diff(course.distinct_tokens) >= 0).all()
    assert course.new_tokens_per_hour == pytest.approx(2 * 512)


def test_a_log_that_repeats_nothing_has_words_and_a_picture_too() -> None:
    trace = trace_of([[0], [1]], block=16, outputs=[1, 1], times_s=[0, 0])
    curve, room = hit_curve(trace), room_of(SCENARIO.deployment, estimate_memory(SCENARIO.deployment))
    (value,) = worths(trace, curve, found_rows(trace, np.zeros(2, np.int64), [10]), [160], [None])
    assert "no cache of any size" in about_reuse.sentence(value, curve, room)
    assert "no sessions" in about_reuse.sessions(0, 2, None, None, None)[0]
    course = growth(trace, window_s=300.0)
    assert "same time" in about_reuse.growth_sentence(course, 100.0)
    line = charts.Line(name="a", capacities_tokens=[16.0, 32.0], hits=[0.0, 0.0])
    mark = charts.Mark(name="GPU", capacity_tokens=0.0, hit=0.0)
    tones = Tones.of(dark=False)
    assert charts.hit_curve([line], 0.0, mark, 0, [mark], tones).data
    assert charts.growth_curve(course, 0.0, tones).data
