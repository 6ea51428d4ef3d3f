"""Textbook queueing beside the simulation, each result with the conditions under which it holds.

Means are exact under their conditions and good for a sanity check; tails under real scheduling are simulated.
``None`` = no steady state (utilisation of 1 or more), which is a result, not an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calc.memory import MemoryReport
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.simulator.arrivals import lengths
from calc.simulator.replica import DEMAND_SAMPLE, Replica, prepare
from calc.simulator.stability import Limits, mean_step_s, service_s
from calc.workload import Closed, FloatArray, OpenLoop

KINGMAN_LOW_SHARE = 0.5
"""Below this utilisation Kingman's formula is no longer close."""


def mg1_wait_s(rate_per_s: float, mean_s: float, second_moment_s2: float) -> float | None:
    """Mean wait of M/G/1, first come first served: λ·E[S²] / (2(1−ρ)) (Pollaczek–Khinchine)."""
    load = rate_per_s * mean_s
    return rate_per_s * second_moment_s2 / (2 * (1 - load)) if load < 1 else None


def md1_wait_s(rate_per_s: float, service_s: float) -> float | None:
    """Mean wait of M/D/1: equal service times halve the wait of M/M/1."""
    return mg1_wait_s(rate_per_s, service_s, service_s**2)


def kingman_wait_s(rate_per_s: float, mean_s: float, arrival_cv2: float, service_cv2: float) -> float | None:
    """Mean wait of G/G/1: ρ/(1−ρ) · (c_a² + c_s²)/2 · E[S] (Kingman; exact for Poisson arrivals)."""
    load = rate_per_s * mean_s
    return load / (1 - load) * (arrival_cv2 + service_cv2) / 2 * mean_s if load < 1 else None


def erlang_c(servers: int, offered: float) -> float:
    """Share of arrivals that wait in M/M/c with ``offered`` = λ·E[S] Erlang; 1 when the offer reaches ``servers``."""
    if offered >= servers:
        return 1.0
    blocked = 1.0
    for busy in range(1, servers + 1):
        blocked = offered * blocked / (busy + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))


def mmc_wait_s(rate_per_s: float, mean_s: float, servers: int) -> float | None:
    """Mean wait of M/M/c: C(c, λ·E[S]) · E[S] / (c − λ·E[S])."""
    offered = rate_per_s * mean_s
    return erlang_c(servers, offered) * mean_s / (servers - offered) if offered < servers else None


def shared_batch_shares(rate_per_s: float, step_s: FloatArray, output_tokens: float) -> FloatArray:
    """Probability of 0…n running requests when they share the steps equally: π(n) ~ Π λ·E[o]·t(k)/k.

    Insensitive to the distribution of output lengths; ``step_s[k]`` is t(k), index 0 unused.
    """
    running = np.arange(1, step_s.size)
    logs = np.concatenate(([0.0], np.cumsum(np.log(rate_per_s * output_tokens * step_s[1:] / running))))
    weights = np.exp(logs - logs.max())
    shares: FloatArray = weights / weights.sum()
    return shares


@dataclass(frozen=True, kw_only=True)
class TextbookResult:
    """One formula on this load."""

    code: str
    """``prefill-mg1``, ``prefill-md1``, ``prefill-kingman``, ``slots-mmc`` or ``decode-ps``."""
    title: Message
    value_s: float | None
    """Mean in seconds; ``None`` = no steady state, or not applicable (then ``holds`` is False)."""
    utilisation_share: float | None
    formula: str
    conditions: tuple[Message, ...]
    holds: bool
    """Whether the load meets the conditions that can be checked."""


@dataclass(frozen=True, kw_only=True)
class QueueReport:
    """Stability limits of one replica and the textbook's answers at the operating load."""

    limits: Limits
    rate_per_s: float | None
    """Offered to one replica; ``None`` for a closed loop."""
    utilisation_share: float | None
    """Offered over the stability limit."""
    results: tuple[TextbookResult, ...]


def textbook(scenario: Scenario, *, memory: MemoryReport | None = None, seed: int = 1) -> QueueReport:
    """Textbook figures for the page beside the simulation; closed loops have limits only."""
    replica = prepare(scenario, memory, seed)
    arrivals = replica.workload.arrivals
    if isinstance(arrivals, Closed):
        return QueueReport(limits=replica.limits, rate_per_s=None, utilisation_share=None, results=())
    rate = arrivals.rate_per_s / replica.split
    return QueueReport(
        limits=replica.limits,
        rate_per_s=rate,
        utilisation_share=rate / replica.limits.max_rate_per_s,
        results=(*_prefill(replica, rate, seed), _slots(replica, rate), _decode(replica, rate)),
    )


def _prefill(replica: Replica, rate: float, seed: int) -> tuple[TextbookResult, ...]:
    """A server that only prefills, one prompt at a time."""
    prompt, _, cached = lengths(
        replica.workload,
        DEMAND_SAMPLE,
        replica.settings.max_model_len_tokens,
        seed,
        reuse=replica.settings.prefix_caching,
    )
    seconds = replica.model.prefill_only_s(prompt.astype(np.float64), cached.astype(np.float64))
    mean, second = float(seconds.mean()), float((seconds**2).mean())
    service_cv2 = second / mean**2 - 1
    poisson, arrival_cv2 = _arrival_law(replica)
    load = rate * mean
    alone = msg("Prefill alone on the GPU, one prompt at a time, first come first served.")
    return (
        TextbookResult(
            code="prefill-mg1",
            title=msg("Wait for prefill, M/G/1"),
            value_s=mg1_wait_s(rate, mean, second),
            utilisation_share=load,
            formula="λ·E[S²] / (2(1−ρ))",
            conditions=(alone, msg("Poisson arrivals.")),
            holds=poisson,
        ),
        TextbookResult(
            code="prefill-md1",
            title=msg("Wait for prefill if all prompts were equal, M/D/1"),
            value_s=md1_wait_s(rate, mean),
            utilisation_share=load,
            formula="ρ·D / (2(1−ρ))",
            conditions=(alone, msg("Poisson arrivals."), msg("Equal prompts.")),
            holds=poisson and math.isclose(service_cv2, 0, abs_tol=1e-9),
        ),
        TextbookResult(
            code="prefill-kingman",
            title=msg("Wait for prefill with this burstiness, Kingman"),
            value_s=kingman_wait_s(rate, mean, arrival_cv2, service_cv2),
            utilisation_share=load,
            formula="ρ/(1−ρ) · (c_a² + c_s²)/2 · E[S]",
            conditions=(
                alone,
                msg("Utilisation of at least {low:pct}: closer the higher it is.", low=KINGMAN_LOW_SHARE),
            ),
            holds=KINGMAN_LOW_SHARE <= load < 1,
        ),
    )


def _arrival_law(replica: Replica) -> tuple[bool, float]:
    """Whether arrivals are Poisson, and the squared coefficient of variation of their gaps."""
    arrivals = replica.workload.arrivals
    if not isinstance(arrivals, OpenLoop):
        return False, 1.0
    cv2 = {"poisson": 1.0, "constant": 0.0}.get(arrivals.kind, arrivals.cv**2)
    return arrivals.kind == "poisson", cv2


def _slots(replica: Replica, rate: float) -> TextbookResult:
    """Scheduler slots (or sequences the pool holds) as servers of M/M/c."""
    servers = max(1, int(min(replica.rules.max_seqs, replica.pool_tokens / replica.demand.held)))
    stay_s = service_s(replica.model, replica.demand, float(servers))
    return TextbookResult(
        code="slots-mmc",
        title=msg("Wait for a slot, M/M/c with {servers:count} slots", servers=servers),
        value_s=mmc_wait_s(rate, stay_s, servers),
        utilisation_share=rate * stay_s / servers,
        formula="C(c, λ·E[S]) · E[S] / (c − λ·E[S])",
        conditions=(
            msg("Poisson arrivals."),
            msg("Exponential service times."),
            msg("Service as slow as with all slots taken: an upper bound at low load."),
        ),
        holds=_arrival_law(replica)[0],
    )


def _decode(replica: Replica, rate: float) -> TextbookResult:
    """Mean step a token waits for when decode is shared equally: E over the batch a running request sees."""
    most = max(2, math.floor(replica.limits.max_batch))
    step_s = mean_step_s(replica.model, replica.demand, np.arange(most + 1, dtype=np.float64))
    shares = shared_batch_shares(rate, step_s, replica.demand.output)
    running = np.arange(most + 1)
    seen = shares * running
    return TextbookResult(
        code="decode-ps",
        title=msg("Time per output token, processor sharing"),
        value_s=float((seen * step_s).sum() / seen.sum()),
        utilisation_share=rate / replica.limits.max_rate_per_s,
        formula="Σ n·π(n)·t(n) / Σ n·π(n), π(n) ~ Π λ·E[o]·t(k)/k",
        conditions=(msg("Poisson arrivals."), msg("Nobody waits: load below the stability limit.")),
        holds=_arrival_law(replica)[0] and rate < replica.limits.max_rate_per_s,
    )
