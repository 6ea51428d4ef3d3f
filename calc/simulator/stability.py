"""How much load one replica can carry for ever: the steady batch, and three caps on the stable rate.

With b running requests a step takes t(b) and every request needs E[o] of them, so λ(b) = b / (E[o]·t(b)). The batch is
capped by the token budget, the KV pool and the scheduler's slots; the lowest λ is the stability limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calc.simulator.contract import SchedulerRules
from calc.step.roofline import StepModel
from calc.workload import FloatArray, IntArray

STEADY_GRID = 400
"""Batch sizes between which the steady one is interpolated."""


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
    verified: float = 1.0
    """Tokens a sequence puts into a step: with speculation one and the drafted ones."""
    gained: float = 1.0
    """Tokens a step gives a sequence on average."""
    fetch_s: float = 0.0
    """Seconds a request takes of the tier outside the GPU that is busiest."""

    @property
    def steps(self) -> float:
        """Decode steps of a request, its prefill step counted as one."""
        return max(1.0, self.output / self.gained)

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


def mean_step_s(model: StepModel, demand: Demand, batch: FloatArray) -> FloatArray:
    """Mean seconds of a step with ``batch`` running requests in balance: each step starts batch/output requests.

    While fewer than one request starts per step its prefill is a lump on some steps; beyond that it is spread evenly.
    """
    starts = batch / demand.steps
    alone = model.tokens_s(batch * demand.verified)
    mixed = model.mixed_s(batch * demand.verified, np.maximum(demand.fresh, starts * demand.fresh))
    near = min(demand.prompt, model.window_tokens)
    per_start = (
        model.prefill_s
        + model.context_s * demand.prompt
        + model.pair_s * demand.pairs
        + (model.window_s * demand.prompt + model.window_pair_s * demand.fresh) * near / demand.prompt
    )
    per_sequence = (
        model.sequence_s
        + model.draft_sequence_s
        + model.context_s * demand.held
        + model.window_s * min(demand.held, model.window_tokens)
    )
    step: FloatArray = alone + np.minimum(starts, 1.0) * (mixed - alone) + per_sequence * batch + per_start * starts
    return step


def rate_at(model: StepModel, demand: Demand, batch: FloatArray) -> FloatArray:
    """Requests per second completed while ``batch`` requests run: b / (E[o]·t(b))."""
    rate: FloatArray = batch / demand.steps / mean_step_s(model, demand, batch)
    return rate


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Highest stable rates of one replica in requests/s, each as if the others did not exist."""

    compute_per_s: float
    """Token budget full in every step."""
    memory_per_s: float
    """KV pool full."""
    sequences_per_s: float
    """All scheduler slots taken."""
    fetch_per_s: float = math.inf
    """The busiest tier outside the GPU transfers without a pause."""
    max_rate_per_s: float
    binds: str
    """compute, memory_capacity, sequences or (a tier) communication."""
    max_batch: float
    """Requests that run at the limit."""
    pool: str = ""
    """Split prefill: the side that binds, ``prefill`` (its links included) or ``decode``."""


def stability_limits(model: StepModel, demand: Demand, pool_tokens: float) -> Limits:
    """λ_max = min over the three caps of λ(b) = b / (E[o]·t(b)); exact for a work-conserving scheduler in balance."""
    batches = {
        "compute": model.max_tokens / (demand.verified + demand.fresh / demand.steps),
        "memory_capacity": max(1.0, pool_tokens / demand.held),
        "sequences": max(1.0, min(float(model.max_seqs), model.max_tokens // demand.verified)),
    }
    found = rate_at(model, demand, np.array(list(batches.values())))
    rates = dict(zip(batches, map(float, found), strict=True))
    binds = min(rates, key=lambda name: rates[name])
    fetches = 1 / demand.fetch_s if demand.fetch_s > 0 else math.inf
    return Limits(
        compute_per_s=rates["compute"],
        memory_per_s=rates["memory_capacity"],
        sequences_per_s=rates["sequences"],
        fetch_per_s=fetches,
        max_rate_per_s=min(rates[binds], fetches),
        binds=binds if rates[binds] <= fetches else "communication",
        max_batch=batches[binds],
    )


def static_limits(model: StepModel, rules: SchedulerRules, demand: Demand, outputs: IntArray) -> Limits:
    """Of batches that start together: λ = b / (prefill of b prompts + steps of the longest of b outputs).

    b is capped by slots and by blocks reserved for prompt + longest output. E[longest] is that of drawn outputs.
    """
    reserved = demand.prompt + (rules.reserved_tokens or 0)
    in_pool = max(1, int(rules.total_blocks // (np.ceil(reserved / rules.block_tokens) + rules.fixed_blocks)))
    batch = min(rules.slots, in_pool)
    groups = outputs[: max(1, outputs.size // batch) * batch]
    longest = float(groups.reshape(-1, min(batch, groups.size)).max(axis=1).mean())
    prefill_s = float(model.tokens_s(np.array([batch * demand.fresh]))[0]) + batch * (
        model.prefill_s + model.pair_s * demand.pairs + model.context_s * demand.prompt
    )
    held = batch * (demand.prompt + longest / 2)
    decode_s = model.decode_s(batch * demand.verified, held) + model.sequence_s * batch * (1 - demand.verified)
    rate = batch / (prefill_s + max(0.0, longest - 1) / demand.gained * decode_s)
    slots_bind = batch == rules.slots
    return Limits(
        compute_per_s=rate,
        memory_per_s=rate,
        sequences_per_s=rate,
        max_rate_per_s=rate,
        binds="sequences" if slots_bind else "memory_capacity",
        max_batch=float(batch),
    )


@dataclass(frozen=True, kw_only=True)
class Balance:
    """A replica in balance over its number of running requests, up to what runs at its limit."""

    batches: FloatArray
    steps_s: FloatArray
    """Mean seconds of a step."""
    rates_per_s: FloatArray
    """Requests completed, never falling."""
    prefill_s: float
    """Seconds of a request's prefill step by itself."""
    output: float
    """Steps of a request."""

    def batch_at(self, rate_per_s: float) -> float:
        """Running requests at which ``rate_per_s`` is completed (Little's law); the limit's when it cannot be."""
        return float(np.interp(rate_per_s, self.rates_per_s, self.batches))

    def service_s(self, batch: float) -> float:
        """Seconds a request spends running beside ``batch`` others: prefill step, then output − 1 steps."""
        step_s = float(np.interp(max(batch, 1.0), self.batches, self.steps_s))
        return self.prefill_s + (self.output - 1) * step_s


def balance_of(model: StepModel, demand: Demand, limits: Limits) -> Balance:
    """Worked out once for a replica; loads are then looked up in it."""
    batches = np.linspace(0.0, limits.max_batch, STEADY_GRID)
    steps = mean_step_s(model, demand, batches)
    rates: FloatArray = np.maximum.accumulate(batches / demand.steps / steps)
    prefill_s = model.prefill_only_s(np.array([demand.prompt]), np.array([demand.prompt - demand.fresh]))
    return Balance(
        batches=batches, steps_s=steps, rates_per_s=rates, prefill_s=float(prefill_s[0]), output=demand.steps
    )


def steady_batch(model: StepModel, demand: Demand, limits: Limits, rate_per_s: float) -> float:
    """Running requests at which the replica completes ``rate_per_s``."""
    return balance_of(model, demand, limits).batch_at(rate_per_s)


def service_s(model: StepModel, demand: Demand, batch: float) -> float:
    """Seconds a request spends running beside ``batch`` others: prefill step, then output − 1 steps."""
    step_s = float(mean_step_s(model, demand, np.array([max(batch, 1.0)]))[0])
    prefill_s = model.prefill_only_s(np.array([demand.prompt]), np.array([demand.prompt - demand.fresh]))
    return float(prefill_s[0]) + (demand.steps - 1) * step_s
