"""What a strategy changed, and how far chance alone could have moved it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from calc.order_statistics import Interval

Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution."""
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % quantiles of Student's t for 1 to 30 degrees of freedom (standard table)."""
STATISTIC_SHARES: Mapping[str, float] = MappingProxyType({"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99})
MEAN = "mean"
FEWEST_REPEATS = 2
FEWEST_REQUESTS = 30
"""A mean of fewer requests is no normal variable yet."""


class Basis(StrEnum):
    """What an interval rests on, strongest first."""

    REPEATS = "repeats"
    """Several runs of each side differ by so much."""
    REQUESTS = "requests"
    """Spread of the requests within one run each; what differs from run to run is not in it."""
    BOUND = "bound"
    """Order statistics between the percentiles that the summary states."""
    UNKNOWN = "unknown"
    """One run each without counts or spread: chance is not known."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One latency of one run as far as its file says it. Seconds; ``None`` = not stated."""

    requests: int | None = None
    mean_s: float | None = None
    std_s: float | None = None
    percentiles_s: Mapping[str, float] = field(default_factory=dict)
    """By name (``p50`` … ``p99``), those that the file states."""

    def value_s(self, statistic: str) -> float | None:
        """``mean`` or a percentile."""
        return self.mean_s if statistic == MEAN else self.percentiles_s.get(statistic)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A statistic before and after, and its relative change: −0.2 = a fifth less."""

    statistic: str
    before_s: float
    after_s: float
    change_share: float
    interval_share: tuple[float | None, float | None]
    """95 %; an end that is ``None`` cannot be bounded."""
    basis: Basis
    before_runs: int
    after_runs: int

    @property
    def certain(self) -> bool | None:
        """Whether the change is more than chance; ``None`` = cannot be told."""
        low, high = self.interval_share
        if low is None or high is None:
            return None
        return low > 0 or high < 0


def effect(before: Sequence[Summary], after: Sequence[Summary], statistic: str) -> Effect | None:
    """How ``statistic`` changed from one side's runs to the other's; ``None`` where a side does not state it.

    Several runs on both sides: Welch's interval of the mean logarithms over runs. One run on a side: the requests
    within it, as independent: ratio of means by the delta method, percentiles by order statistics. Requests that
    queue together are alike, so intervals within a run are the least there can be.
    """
    sides = [[value for one in runs if (value := one.value_s(statistic))] for runs in (before, after)]
    if not all(sides):
        return None
    middle = [math.exp(sum(map(math.log, values)) / len(values)) for values in sides]
    interval, basis = _interval(before, after, statistic, sides)
    return Effect(
        statistic=statistic,
        before_s=middle[0],
        after_s=middle[1],
        change_share=middle[1] / middle[0] - 1,
        interval_share=interval,
        basis=basis,
        before_runs=len(sides[0]),
        after_runs=len(sides[1]),
    )


def _interval(
    before: Sequence[Summary], after: Sequence[Summary], statistic: str, sides: Sequence[Sequence[float]]
) -> tuple[tuple[float | None, float | None], Basis]:
    if all(len(values) >= FEWEST_REPEATS for values in sides):
        return _of_repeats(sides[0], sides[1]), Basis.REPEATS
    single = [next(one for one in runs if one.value_s(statistic)) for runs in (before, after)]
    if statistic == MEAN:
        within = mean_ratio_interval(*single)
        return ((None, None), Basis.UNKNOWN) if within is None else (within, Basis.REQUESTS)
    bounds = [percentile_bound(one, statistic) for one in single]
    if any(bound == (None, None) for bound in bounds):
        return (None, None), Basis.UNKNOWN
    return _ratio_of_bounds(single, statistic, bounds), Basis.BOUND


def _of_repeats(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Welch's t on logarithms, so that a ratio comes out."""
    logs = [[math.log(value) for value in values] for values in (before, after)]
    means = [sum(values) / len(values) for values in logs]
    errors = [
        sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
        for values, mean in zip(logs, means, strict=True)
    ]
    total = sum(errors)
    if total == 0:
        change = math.exp(means[1] - means[0]) - 1
        return change, change
    freedom = total**2 / sum(error**2 / (len(values) - 1) for error, values in zip(errors, logs, strict=True))
    half = student_t(freedom) * math.sqrt(total)
    return math.exp(means[1] - means[0] - half) - 1, math.exp(means[1] - means[0] + half) - 1


def student_t(freedom: float) -> float:
    """97.5 % quantile of Student's t; fractions of a degree count as the next lower one."""
    whole = max(1, math.floor(freedom))
    if whole <= len(T95):
        return T95[whole - 1]
    z = Z95  # Cornish-Fisher expansion of t in 1/ν
    return z + (z**3 + z) / (4 * whole) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * whole**2)


def mean_interval(run: Summary) -> Interval | None:
    """95 % interval of a run's mean: mean ± 1.96·std/√n; ``None`` without spread or count."""
    if run.mean_s is None or run.std_s is None or not run.requests or run.requests < FEWEST_REQUESTS:
        return None
    half = Z95 * run.std_s / math.sqrt(run.requests)
    return run.mean_s - half, run.mean_s + half


def mean_ratio_interval(before: Summary, after: Summary) -> tuple[float, float] | None:
    """95 % interval of the relative change of means: ln ratio ± 1.96·√(cv₁²/n₁ + cv₂²/n₂)."""
    variance = 0.0
    for run in (before, after):
        if not run.mean_s or run.std_s is None or not run.requests or run.requests < FEWEST_REQUESTS:
            return None
        variance += (run.std_s / run.mean_s) ** 2 / run.requests
    assert before.mean_s is not None
    assert after.mean_s is not None
    log, half = math.log(after.mean_s / before.mean_s), Z95 * math.sqrt(variance)
    return math.exp(log - half) - 1, math.exp(log + half) - 1


def percentile_bound(run: Summary, statistic: str) -> tuple[float | None, float | None]:
    """Where a percentile may lie: ranks n·p ± 1.96·√(n·p(1−p)), read off the percentiles that the run states.

    A rank between two stated percentiles is read off an exponential tail laid through both; one beyond the last is
    open, because nothing is known of what lies there.
    """
    share, count = STATISTIC_SHARES[statistic], run.requests
    if not count:
        return None, None
    half = Z95 * math.sqrt(share * (1 - share) / count)
    return _read_off(run, share - half), _read_off(run, share + half)


def _read_off(run: Summary, share: float) -> float | None:
    points = sorted(
        (STATISTIC_SHARES[name], value) for name, value in run.percentiles_s.items() if name in STATISTIC_SHARES
    )
    for (low, low_s), (high, high_s) in itertools.pairwise(points):
        if low <= share <= high and low_s > 0 and high_s > 0:
            part = (math.log1p(-low) - math.log1p(-share)) / (math.log1p(-low) - math.log1p(-high))
            return float(low_s * (high_s / low_s) ** part)
    return None


def _ratio_of_bounds(
    single: Sequence[Summary], statistic: str, bounds: Sequence[tuple[float | None, float | None]]
) -> tuple[float | None, float | None]:
    """Both sides are independent: their distances in logarithms add up as squares; an open end stays open."""
    values = [one.value_s(statistic) or math.nan for one in single]
    change = math.log(values[1] / values[0])
    (low_a, high_a), (low_b, high_b) = bounds

    def away(value: float, bound: float | None) -> float | None:
        return None if bound is None else abs(math.log(bound / value))

    def end(first: float | None, second: float | None, sign: int) -> float | None:
        return None if first is None or second is None else math.exp(change + sign * math.hypot(first, second)) - 1

    low = end(away(values[1], low_b), away(values[0], high_a), -1)
    return low, end(away(values[1], high_b), away(values[0], low_a), 1)
