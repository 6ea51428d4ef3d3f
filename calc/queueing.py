"""Textbook queueing: waits, shares and dispersion as closed formulas. Which of them holds where: calc.textbook.

Means are exact under their conditions and good for a sanity check; tails under real scheduling are simulated.
``None`` = no steady state (utilisation of 1 or more), which is a result, not an error.
"""

from __future__ import annotations

import math

import numpy as np

from calc.units import SECONDS_PER_MINUTE
from calc.workload import Arrivals, Closed, FloatArray, Mmpp, OpenLoop, PerMinute, Recorded

FEW_MINUTES = 5
"""Fewer whole minutes than this show no dispersion of counts."""


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


def vacation_wait_s(
    rate_per_s: float, mean_s: float, second_moment_s2: float, away_s: float, away_second_moment_s2: float
) -> float | None:
    """Mean wait of M/G/1 whose idle server goes away again and again: that of M/G/1 plus E[V²]/(2·E[V]).

    Fuhrmann and Cooper (1985). Here the server prefills, and while no prompt waits it is away for a decode step.
    """
    wait_s = mg1_wait_s(rate_per_s, mean_s, second_moment_s2)
    residual_s = away_second_moment_s2 / (2 * away_s) if away_s > 0 else 0.0
    return None if wait_s is None else wait_s + residual_s


def wait_quantile_s(
    rate_per_s: float, mean_s: float, arrival_cv2: float, service_cv2: float, share: float
) -> float | None:
    """Wait below which ``share`` of requests lie: P(W > x) = ρ·exp(−x·2(1−ρ)/((c_a² + c_s²)·E[S])).

    Exact for M/M/1, a heavy-traffic approximation for others; wrong for heavy-tailed service.
    """
    load = rate_per_s * mean_s
    if load >= 1:
        return None
    beyond = 1 - share
    return max(0.0, math.log(load / beyond)) * (arrival_cv2 + service_cv2) * mean_s / (2 * (1 - load)) if load else 0.0


def batch_quantile(shares: FloatArray, share: float) -> int:
    """Smallest number of running requests that is not exceeded with probability ``share``."""
    return int(np.searchsorted(np.cumsum(shares) / shares.sum(), share))


def dispersion(arrivals: Arrivals, split: float = 1.0) -> float:
    """Variance over mean of the arrivals in a long time on one of ``split`` replicas: 1 for Poisson.

    It takes the place of c_a² in Kingman's formula where the rate itself changes: 1 + 60·Var(λ)/E[λ] for a rate per
    minute, 1 + 2·∫Cov(λ₀, λ_t)dt / E[λ] for one that jumps. A log gives it by its counts per minute.
    """
    match arrivals:
        case Closed():
            return 0.0
        case OpenLoop(kind=kind, cv=cv):
            return {"poisson": 1.0, "constant": 0.0}.get(kind, cv**2)
        case PerMinute(rates_per_s=rates):
            return 1 + SECONDS_PER_MINUTE * float(np.var(rates)) / arrivals.rate_per_s / split
        case Mmpp():
            return 1 + 2 * _lasting_covariance(arrivals) / arrivals.rate_per_s / split
        case Recorded(times_s=times):
            return 1 + (_count_dispersion(np.array(times)) - 1) / split


def _lasting_covariance(arrivals: Mmpp) -> float:
    """∫Cov(λ₀, λ_t)dt over t > 0 of a rate that goes round its states: Σ π·δ·x with Q·x = −δ, δ = λ − E[λ]."""
    stays = np.array(arrivals.stays_s)
    leaving = np.diag(1 / stays)
    generator = np.roll(leaving, 1, axis=1) - leaving
    shares = stays / stays.sum()
    off = np.array(arrivals.rates_per_s) - arrivals.rate_per_s
    lasting = np.linalg.lstsq(generator, -off, rcond=None)[0]
    return float((shares * off * (lasting - (shares * lasting).sum())).sum())


def _count_dispersion(times_s: FloatArray) -> float:
    """Variance over mean of whole minutes' counts; of the gaps' squared variation in a log of a few minutes."""
    minutes = int((times_s[-1] - times_s[0]) // SECONDS_PER_MINUTE)
    if minutes < FEW_MINUTES:
        gaps = np.diff(times_s)
        return float(gaps.var() / gaps.mean() ** 2)
    counts = np.histogram(times_s - times_s[0], minutes, (0, minutes * SECONDS_PER_MINUTE))[0]
    return float(counts.var() / counts.mean())
