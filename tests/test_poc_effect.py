"""What a strategy changed, with its uncertainty: intervals cover the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from calc.poc.effect import STATISTIC_SHARES, Basis, Summary, effect, mean_interval, percentile_bound, student_t

TRIALS = 600
COVERED = 0.95
SLACK = 0.03
"""Three standard errors of a share of 600 trials, and what is lost by reading between stated percentiles."""


def _summary(values: np.ndarray, *names: str) -> Summary:
    stated = {name: float(np.quantile(values, STATISTIC_SHARES[name])) for name in names or STATISTIC_SHARES}
    return Summary(
        requests=values.size, mean_s=float(values.mean()), std_s=float(values.std(ddof=1)), percentiles_s=stated
    )


def _latencies(rng: np.random.Generator, scale: float, count: int = 1000) -> np.ndarray:
    return scale * np.exp(0.6 * rng.standard_normal(count))


def test_the_interval_of_a_mean_covers_it_as_often_as_it_says() -> None:
    rng, truth = np.random.default_rng(1), float(np.exp(0.18))
    found = [mean_interval(_summary(_latencies(rng, 1.0))) for _ in range(TRIALS)]
    covered = [interval is not None and interval[0] <= truth <= interval[1] for interval in found]
    assert np.mean(covered) == pytest.approx(COVERED, abs=SLACK)


def test_the_change_of_a_mean_between_single_runs_is_covered() -> None:
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(TRIALS):
        found = effect([_summary(_latencies(rng, 1.0))], [_summary(_latencies(rng, 0.8))], "mean")
        assert found is not None
        assert found.basis is Basis.REQUESTS
        low, high = found.interval_share
        covered.append(low <= -0.2 <= high)  # type: ignore[operator]
    assert np.mean(covered) == pytest.approx(COVERED, abs=SLACK)


@pytest.mark.parametrize("statistic", ["p90", "p95"])
def test_the_change_of_a_percentile_between_single_runs_is_covered(statistic: str) -> None:
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(TRIALS):
        found = effect([_summary(_latencies(rng, 1.0))], [_summary(_latencies(rng, 0.8))], statistic)
        assert found is not None
        assert found.basis is Basis.BOUND
        low, high = found.interval_share
        covered.append(low is not None and high is not None and low <= -0.2 <= high)
    assert COVERED - 2 * SLACK <= np.mean(covered) <= 1


def test_the_spread_of_repeats_covers_a_change_that_single_runs_miss() -> None:
    """Runs differ by more than their requests do: only repeats see it."""
    rng, covered = np.random.default_rng(4), []
    for _ in range(TRIALS):
        before, after = (
            [_summary(_latencies(rng, scale * float(np.exp(0.1 * rng.standard_normal())), 200)) for _ in range(3)]
            for scale in (1.0, 0.8)
        )
        found = effect(before, after, "p50")
        assert found is not None
        assert found.basis is Basis.REPEATS
        low, high = found.interval_share
        covered.append(low <= -0.2 <= high)  # type: ignore[operator]
    assert np.mean(covered) == pytest.approx(COVERED + 0.015, abs=SLACK), "rounding degrees down errs to the wide side"


def test_nothing_changed_is_called_chance_and_a_halving_is_not() -> None:
    rng = np.random.default_rng(5)
    same = effect([_summary(_latencies(rng, 1.0))], [_summary(_latencies(rng, 1.0))], "mean")
    halved = effect([_summary(_latencies(rng, 1.0))], [_summary(_latencies(rng, 0.5))], "mean")
    assert same is not None
    assert same.certain is False
    assert halved is not None
    assert halved.certain is True
    assert halved.change_share == pytest.approx(-0.5, abs=0.05)


def test_without_counts_or_spread_chance_is_not_known() -> None:
    bare = Summary(mean_s=1.0, percentiles_s={"p99": 3.0})
    for statistic in ("mean", "p99"):
        found = effect([bare], [Summary(mean_s=0.8, percentiles_s={"p99": 2.0})], statistic)
        assert found is not None
        assert found.basis is Basis.UNKNOWN
        assert found.interval_share == (None, None)
        assert found.certain is None
    assert effect([bare], [bare], "p50") is None


def test_beyond_the_last_stated_percentile_a_bound_is_open() -> None:
    rng = np.random.default_rng(6)
    low, high = percentile_bound(_summary(_latencies(rng, 1.0)), "p99")
    assert low is not None
    assert high is None
    lone = percentile_bound(Summary(requests=1000, percentiles_s={"p99": 2.0}), "p99")
    assert lone == (None, None)


def test_few_degrees_of_freedom_widen_an_interval() -> None:
    """Published: t(1) = 12.706, t(10) = 2.228, t(40) = 2.021, t(∞) = 1.960."""
    assert [student_t(f) for f in (1, 10.9)] == [12.706, 2.228]
    assert student_t(40) == pytest.approx(2.021, abs=1e-3)
    assert student_t(1e6) == pytest.approx(1.960, abs=1e-3)
