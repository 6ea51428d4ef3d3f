"""Figures of single requests summed up: against definitions, conservation and what a file cannot say."""

from __future__ import annotations

import numpy as np
import pytest

from data.formats.request_figures import RequestFigures, column, derived_tpot_s, stats_of, summed_up
from data.records import BenchmarkRun, LatencyStats

RUN = BenchmarkRun(tool="made up")


def test_percentiles_of_evenly_spread_values_lie_where_linear_interpolation_puts_them() -> None:
    stats = stats_of(np.arange(101) / 100)
    assert stats is not None
    assert (stats.p50_s, stats.p90_s, stats.p95_s, stats.p99_s) == pytest.approx((0.5, 0.9, 0.95, 0.99))
    assert (stats.mean_s, stats.std_s) == pytest.approx((0.5, np.sqrt((101**2 - 1) / 12) / 100))


def test_tokens_and_requests_are_conserved_in_the_rates() -> None:
    rng = np.random.default_rng(3)
    started = np.sort(rng.uniform(0, 50, 400))
    figures = RequestFigures(
        started_s=started,
        ended_s=started + rng.gamma(4, 0.5, 400),
        input_tokens=rng.integers(1, 900, 400).astype(float),
        output_tokens=rng.integers(1, 300, 400).astype(float),
        failed=7,
    )
    run = summed_up(figures, RUN)
    assert (run.num_prompts, run.completed, run.failed) == (407, 400, 7)
    assert run.duration_s is not None
    assert run.request_throughput_per_s == pytest.approx(400 / run.duration_s)
    assert run.output_token_throughput_per_s is not None
    assert run.output_token_throughput_per_s * run.duration_s == pytest.approx(figures.output_tokens.sum())
    assert run.output_tokens_total == figures.output_tokens.sum()


def test_tpot_is_derived_request_by_request_and_one_token_has_none() -> None:
    figures = RequestFigures(
        ttft_s=np.array([0.1, 0.2, 0.3]), e2e_s=np.array([1.1, 0.2, 2.3]), output_tokens=np.array([11.0, 1.0, 21.0])
    )
    assert derived_tpot_s(figures) == pytest.approx([0.1, 0.1])
    run = summed_up(figures, RUN)
    assert run.tpot is not None
    assert run.tpot.mean_s == pytest.approx(0.1)


def test_a_tpot_that_is_written_is_not_derived_again() -> None:
    run = summed_up(RequestFigures(tpot_s=np.array([0.02, 0.04]), ttft_s=np.ones(2), e2e_s=np.ones(2)), RUN)
    assert run.tpot is not None
    assert run.tpot.mean_s == pytest.approx(0.03)


def test_what_the_file_already_says_stays_as_it_is() -> None:
    said = BenchmarkRun(tool="made up", duration_s=10.0, ttft=LatencyStats(p50_s=0.5))
    run = summed_up(RequestFigures(ttft_s=np.ones(20), output_tokens=np.full(20, 5.0)), said)
    assert run.ttft == LatencyStats(p50_s=0.5)
    assert run.output_token_throughput_per_s == pytest.approx(10.0)


def test_a_figure_no_request_gives_is_unknown_and_a_sum_over_some_requests_too() -> None:
    run = summed_up(RequestFigures(e2e_s=np.array([1.0, 2.0]), output_tokens=np.array([5.0, np.nan])), RUN)
    assert (run.ttft, run.itl, run.tpot, run.duration_s, run.failed, run.num_prompts) == (None,) * 6
    assert (run.output_tokens_total, run.output_tokens_mean) == (None, 5.0)
    assert (run.input_tokens_mean, run.output_token_throughput_per_s) == (None, None)


def test_no_answered_request_leaves_every_latency_unknown() -> None:
    run = summed_up(RequestFigures(failed=3), RUN)
    assert (run.num_prompts, run.completed, run.failed) == (3, 0, 3)
    assert (run.ttft, run.e2e, run.request_throughput_per_s) == (None, None, None)


def test_a_cell_that_is_no_number_of_a_benchmark_is_unknown() -> None:
    values = column([1, "2.5", None, "many", True, -1.0, float("nan"), 10**400, "1e999", [3]])
    assert values[:2].tolist() == [1.0, 2.5]
    assert np.isnan(values[2:]).all()


def test_latency_that_grows_with_the_run_is_said() -> None:
    started = np.arange(300.0)
    growing = RequestFigures(started_s=started, ended_s=started + 1, e2e_s=1 + started / 50)
    steady = RequestFigures(started_s=started, ended_s=started + 1, e2e_s=np.tile([1.0, 1.2, 1.1], 100))
    assert summed_up(growing, RUN).extra["latency_growth_ratio"] == pytest.approx(6 / 2, rel=0.1)
    assert "latency_growth_ratio" not in summed_up(steady, RUN).extra
