"""When requests come and how long they are: one seeded plan for one replica."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calc.serving import Tier
from calc.simulator.contract import RequestPlan
from calc.simulator.draws import draw, draw_fetches, draw_paces
from calc.units import SECONDS_PER_MINUTE
from calc.workload import Closed, FloatArray, IntArray, Mmpp, OpenLoop, PerMinute, Recorded, Workload

STATES_AT_ONCE = 64
"""Stays drawn at a time."""
FELT_STAYS = 20
"""More stays than this between two requests, and only the mean rate is felt."""


def open_arrivals(
    arrivals: OpenLoop | PerMinute | Mmpp | Recorded, count: int, split: float, rng: np.random.Generator
) -> FloatArray:
    """``count`` arrival times in seconds on one of ``split`` replicas, rising from about 0.

    Poisson and gamma keep their coefficient of variation on each replica (random routing of Poisson is Poisson);
    ``per-minute`` is Poisson inside each minute and repeats when the list ends.
    """
    match arrivals:
        case OpenLoop(kind="constant", rate_per_s=rate):
            return np.arange(count, dtype=np.float64) * (split / rate)
        case OpenLoop(kind="gamma", rate_per_s=rate, cv=cv):
            return np.cumsum(rng.gamma(cv**-2, split / rate * cv**2, count), dtype=np.float64)
        case OpenLoop(rate_per_s=rate):
            return np.cumsum(rng.exponential(split / rate, count))
        case PerMinute(rates_per_s=rates):
            return _by_minute(np.cumsum(rng.exponential(1.0, count)), np.array(rates) / split)
        case Mmpp():
            return _by_state(np.cumsum(rng.exponential(1.0, count)), arrivals, split, rng)
        case Recorded(times_s=times):
            return _as_logged(np.array(times) - times[0], count, split, rng)[0]


def _by_minute(unit_times: FloatArray, rates_per_s: FloatArray) -> FloatArray:
    """Times of a unit-rate process stretched so that the rate is that of each minute."""
    passed = np.concatenate(([0.0], np.cumsum(rates_per_s) * SECONDS_PER_MINUTE))
    minutes = np.arange(passed.size) * float(SECONDS_PER_MINUTE)
    cycles, rest = np.divmod(unit_times, passed[-1])
    times: FloatArray = cycles * minutes[-1] + np.interp(rest, passed, minutes)
    return times


def _by_state(unit_times: FloatArray, arrivals: Mmpp, split: float, rng: np.random.Generator) -> FloatArray:
    """Times of a unit-rate process stretched by a rate that jumps to another state after an exponential stay.

    States follow each other in turn, from one drawn by how long each lasts. Where so many of them pass between two
    requests that only their mean is felt, arrivals are Poisson at the mean rate.
    """
    rates, stays = np.array(arrivals.rates_per_s) / split, np.array(arrivals.stays_s)
    states = rates.size
    if unit_times[-1] / (arrivals.rate_per_s / split) > FELT_STAYS * unit_times.size * stays.mean():
        return unit_times * (split / arrivals.rate_per_s)
    first = int(rng.choice(states, p=stays / stays.sum()))
    passed, clock = [0.0], [0.0]
    while passed[-1] < unit_times[-1]:
        order = (first + np.arange(STATES_AT_ONCE)) % states
        spent = rng.exponential(stays[order])
        passed.extend(passed[-1] + np.cumsum(spent * rates[order]))
        clock.extend(clock[-1] + np.cumsum(spent))
        first = (first + STATES_AT_ONCE) % states
    times: FloatArray = np.interp(unit_times, passed, clock)
    return times


def _as_logged(times_s: FloatArray, count: int, split: float, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """The log's own times on one of ``split`` replicas (each arrival goes to one of them by chance), repeated when it
    ends, one mean gap between; and each arrival's place in the log."""
    period_s = times_s[-1] + times_s[-1] / (times_s.size - 1)
    rounds = math.ceil(count * split / times_s.size) + 1
    kept = np.flatnonzero(rng.random(rounds * times_s.size) < 1 / split)
    while kept.size < count:
        more = np.flatnonzero(rng.random(rounds * times_s.size) < 1 / split)
        kept = np.concatenate((kept, rounds * times_s.size + more))
        rounds *= 2
    cycles, places = np.divmod(kept[:count], times_s.size)
    times: FloatArray = times_s[places] + period_s * cycles
    return times, places.astype(np.int64)


def lengths(
    workload: Workload, count: int, longest_tokens: int, seed: int, *, reuse: bool = True
) -> tuple[IntArray, IntArray, IntArray]:
    """Prompt, output and cached prompt tokens of ``count`` requests; no prompt + output exceeds ``longest_tokens``."""
    drawn = draw(workload, count, longest_tokens, seed, reuse=reuse)
    return drawn.prompt, drawn.output, drawn.cached


@dataclass(frozen=True, kw_only=True)
class Speculation:
    """Tokens drafted and accepted per step."""

    drafted_tokens: int
    accepted_tokens: float


def plan_requests(
    workload: Workload,
    *,
    requests: int,
    lead: int,
    tail: int,
    split: float,
    longest_tokens: int,
    service_s: float,
    think_s: float,
    seed: int,
    reuse: bool = True,
    tiers: tuple[Tier, ...] = (),
    speculation: Speculation | None = None,
) -> RequestPlan:
    """``lead`` requests to fill the system, ``requests`` measured ones, ``tail`` more to keep the load on.

    Users of a closed loop start spread over ``service_s``; 0 = all at once. Lengths and gaps have streams of their
    own, so that two loads with one seed differ in nothing else.
    """
    count = lead + requests + tail
    start, logged = _starts(workload, count, split, service_s, np.random.default_rng((seed, 0)))
    drawn = draw(workload, count, longest_tokens, seed, reuse=reuse, logged=logged)
    fetches = bool(tiers) and workload.offload_hit_share > 0 and reuse
    tokens, tier = draw_fetches(workload, drawn, tiers, seed) if fetches else (None, None)
    clients = workload.clients
    return RequestPlan(
        prompt_tokens=drawn.prompt,
        output_tokens=drawn.output,
        cached_tokens=drawn.cached,
        start_s=start,
        closed=isinstance(workload.arrivals, Closed),
        think_s=think_s,
        first_measured=lead,
        end_measured=lead + requests,
        class_index=drawn.class_index,
        cancelled=drawn.cancelled,
        fetch_tokens=tokens,
        fetch_tier=tier,
        pace_tokens=None
        if speculation is None
        else draw_paces(drawn.output, speculation.accepted_tokens, speculation.drafted_tokens, seed),
        patience_s=clients.patience_s,
        retries=clients.retries if clients.patience_s is not None else 0,
        retry_after_s=clients.retry_after_s,
    )


def _starts(
    workload: Workload, count: int, split: float, service_s: float, rng: np.random.Generator
) -> tuple[FloatArray, IntArray | None]:
    """When requests (or a closed loop's users) start, and the places of logged ones in their log."""
    match workload.arrivals:
        case Closed(concurrency=concurrency):
            users = max(1, min(count, math.ceil(concurrency / split)))
            return np.sort(rng.random(users)) * service_s, None
        case Recorded() as log:
            return _as_logged(np.array(log.times_s) - log.times_s[0], count, split, rng)
        case _:
            return open_arrivals(workload.arrivals, count, split, rng), None
