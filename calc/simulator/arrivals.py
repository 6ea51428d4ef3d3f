"""When requests come and how long they are: one seeded plan for one replica."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from calc.simulator.simulate import RequestPlan
from calc.units import SECONDS_PER_MINUTE
from calc.workload import (
    Closed,
    FloatArray,
    IntArray,
    LengthDistribution,
    Mmpp,
    OpenLoop,
    PerMinute,
    Recorded,
    Workload,
    sample_tokens,
)

QUESTION_TOKENS = 48
"""Three blocks of 16: a share of hits that leaves less than this of a prompt says that most prompts were seen before as
a whole and the others not at all; a question of its own would be longer."""
FOUND_STREAM = 3
"""Of random numbers: which prompts were seen before."""
STATES_AT_ONCE = 64
"""Stays drawn at a time."""
KEPT_LENGTHS, KEPT_STREAMS = 16_384, 64
"""Lengths drawn at once, and how many such draws are kept: 8 MB at most."""


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
            return _as_logged(np.array(times) - times[0], count, split, rng)


def _by_minute(unit_times: FloatArray, rates_per_s: FloatArray) -> FloatArray:
    """Times of a unit-rate process stretched so that the rate is that of each minute."""
    passed = np.concatenate(([0.0], np.cumsum(rates_per_s) * SECONDS_PER_MINUTE))
    minutes = np.arange(passed.size) * float(SECONDS_PER_MINUTE)
    cycles, rest = np.divmod(unit_times, passed[-1])
    times: FloatArray = cycles * minutes[-1] + np.interp(rest, passed, minutes)
    return times


def _by_state(unit_times: FloatArray, arrivals: Mmpp, split: float, rng: np.random.Generator) -> FloatArray:
    """Times of a unit-rate process stretched by a rate that jumps to another state after an exponential stay.

    States follow each other in turn, from one drawn by how long each lasts.
    """
    rates, stays = np.array(arrivals.rates_per_s) / split, np.array(arrivals.stays_s)
    states = rates.size
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


def _as_logged(times_s: FloatArray, count: int, split: float, rng: np.random.Generator) -> FloatArray:
    """The log's own times on one of ``split`` replicas (each arrival goes to one of them by chance), repeated when
    it ends, one mean gap between."""
    period_s = times_s[-1] + times_s[-1] / (times_s.size - 1)
    rounds = math.ceil(count * split / times_s.size) + 1
    all_s: FloatArray = (times_s + period_s * np.arange(rounds)[:, None]).ravel()
    kept = all_s[rng.random(all_s.size) < 1 / split]
    while kept.size < count:
        more = all_s[rng.random(all_s.size) < 1 / split]
        kept = np.concatenate((kept, kept[-1:].sum() + period_s + more))
    return kept[:count]


def lengths(
    workload: Workload, count: int, longest_tokens: int, seed: int, *, reuse: bool = True
) -> tuple[IntArray, IntArray, IntArray]:
    """Prompt, output and cached prompt tokens of ``count`` requests; no prompt + output exceeds ``longest_tokens``."""
    output = _drawn(workload.output_tokens, count, max(1, longest_tokens - 1), (seed, 1))
    prompt = _drawn(workload.prompt_tokens, count, longest_tokens, (seed, 2))
    prompt = np.maximum(1, np.minimum(prompt, longest_tokens - output))
    share = workload.prefix_hit_share if reuse else 0.0
    return prompt, output, _found(prompt, share, seed)


def _found(prompt: IntArray, share: float, seed: int) -> IntArray:
    """Cached tokens of each prompt: its share; where less than a question is left, the whole prompt or nothing."""
    cached: IntArray = np.minimum(np.floor(share * prompt).astype(np.int64), prompt - 1)
    if share <= 0:
        return cached
    whole = np.maximum(prompt - 1, 1)
    is_found = np.random.default_rng((seed, FOUND_STREAM)).random(prompt.size) < share * prompt / whole
    kept: IntArray = np.where(prompt - cached < QUESTION_TOKENS, np.where(is_found, prompt - 1, 0), cached)
    return kept


def _drawn(distribution: LengthDistribution, count: int, longest_tokens: int, stream: tuple[int, int]) -> IntArray:
    """The first ``count`` lengths of a stream: the same ones whatever the count."""
    if count > KEPT_LENGTHS:
        return sample_tokens(distribution, count, np.random.default_rng(stream), longest_tokens)
    return _kept(distribution, longest_tokens, stream)[:count]


@lru_cache(KEPT_STREAMS)
def _kept(distribution: LengthDistribution, longest_tokens: int, stream: tuple[int, int]) -> IntArray:
    """Kept: a sweep, a decision or a search draws the same lengths for every load and deployment."""
    tokens = sample_tokens(distribution, KEPT_LENGTHS, np.random.default_rng(stream), longest_tokens)
    tokens.flags.writeable = False
    return tokens


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
) -> RequestPlan:
    """``lead`` requests to fill the system, ``requests`` measured ones, ``tail`` more to keep the load on.

    Users of a closed loop start spread over ``service_s``; 0 = all at once. Lengths and gaps have streams of their
    own, so that two loads with one seed differ in nothing else.
    """
    rng = np.random.default_rng((seed, 0))
    count = lead + requests + tail
    closed = isinstance(workload.arrivals, Closed)
    if isinstance(workload.arrivals, Closed):
        users = max(1, min(count, math.ceil(workload.arrivals.concurrency / split)))
        start = np.sort(rng.random(users)) * service_s
    else:
        start = open_arrivals(workload.arrivals, count, split, rng)
    prompt, output, cached = lengths(workload, count, longest_tokens, seed, reuse=reuse)
    return RequestPlan(
        prompt_tokens=prompt,
        output_tokens=output,
        cached_tokens=cached,
        start_s=start,
        closed=closed,
        think_s=think_s,
        first_measured=lead,
        end_measured=lead + requests,
    )
