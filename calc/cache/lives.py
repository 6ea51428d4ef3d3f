"""How many tokens requests hold while they run: the load's length distributions seen at a moment, not at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calc.workload import Empirical, Fixed, FloatArray, LengthDistribution, LogNormal, Uniform, Workload

MOMENTS = 2**13
"""Moments looked at: prompt, output and progress are spread over them evenly (a lattice), not at random."""
LATTICE = np.sqrt(np.array([2.0, 3.0, 7.0]))
"""Multiples of numbers without a common measure, fractions taken, fill a cube evenly (Kronecker): a block of any size
is met at every fill, to 1 % of half a block on average and 3 % at worst in trials."""
REACH = 5.0
"""Standard deviations of a lognormal's logarithm that are looked at: one length in two million lies beyond."""
NO_ATTENTION = "none"
"""``ModelSpec.attention`` of a model whose sequences keep a state and no tokens: there is nothing to reserve."""
MIN_LENGTH_TOKENS = 2
"""One prompt token and one output token."""


@dataclass(frozen=True, kw_only=True)
class Lives:
    """Moments in the lives of a load's requests, as a glance at the engine finds them: weights add up to 1.

    A request of n output tokens is seen n times as often as one of a single token. Prefill is left out: it is short
    beside decode.
    """

    held_tokens: FloatArray
    """Cached at that moment: the prompt and the output so far."""
    final_tokens: FloatArray
    """Cached when its request ends."""
    weight_share: FloatArray
    longest_tokens: int
    """The engine's maximum length, at which requests are cut."""

    def mean(self, tokens: FloatArray) -> float:
        """Weighted mean over the moments."""
        return float(tokens @ self.weight_share)


@dataclass(frozen=True, kw_only=True)
class FinalLengths:
    """Cached tokens of finished requests: prompt and output together, cut at the engine's maximum; rising."""

    tokens: FloatArray
    weight_share: FloatArray

    def mean(self) -> float:
        """Mean length in tokens."""
        return float(self.tokens @ self.weight_share)

    def quantile(self, share: float) -> float:
        """Length in tokens below which ``share`` of requests lie."""
        at = np.searchsorted(np.cumsum(self.weight_share), share - 1e-12)
        return float(self.tokens[min(int(at), len(self.tokens) - 1)])


def final_lengths(workload: Workload, longest_tokens: int) -> FinalLengths:
    """Prompt + output of the load's requests; the two are taken as independent."""
    prompts, outputs, weights, _ = _requests(workload, longest_tokens)
    tokens = prompts + outputs
    order = np.argsort(tokens, kind="stable")
    return FinalLengths(tokens=tokens[order], weight_share=weights[order] / weights.sum())


def lives(workload: Workload, longest_tokens: int) -> Lives:
    """What a glance at the running requests finds, each step of decode taking the same time."""
    prompts, outputs, weights, progress = _requests(workload, longest_tokens)
    seen = weights * outputs
    return Lives(
        held_tokens=prompts + np.ceil(outputs * progress),
        final_tokens=prompts + outputs,
        weight_share=seen / seen.sum(),
        longest_tokens=longest_tokens,
    )


def _requests(workload: Workload, longest_tokens: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(prompt, output, weight, progress 0-1) of requests spread over the load, cut at the maximum length."""
    longest = max(longest_tokens, MIN_LENGTH_TOKENS)
    shares = (np.arange(MOMENTS)[:, None] + 0.5) * LATTICE % 1.0
    prompts, prompt_weights = _lengths(workload.prompt_tokens, shares[:, 0])
    outputs, output_weights = _lengths(workload.output_tokens, shares[:, 1])
    prompts = np.minimum(prompts, longest - 1)
    weights: FloatArray = prompt_weights * output_weights
    return prompts, np.minimum(outputs, longest - prompts), weights, np.maximum(shares[:, 2], 1 / MOMENTS)


def _lengths(distribution: LengthDistribution, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Whole lengths and their weights: evenly over the logarithm of a lognormal, whose tail would else be missed."""
    weights = np.ones_like(shares)
    match distribution:
        case Fixed(value_tokens=value):
            lengths = np.full_like(shares, value)
        case Uniform(low_tokens=low, high_tokens=high):
            lengths = np.floor(round(low) + shares * (round(high) - round(low) + 1))
        case LogNormal():
            deviations = (2 * shares - 1) * REACH
            lengths = distribution.p50_tokens * np.exp(distribution.sigma * deviations)
            weights = np.exp(-(deviations**2) / 2)
        case Empirical(quantiles=pairs):
            lengths = np.interp(shares, [share for share, _ in pairs], [tokens for _, tokens in pairs])
    return np.maximum(1.0, np.rint(lengths)), weights


def blocks_of(tokens: FloatArray, block_size_tokens: int) -> FloatArray:
    """Whole blocks that ``tokens`` fill or begin."""
    return np.ceil(tokens / block_size_tokens)


def power_of_two(tokens: FloatArray, longest_tokens: int) -> FloatArray:
    """The next power of two (buddy allocation), not above the maximum."""
    return np.minimum(2.0 ** np.ceil(np.log2(tokens)), math.ceil(longest_tokens))
