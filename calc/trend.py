"""Whether a quantity drifts over a recording: a slope with its uncertainty, not two readings compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BATCHES = 12
"""Neighbouring readings are alike, so the line is laid through the means of so many stretches of equal length."""
FEWEST = 5
"""Stretches below which nothing is said."""
STUDENT_95 = {3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}
"""Two-sided 95 % quantile of Student's t by degrees of freedom (any table)."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A straight line through a recorded quantity; the interval holds the true slope 19 times out of 20."""

    slope_per_s: float
    low_per_s: float
    high_per_s: float
    first: float
    """The line at its two ends."""
    last: float
    span_s: float

    @property
    def drifts(self) -> bool:
        """Whether the slope is surely not 0."""
        return self.low_per_s > 0 or self.high_per_s < 0


def trend(times_s: Sequence[float], values: Sequence[float | None]) -> Trend | None:
    """Least squares through the means of up to 12 stretches of equal time; ``None`` for too little to say.

    The interval is Student's on the residuals of the stretches (batch means: Law, Simulation Modeling, chapter 9), so
    that readings which follow each other closely do not count as many independent ones.
    """
    known = np.array([(time, value) for time, value in zip(times_s, values, strict=True) if value is not None])
    if len(known) < FEWEST:
        return None
    time, value = known[:, 0], known[:, 1]
    span = float(time[-1] - time[0])
    if span <= 0:
        return None
    place = np.minimum(((time - time[0]) / span * BATCHES).astype(int), BATCHES - 1)
    filled = [batch for batch in range(BATCHES) if (place == batch).any()]
    if len(filled) < FEWEST:
        return None
    x = np.array([time[place == batch].mean() for batch in filled])
    y = np.array([value[place == batch].mean() for batch in filled])
    return _line(x, y, float(time[0]), span)


def _line(x: np.ndarray, y: np.ndarray, start_s: float, span_s: float) -> Trend:
    offset = x - x.mean()
    slope = float((offset * y).sum() / (offset**2).sum())
    residuals = y - y.mean() - slope * offset
    freedom = len(x) - 2
    error = float(np.sqrt((residuals**2).sum() / freedom / (offset**2).sum()))
    reach = STUDENT_95[freedom] * error
    first = float(y.mean() + slope * (start_s - x.mean()))
    return Trend(
        slope_per_s=slope,
        low_per_s=slope - reach,
        high_per_s=slope + reach,
        first=first,
        last=first + slope * span_s,
        span_s=span_s,
    )
