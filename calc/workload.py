"""What the users send: token-length distributions, arrivals, prefix reuse, the SLO and prices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calc.errors import InputError
from calc.messages import Message, msg
from calc.room.idle import check_idle_share

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

MAX_CV = 100.0
"""Highest coefficient of variation of arrival gaps accepted; ServeGen's P99 client window is 35."""
MAX_REQUESTS = 10_000_000
"""Most requests simulated in one go."""
MEDIAN_SHARE = 0.5
MIN_QUANTILES = 2
Z95 = 1.6448536269514722
"""95 % quantile of the standard normal distribution."""
MAX_TOKENS = 20_000_000
"""Longest prompt or output accepted; far beyond any context window on sale."""
MAX_CONCURRENCY = 100_000
"""Most concurrent requests accepted; ten times the largest published closed-loop run."""
MAX_RATE_PER_S = 100_000.0
"""Highest arrival rate accepted per deployment."""
MIN_RATE_PER_S = 1e-6
"""Lowest mean arrival rate accepted, one request in eleven days: below it clock times lose their fractions."""
MIN_TARGET_S = 1e-6
MAX_TARGET_S = 1e6
"""Shortest and longest latency target accepted: a microsecond, eleven days."""
MAX_GPU_HOUR = 1e9
"""Highest price of a GPU-hour accepted, in any currency."""


def _positive_tokens(value: float, what: str | Message) -> None:
    if not (math.isfinite(value) and 1 <= value <= MAX_TOKENS):
        raise InputError(
            msg(
                "{what} must be between 1 and {limit:count} tokens, got {value}: correct the length.",
                what=what,
                limit=MAX_TOKENS,
                value=value,
            )
        )


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Every request has the same length."""

    value_tokens: float

    def __post_init__(self) -> None:
        _positive_tokens(self.value_tokens, msg("length"))

    def mean(self) -> float:
        """Mean length in tokens."""
        return self.value_tokens

    def quantile(self, share: float) -> float:  # noqa: ARG002 - same signature for all distributions
        """Length in tokens below which ``share`` of requests lie."""
        return self.value_tokens


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Lengths spread evenly from low to high."""

    low_tokens: float
    high_tokens: float

    def __post_init__(self) -> None:
        _positive_tokens(self.low_tokens, msg("low"))
        _positive_tokens(self.high_tokens, msg("high"))
        if self.low_tokens > self.high_tokens:
            raise InputError(
                msg("low ({low}) is above high ({high}): swap them.", low=self.low_tokens, high=self.high_tokens)
            )

    def mean(self) -> float:
        """Mean length in tokens."""
        return (self.low_tokens + self.high_tokens) / 2

    def quantile(self, share: float) -> float:
        """Length in tokens below which ``share`` of requests lie."""
        return self.low_tokens + share * (self.high_tokens - self.low_tokens)


@dataclass(frozen=True, kw_only=True)
class LogNormal:
    """Lognormal lengths given by their P50 and P95, as people know them: mu = ln P50, sigma = ln(P95/P50)/z95."""

    p50_tokens: float
    p95_tokens: float

    def __post_init__(self) -> None:
        _positive_tokens(self.p50_tokens, "P50")
        _positive_tokens(self.p95_tokens, "P95")
        if self.p95_tokens < self.p50_tokens:
            raise InputError(
                msg(
                    "P95 ({p95}) is below P50 ({p50}): P95 must be the larger one.",
                    p95=self.p95_tokens,
                    p50=self.p50_tokens,
                )
            )

    @property
    def sigma(self) -> float:
        """Standard deviation of ln(length)."""
        return math.log(self.p95_tokens / self.p50_tokens) / Z95

    def mean(self) -> float:
        """Mean length in tokens: P50·exp(sigma²/2)."""
        return self.p50_tokens * math.exp(self.sigma**2 / 2)

    def quantile(self, share: float) -> float:
        """Length in tokens below which ``share`` of requests lie."""
        return self.p50_tokens * math.exp(self.sigma * NormalDist().inv_cdf(min(max(share, 1e-12), 1 - 1e-12)))


@dataclass(frozen=True, kw_only=True)
class Empirical:
    """Lengths given by quantiles ((share, tokens), …) of the user's own data, linear between them."""

    quantiles: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        shares = [q for q, _ in self.quantiles]
        tokens = [t for _, t in self.quantiles]
        if (
            len(shares) < MIN_QUANTILES
            or shares != sorted(set(shares))
            or tokens != sorted(tokens)
            or shares[0] < 0
            or shares[-1] > 1
        ):
            raise InputError(msg("quantiles must be at least two rising pairs (share 0-1, tokens): check the list."))
        _positive_tokens(tokens[0], msg("lowest quantile"))
        _positive_tokens(tokens[-1], msg("highest quantile"))

    def mean(self) -> float:
        """Mean length in tokens (trapezoid over the quantile function)."""
        grid = np.linspace(0.0, 1.0, 2001)
        return float(np.interp(grid, *self._columns()).mean())

    def quantile(self, share: float) -> float:
        """Length in tokens below which ``share`` of requests lie."""
        return float(np.interp(share, *self._columns()))

    def _columns(self) -> tuple[list[float], list[float]]:
        return [q for q, _ in self.quantiles], [t for _, t in self.quantiles]


LengthDistribution: TypeAlias = Fixed | Uniform | LogNormal | Empirical


def sample_tokens(
    distribution: LengthDistribution, count: int, rng: np.random.Generator, longest_tokens: int | None = None
) -> IntArray:
    """``count`` lengths in tokens (at least 1, at most ``longest_tokens``), drawn with ``rng``."""
    match distribution:
        case Fixed(value_tokens=value):
            drawn = np.full(count, value)
        case Uniform(low_tokens=low, high_tokens=high):
            drawn = rng.integers(round(low), round(high) + 1, count).astype(np.float64)
        case LogNormal():
            drawn = distribution.p50_tokens * np.exp(distribution.sigma * rng.standard_normal(count))
        case Empirical(quantiles=pairs):
            drawn = np.interp(rng.random(count), [q for q, _ in pairs], [t for _, t in pairs])
    tokens: IntArray = np.clip(np.rint(drawn), 1, longest_tokens or MAX_TOKENS).astype(np.int64)
    return tokens


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


Arrivals: TypeAlias = Closed | OpenLoop | PerMinute


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Load on the whole deployment (all replicas together)."""

    prompt_tokens: LengthDistribution
    output_tokens: LengthDistribution
    arrivals: Arrivals
    prefix_hit_share: float = 0.0
    """Share of prompt tokens found in the prefix cache (0-1)."""
    num_requests: int | None = None
    """Requests of a finite benchmark; None = steady load."""
    business_type: str = "custom"
    http: bool = True
    """True: latency as a client sees it over HTTP; False: inside the engine."""
    idle_share: float = 0.0
    """Share of open sessions whose user pauses while their context is to stay cached (0-1); it is part of KV demand."""
    idle_context_tokens: float | None = None
    """What such a session holds; None = a finished request, prompt and output."""

    def __post_init__(self) -> None:
        check_idle_share(self.idle_share)
        if self.idle_context_tokens is not None:
            _positive_tokens(self.idle_context_tokens, msg("idle context"))
        if not 0.0 <= self.prefix_hit_share <= 1.0:
            raise InputError(
                msg(
                    "prefix hit share must be between 0 and 1, got {value}: 0.3 means three prompt tokens in ten.",
                    value=self.prefix_hit_share,
                )
            )
        if self.num_requests is not None and not 1 <= self.num_requests <= MAX_REQUESTS:
            raise InputError(
                msg("number of requests must be between 1 and 10,000,000, got {value}.", value=self.num_requests)
            )

    @property
    def idle_per_active(self) -> float:
        """Idle sessions for each request in flight."""
        return self.idle_share / (1 - self.idle_share)


@dataclass(frozen=True, kw_only=True)
class Slo:
    """Targets in seconds at one percentile (share, 0.95 = P95). None = no target."""

    ttft_s: float | None = None
    itl_s: float | None = None
    e2e_s: float | None = None
    percentile_share: float = 0.95
    source: str = ""

    def __post_init__(self) -> None:
        for name, value in (("TTFT", self.ttft_s), ("ITL", self.itl_s), ("E2E", self.e2e_s)):
            if value is not None and not MIN_TARGET_S <= value <= MAX_TARGET_S:
                raise InputError(
                    msg(
                        "the {name} target must be between {least:g} and {limit:count} seconds, got {value}: "
                        "leave it empty for no target.",
                        name=name,
                        least=MIN_TARGET_S,
                        limit=MAX_TARGET_S,
                        value=value,
                    )
                )
        if not MEDIAN_SHARE <= self.percentile_share < 1:
            raise InputError(
                msg("the SLO percentile must be from P50 to below P100, got {value}.", value=self.percentile_share)
            )


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What the team pays. None = not known."""

    gpu_hour: float | None = None
    currency: str = "USD"
    source: str = ""
    region: str = ""
    commitment: str = ""
    """on-demand, reserved-1y, reserved-3y, spot, owned … Prices of different commitments are different prices."""
    checked_on: str = ""
    """ISO date on which somebody last looked at the source."""

    def __post_init__(self) -> None:
        if self.gpu_hour is not None and not 0 <= self.gpu_hour <= MAX_GPU_HOUR:
            raise InputError(
                msg(
                    "the price of a GPU-hour must be between 0 and {limit:count}, got {value}: check it.",
                    limit=MAX_GPU_HOUR,
                    value=self.gpu_hour,
                )
            )
