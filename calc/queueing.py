"""Textbook queueing with its conditions: stability limits, M/G/1 prefill, Erlang-C slots, Kingman.

They answer at once and check the simulator; tails under real scheduling are simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.roofline import StepModel
from calc.workload import IntArray

STEADY_ROUNDS = 60
"""Halvings of the interval that holds the steady batch: far below one sequence."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """Means over the requests of a load, in tokens."""

    prompt: float
    fresh: float
    """Prompt tokens to compute: prompt less hits."""
    output: float
    held: float
    """KV tokens a running request holds, averaged over its steps (long outputs weigh more)."""
    pairs: float
    """(Prompt token, earlier token) pairs of prefill attention."""

    @classmethod
    def of(cls, prompt: IntArray, output: IntArray, cached: IntArray) -> Demand:
        """Of drawn lengths: held = E[s·o + o(o+1)/2] / E[o]."""
        fresh = prompt - cached
        steps = float(output.mean())
        return cls(
            prompt=float(prompt.mean()),
            fresh=float(fresh.mean()),
            output=steps,
            held=float((prompt * output + output * (output + 1) / 2).mean()) / steps,
            pairs=float((fresh * (cached + (fresh + 1) / 2)).mean()),
        )


def mean_step_s(model: StepModel, demand: Demand, batch: float) -> float:
    """Mean seconds of a step with ``batch`` running requests in balance: each step starts batch/output requests.

    While fewer than one request starts per step its prefill is a lump on some steps; beyond that it is spread evenly.
    """
    starts = batch / demand.output
    lump = max(demand.fresh, starts * demand.fresh)
    alone, mixed = model.tokens_s(np.array([batch, batch + lump]))
    return float(
        alone
        + min(starts, 1.0) * (mixed - alone)
        + model.sequence_s * batch
        + model.context_s * batch * demand.held
        + model.window_s * batch * min(demand.held, model.window_tokens)
        + starts * (model.prefill_s + model.context_s * demand.prompt + model.pair_s * demand.pairs)
        + starts * model.window_pair_s * demand.fresh * min(demand.prompt, model.window_tokens)
    )


def rate_at(model: StepModel, demand: Demand, batch: float) -> float:
    """Requests per second completed while ``batch`` requests run."""
    return batch / demand.output / mean_step_s(model, demand, batch)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Highest stable rates of one replica in requests/s, each as if the others did not exist."""

    compute_per_s: float
    """Token budget full in every step."""
    memory_per_s: float
    """KV pool full."""
    sequences_per_s: float
    """All scheduler slots taken."""
    max_rate_per_s: float
    binds: str
    """compute, memory_capacity or sequences."""
    max_batch: float
    """Requests that run at the limit."""


def stability_limits(model: StepModel, demand: Demand, pool_tokens: float) -> Limits:
    """λ_max = min over the three caps of λ(b) = b / (E[o]·t(b)); exact for a work-conserving scheduler in balance."""
    batches = {
        "compute": model.max_tokens / (1 + demand.fresh / demand.output),
        "memory_capacity": max(1.0, pool_tokens / demand.held),
        "sequences": float(model.max_seqs),
    }
    rates = {name: rate_at(model, demand, batch) for name, batch in batches.items()}
    binds = min(rates, key=lambda name: rates[name])
    return Limits(
        compute_per_s=rates["compute"],
        memory_per_s=rates["memory_capacity"],
        sequences_per_s=rates["sequences"],
        max_rate_per_s=rates[binds],
        binds=binds,
        max_batch=batches[binds],
    )


def steady_batch(model: StepModel, demand: Demand, limits: Limits, rate_per_s: float) -> float:
    """Running requests at which the replica completes ``rate_per_s`` (Little's law); the limit's when it cannot."""
    if rate_per_s >= limits.max_rate_per_s:
        return limits.max_batch
    low, high = 0.0, limits.max_batch
    for _ in range(STEADY_ROUNDS):
        middle = (low + high) / 2
        if rate_at(model, demand, middle) < rate_per_s:
            low = middle
        else:
            high = middle
    return high


def service_s(model: StepModel, demand: Demand, batch: float) -> float:
    """Seconds a request spends running beside ``batch`` others: prefill step, then output − 1 steps."""
    step_s = mean_step_s(model, demand, max(batch, 1.0))
    return model.prefill_only_s(demand.prompt, demand.prompt - demand.fresh) + (demand.output - 1) * step_s
