"""How long prompts take to prefill beside a decoding batch, and how many requests run at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calc.queueing import shared_batch_shares
from calc.simulator.arrivals import lengths
from calc.simulator.replica import DEMAND_SAMPLE, Replica
from calc.simulator.stability import mean_step_s
from calc.workload import FloatArray, OpenLoop


def is_poisson(replica: Replica) -> bool:
    """Whether requests come at one rate, independently of each other."""
    arrivals = replica.workload.arrivals
    return isinstance(arrivals, OpenLoop) and arrivals.kind == "poisson"


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """Prefill of drawn prompts, each alone in its steps beside ``batch`` decoding requests."""

    seconds: FloatArray
    steps: FloatArray

    @property
    def mean_s(self) -> float:
        """E[S]."""
        return float(self.seconds.mean())

    @property
    def second_s2(self) -> float:
        """E[S²]."""
        return float((self.seconds**2).mean())

    @property
    def cv2(self) -> float:
        """Squared coefficient of variation, c_s²."""
        return self.second_s2 / self.mean_s**2 - 1


def drawn_prompts(replica: Replica, seed: int) -> tuple[FloatArray, FloatArray]:
    """Prompt tokens and cached ones of a sample of requests."""
    settings = replica.settings
    drawn = lengths(replica.workload, DEMAND_SAMPLE, settings.max_model_len_tokens, seed, reuse=settings.prefix_caching)
    return drawn[0].astype(np.float64), drawn[2].astype(np.float64)


def prompts_of(replica: Replica, batch: float, drawn: tuple[FloatArray, FloatArray]) -> Prompts:
    """A prompt takes as many full budgets as it needs, and a last step for the rest."""
    model, settings = replica.model, replica.settings
    prompt, cached = drawn
    fresh = prompt - cached
    room = max(1.0, model.max_tokens - batch) if settings.chunked_prefill else float(fresh.max())
    full = np.ceil(fresh / room) - 1
    beside_s = model.sequence_s * (batch + 1) + model.context_s * batch * replica.demand.held
    alone_s = model.prefill_only_s(prompt, cached) - model.tokens_s(fresh) - model.sequence_s
    seconds = (
        full * float(model.tokens_s(np.array([batch + room]))[0])
        + model.tokens_s(batch + fresh - full * room)
        + (full + 1) * beside_s
        + alone_s
    )
    return Prompts(seconds=seconds, steps=full + 1)


def batch_shares(replica: Replica, rate: float) -> tuple[FloatArray, FloatArray]:
    """Probability of each number of running requests, and seconds of a step beside them."""
    most = max(2, math.floor(replica.limits.max_batch))
    step_s = mean_step_s(replica.model, replica.demand, np.arange(most + 1, dtype=np.float64))
    return shared_batch_shares(rate, step_s, replica.demand.output), step_s
