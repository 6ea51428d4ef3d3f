"""Measured load points → a calibration, with residuals, intervals and an honest error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from calc.calibrate import checks, prior
from calc.calibrate.calibration import CODES, Calibration, Factors
from calc.calibrate.observation import Observation, predicted
from calc.calibrate.scale import least_costs
from calc.calibrate.solve import Solution, gauss_newton, solve
from calc.calibrate.transfer import scope_of
from calc.calibrate.trial import Point, Trial
from calc.latency import LatencyReport
from calc.step.efficiency import efficiency_of

MOST_POINTS = 50
"""Load points taken into one fit."""
LEAVE_OUT_ROUNDS = 5
"""Gauss-Newton rounds in the linear model of the whole fit that forget one point; the robust weights settle in them."""
UNNAMED = "measurements"
DIGITS = 4
"""Of a factor: no measurement tells more."""


@dataclass(frozen=True, kw_only=True)
class Residual:
    """One measured figure and its predictions; seconds, or tokens per second for throughput."""

    observation: int
    """Place in the list given."""
    latency: str
    statistic: str
    measured: float
    before: float | None
    after: float | None
    left_out: float | None = None
    """Predicted by a fit to the other points; ``None`` with a single point."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """One factor with its 95 % interval; for the first token in steps."""

    code: str
    value: float
    low: float
    high: float
    identified: bool


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Median relative error of one latency, each point predicted by a fit to the others."""

    latency: str
    error_share: float
    before_share: float
    """The same without any calibration."""
    figures: int


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A calibration and how far it can be believed."""

    calibration: Calibration
    factors: tuple[Fitted, ...]
    residuals: tuple[Residual, ...]
    leave_one_out: tuple[LeftOut, ...] | None
    """By latency, of means and medians; ``None`` with a single point."""

    @property
    def not_identified(self) -> tuple[str, ...]:
        """Codes of the factors that the points could not tell."""
        return self.calibration.not_identified


def calibrate(observations: Sequence[Observation], *, source: str = "", date: str = "") -> Fit:
    """The factors that bring predictions closest to what was measured, held by a prior where nothing speaks.

    Refuses, in one sentence, points of different deployments, figures faster than the hardware allows or in the wrong
    unit, points that contradict each other, and factors beyond physics (:class:`calc.errors.CalibrationRefused`).
    """
    checks.check_given(observations, MOST_POINTS)
    points = [Point.of(one) for one in observations]
    before = [point.report(None) for point in points]
    checks.check_figures(observations, before)
    deployment = observations[0].scenario.deployment
    least = least_costs(efficiency_of(deployment.gpu), prior.PEAK_SHARE)
    trial = Trial(points=points, template=_template(observations, source, date), least=least)
    solved = solve(trial.residuals, np.zeros(len(trial.codes)), prior.ROBUST_SIGMAS)
    fitted = _fitted(trial, solved)
    unknown = tuple(one.code for one in fitted if not one.identified)
    factors = Factors(**{one.code: one.value for one in fitted})
    calibration = replace(trial.template, factors=factors, not_identified=unknown)
    after = [point.report(calibration) for point in points]
    checks.check_factors(deployment, factors)
    checks.check_distance(solved.z)
    checks.check_peaks(factors, least, observations, after)
    checks.check_agreement(observations, after)
    residuals = _residuals(points, before, after, _left_out(trial, solved))
    return Fit(
        calibration=calibration,
        factors=fitted,
        residuals=residuals,
        leave_one_out=_errors(residuals) if len(points) > 1 else None,
    )


def _template(observations: Sequence[Observation], source: str, date: str) -> Calibration:
    sources = dict.fromkeys(one.source for one in observations if one.source)
    dates = sorted({one.date for one in observations if one.date})
    return Calibration(
        source=source or ", ".join(sources) or UNNAMED,
        date=date or (dates[-1] if dates else ""),
        points=len(observations),
        scope=scope_of(observations[0].scenario.deployment),
    )


def _fitted(trial: Trial, solved: Solution) -> tuple[Fitted, ...]:
    """Values and intervals; the spread grows where the points scatter more than sigmas say."""
    free = max(1, solved.residuals.size - solved.z.size)
    spread = max(1.0, float((solved.residuals**2).sum()) / free) ** 0.5
    found = {}
    for place, code in enumerate(trial.codes):
        z, told = float(solved.z[place]), float(solved.covariance[place, place]) ** 0.5
        half = prior.Z95 * min(1.0, told * spread)
        found[code] = Fitted(
            code=code,
            value=_short(trial.value(code, z)),
            low=_short(trial.value(code, z - half)),
            high=_short(trial.value(code, z + half)),
            identified=told <= prior.IDENTIFIED_SHARE,
        )
    return tuple(found.get(code, _absent(code)) for code in CODES)


def _short(value: float) -> float:
    """As many digits as a link should carry."""
    return float(f"{value:.{DIGITS}g}")


def _absent(code: str) -> Fitted:
    """A factor that plays no part in these points."""
    value = getattr(Factors(), code)
    return Fitted(code=code, value=value, low=value, high=value, identified=False)


def _left_out(trial: Trial, solved: Solution) -> Sequence[LatencyReport | None]:
    """Each point predicted by the others: their minimum, found from the common one in the common linear model."""
    if len(trial.points) == 1:
        return [None]
    reports = []
    for index, point in enumerate(trial.points):
        rows = trial.rows(index)
        jacobian = np.delete(solved.jacobian, rows, axis=0)
        z, r = solved.z, np.delete(solved.residuals, rows)
        for _ in range(LEAVE_OUT_ROUNDS):
            step = gauss_newton(r, jacobian, z, prior.ROBUST_SIGMAS)
            z, r = z + step, r + jacobian @ step
        reports.append(point.report(trial.calibration(z)))
    return reports


def _residuals(
    points: Sequence[Point],
    before: Sequence[LatencyReport],
    after: Sequence[LatencyReport],
    left_out: Sequence[LatencyReport | None],
) -> tuple[Residual, ...]:
    return tuple(
        Residual(
            observation=index,
            latency=key[0],
            statistic=key[1],
            measured=measured,
            before=predicted(before[index], key),
            after=predicted(after[index], key),
            left_out=predicted(other, key) if (other := left_out[index]) is not None else None,
        )
        for index, point in enumerate(points)
        for key, measured in point.figures.items()
    )


def _errors(residuals: Sequence[Residual]) -> tuple[LeftOut, ...]:
    by_latency: dict[str, list[Residual]] = {}
    for one in residuals:
        if one.statistic in ("mean", "p50") and one.left_out and one.before:
            by_latency.setdefault(one.latency, []).append(one)
    return tuple(
        LeftOut(
            latency=latency,
            error_share=median(abs((one.left_out or 0.0) / one.measured - 1) for one in found),
            before_share=median(abs((one.before or 0.0) / one.measured - 1) for one in found),
            figures=len(found),
        )
        for latency, found in by_latency.items()
    )
