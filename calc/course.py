"""How the rate of arrivals runs over time, for a picture: as stated, as logged, or one way it may go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.traffic import Arrivals, Mmpp, PerMinute, Recorded
from calc.units import SECONDS_PER_MINUTE

BINS = 60
"""Most steps a log is counted in."""
PER_BIN = 5
"""Arrivals a step holds on average, at least: fewer show chance more than rate."""
TURNS = 12
"""Turns through all states that are drawn of a changing rate."""
SEED = 1


@dataclass(frozen=True, kw_only=True)
class RateCourse:
    """A rate that steps: ``rates_per_s[i]`` holds from ``edges_s[i]`` to ``edges_s[i + 1]``."""

    edges_s: tuple[float, ...]
    rates_per_s: tuple[float, ...]
    drawn: bool = False
    """One course of many that are as likely, not the user's own."""


def rate_course(arrivals: Arrivals) -> RateCourse | None:
    """The course of a rate that changes; ``None`` where it does not, or where users set it."""
    match arrivals:
        case PerMinute(rates_per_s=rates):
            edges = [float(minute * SECONDS_PER_MINUTE) for minute in range(len(rates) + 1)]
            return RateCourse(edges_s=tuple(edges), rates_per_s=rates)
        case Recorded():
            return _counted(arrivals)
        case Mmpp():
            return _drawn(arrivals)
        case _:
            return None


def _counted(log: Recorded) -> RateCourse:
    """Arrivals of each step of the log over its length."""
    times = np.array(log.times_s)
    steps = min(BINS, max(1, times.size // PER_BIN))
    counts, edges = np.histogram(times, steps, (times[0], times[-1]))
    return RateCourse(
        edges_s=tuple(float(edge) for edge in edges - edges[0]),
        rates_per_s=tuple(float(rate) for rate in counts / np.diff(edges)),
    )


def _drawn(states: Mmpp) -> RateCourse:
    """Exponential stays in each state in turn, one seeded draw."""
    stays = np.tile(states.stays_s, TURNS)
    edges = np.concatenate(([0.0], np.cumsum(np.random.default_rng(SEED).exponential(stays))))
    return RateCourse(edges_s=tuple(float(edge) for edge in edges), rates_per_s=states.rates_per_s * TURNS, drawn=True)


def share_above(course: RateCourse, rate_per_s: float) -> float:
    """Share of the time in which more arrives than ``rate_per_s``."""
    spans = np.diff(course.edges_s)
    return float(spans[np.array(course.rates_per_s) > rate_per_s].sum() / spans.sum())
