"""Serving without a KV cache: every output token computes the whole history again (quadratic in its length).

E2E without = Σ over tokens n of forward(s + n);  with = forward(s) + Σ over tokens of one decode step
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.step.roofline import StepModel


@dataclass(frozen=True, kw_only=True)
class Alone:
    """One request alone on the engine, with and without a cache of its own; seconds."""

    prompt_tokens: int
    output_tokens: int
    with_s: float
    without_s: float
    first_s: float
    """To the first token, the same for both."""

    @property
    def ratio(self) -> float:
        """How many times longer it takes without."""
        return self.without_s / self.with_s

    @property
    def mean_gap_with_s(self) -> float:
        """Mean gap between tokens with the cache."""
        return (self.with_s - self.first_s) / max(1, self.output_tokens - 1)

    @property
    def mean_gap_without_s(self) -> float:
        """The same without."""
        return (self.without_s - self.first_s) / max(1, self.output_tokens - 1)


def alone(model: StepModel, prompt_tokens: int, output_tokens: int) -> Alone:
    """Greedy decoding of ``output_tokens`` after ``prompt_tokens``, one request, no batching."""
    history = np.arange(prompt_tokens, prompt_tokens + output_tokens, dtype=np.float64)
    forward = model.prefill_only_s(history, np.zeros_like(history))
    first = float(forward[0])
    decode = _decode_s(model, prompt_tokens, output_tokens)
    return Alone(
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        with_s=first + decode,
        without_s=float(forward.sum()),
        first_s=first,
    )


SAMPLES = 33
"""Histories at which a decode step is asked for; between them its time is a straight line but at a window's end."""


def _decode_s(model: StepModel, prompt_tokens: int, output_tokens: int) -> float:
    """Every token after the first, each reading the history before it."""
    held = np.linspace(prompt_tokens + 1, prompt_tokens + output_tokens - 1, SAMPLES)
    steps = [model.decode_s(1, float(tokens)) for tokens in held]
    return float(np.mean(steps)) * (output_tokens - 1)


FULL_STEP_TOKENS = 8192.0
"""A step wide enough that its cost per token no longer falls."""


def rate_without_per_s(model: StepModel, prompt_tokens: int, output_tokens: int) -> float:
    """Requests per second of a replica that batches as wide as it likes: compute alone binds, no memory is kept."""
    per_token_s = float(model.tokens_s(np.array([FULL_STEP_TOKENS]))[0]) / FULL_STEP_TOKENS
    history = np.arange(prompt_tokens, prompt_tokens + output_tokens, dtype=np.float64)
    pairs = model.pair_s * history * (history + 1) / 2
    return 1.0 / float((history * per_token_s + pairs).sum())
