"""How long prompts and outputs are: token-length distributions, and drawing from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calc.errors import InputError
from calc.messages import Message, msg

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

MIN_QUANTILES = 2
Z95 = 1.6448536269514722
"""95 % quantile of the standard normal distribution."""
MAX_TOKENS = 20_000_000
"""Longest prompt or output accepted; far beyond any context window on sale."""


def check_tokens(value: float, what: str | Message) -> None:
    """Refuses a length that no request could have."""
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
        check_tokens(self.value_tokens, msg("length"))

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
        check_tokens(self.low_tokens, msg("low"))
        check_tokens(self.high_tokens, msg("high"))
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
        check_tokens(self.p50_tokens, "P50")
        check_tokens(self.p95_tokens, "P95")
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
        check_tokens(tokens[0], msg("lowest quantile"))
        check_tokens(tokens[-1], msg("highest quantile"))

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
