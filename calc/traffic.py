"""When requests come: users in a closed loop, a rate, a rate that changes, or times from a log."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calc.errors import InputError
from calc.lengths import MAX_TOKENS
from calc.messages import msg
from calc.units import SECONDS_PER_MINUTE

MAX_CV = 100.0
"""Highest coefficient of variation of arrival gaps accepted; ServeGen's P99 client window is 35."""
MAX_CONCURRENCY = 100_000
"""Most concurrent requests accepted; ten times the largest published closed-loop run."""
MAX_RATE_PER_S = 100_000.0
"""Highest arrival rate accepted per deployment."""
MIN_RATE_PER_S = 1e-6
"""Lowest mean arrival rate accepted, one request in eleven days: below it clock times lose their fractions."""
MIN_STATES, MAX_STATES = 2, 8
"""Rates between which a changing rate jumps; fits of public traces use two or three."""
MAX_STAY_S = 1e7
"""Longest mean stay in one of them, four months."""
MIN_TIMES, MAX_RECORDED = 2, 200_000
"""Arrivals of a log taken at once: a simulation's most."""


@dataclass(frozen=True, kw_only=True)
class Closed:
    """A fixed number of users, each sending the next request when the last one is answered."""

    concurrency: int

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise InputError(
                msg(
                    "concurrency must be between 1 and {limit:count}, got {value}: "
                    "enter the requests in flight at once.",
                    limit=MAX_CONCURRENCY,
                    value=self.concurrency,
                )
            )


@dataclass(frozen=True, kw_only=True)
class OpenLoop:
    """Requests arrive at a rate whatever the engine does: ``poisson``, ``constant`` or ``gamma`` (with cv)."""

    kind: str
    rate_per_s: float
    cv: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("poisson", "constant", "gamma"):
            raise InputError(
                msg(
                    "arrival kind {kind} is not known: use closed, poisson, constant, gamma or per-minute.",
                    kind=self.kind,
                )
            )
        if not (math.isfinite(self.rate_per_s) and MIN_RATE_PER_S <= self.rate_per_s <= MAX_RATE_PER_S):
            raise InputError(
                msg(
                    "request rate must be between {least:g} and {limit:count} per second, got {value}: "
                    "enter requests per second.",
                    least=MIN_RATE_PER_S,
                    limit=MAX_RATE_PER_S,
                    value=self.rate_per_s,
                )
            )
        if not (math.isfinite(self.cv) and 0 < self.cv <= MAX_CV):
            raise InputError(msg("cv must be above 0 and at most 100, got {value}: 1 is Poisson.", value=self.cv))


@dataclass(frozen=True, kw_only=True)
class PerMinute:
    """Poisson arrivals with a rate of its own in each minute."""

    rates_per_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if (
            not self.rates_per_s
            or any(not (math.isfinite(r) and 0 <= r <= MAX_RATE_PER_S) for r in self.rates_per_s)
            or self.rate_per_s < MIN_RATE_PER_S
        ):
            raise InputError(
                msg("per-minute rates must be numbers of requests per second, at least one above 0: check the list.")
            )

    @property
    def rate_per_s(self) -> float:
        """Mean rate in requests per second."""
        return sum(self.rates_per_s) / len(self.rates_per_s)


@dataclass(frozen=True, kw_only=True)
class Mmpp:
    """Poisson whose rate jumps between states, each kept for an exponential time: calm and rush of unknown minutes.

    Azure conversations: 4.62/s for 117 s, 7.02/s for 72 s on average (a fit of 1 s counts).
    """

    rates_per_s: tuple[float, ...]
    stays_s: tuple[float, ...]
    """Mean stay in each state."""

    def __post_init__(self) -> None:
        if not (
            MIN_STATES <= len(self.rates_per_s) <= MAX_STATES
            and len(self.rates_per_s) == len(self.stays_s)
            and all(math.isfinite(rate) and 0 <= rate <= MAX_RATE_PER_S for rate in self.rates_per_s)
            and all(math.isfinite(stay) and 0 < stay <= MAX_STAY_S for stay in self.stays_s)
            and self.rate_per_s >= MIN_RATE_PER_S
        ):
            raise InputError(
                msg(
                    "a changing rate needs {least} to {most} rates per second, one of them above 0, and as many mean "
                    "stays in seconds: check both lists.",
                    least=MIN_STATES,
                    most=MAX_STATES,
                )
            )

    @property
    def rate_per_s(self) -> float:
        """Mean rate in requests per second: states weigh as long as they last."""
        stays = sum(self.stays_s)
        return sum(rate * stay for rate, stay in zip(self.rates_per_s, self.stays_s, strict=True)) / stays


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Arrivals as they were logged; where the log has lengths, each request keeps its own."""

    times_s: tuple[float, ...]
    """Rising, from the start of the log."""
    prompt_tokens: tuple[int, ...] = ()
    output_tokens: tuple[int, ...] = ()
    """Empty = drawn from the workload's distributions."""

    def __post_init__(self) -> None:
        count = len(self.times_s)
        if (
            not MIN_TIMES <= count <= MAX_RECORDED
            or any(not math.isfinite(time) for time in (self.times_s[0], self.times_s[-1]))
            or any(later < sooner for sooner, later in itertools.pairwise(self.times_s))
            or self.times_s[-1] <= self.times_s[0]
            or self.rate_per_s < MIN_RATE_PER_S
        ):
            raise InputError(
                msg(
                    "recorded arrivals must be {least} to {most:count} rising times in seconds: sort the log, or take "
                    "a part of it.",
                    least=MIN_TIMES,
                    most=MAX_RECORDED,
                )
            )
        for lengths in (self.prompt_tokens, self.output_tokens):
            if lengths and (len(lengths) != count or min(lengths) < 1 or max(lengths) > MAX_TOKENS):
                raise InputError(msg("recorded lengths must be one number of at least 1 token for each arrival."))

    @property
    def rate_per_s(self) -> float:
        """Mean rate in requests per second."""
        return (len(self.times_s) - 1) / (self.times_s[-1] - self.times_s[0])


Arrivals: TypeAlias = Closed | OpenLoop | PerMinute | Mmpp | Recorded


def busiest_minute_per_s(times_s: Sequence[float]) -> float:
    """Requests per second of the fullest minute of a log; of the whole log where it is shorter."""
    minutes = np.floor((np.array(times_s) - times_s[0]) / SECONDS_PER_MINUTE).astype(np.int64)
    span_s = min(float(SECONDS_PER_MINUTE), times_s[-1] - times_s[0])
    return float(np.bincount(minutes).max()) / span_s
