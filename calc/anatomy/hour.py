"""An hour played through minute by minute: what changing rates do that their mean does not show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np

from calc.errors import InputError
from calc.evidence import Percentiles
from calc.memory import MemoryReport
from calc.messages import Message, msg
from calc.order_statistics import percentiles_of, quantile
from calc.request_times import Times
from calc.scenario import Scenario
from calc.simulator.arrivals import plan_requests
from calc.simulator.fleet import MAX_PLACES
from calc.simulator.replica import MAX_SIMULATED, Replica, prepare, run_plan
from calc.simulator.simulate import RequestPlan, SchedulerRules, SimulationResult
from calc.units import SECONDS_PER_MINUTE
from calc.workload import Arrivals, Closed, FloatArray, OpenLoop, PerMinute, Recorded, Slo

HOUR_MINUTES = 60
MAX_MINUTES = 24 * 60
"""A day: the longest list of rates played."""
SPREAD = 6.0
"""Standard deviations above the mean count drawn at first; a rate that jumps may need more, then the draw doubles."""
HALF_FILLED = 0.5
"""Of the last block of a request, on average."""
SHORTEST_S = 1e-9
"""Output of a single token takes no decode time."""
Series: TypeAlias = tuple[float | None, ...]
"""One value a minute."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """All requests of the played time together."""

    ttft: Percentiles
    e2e: Percentiles
    queue_s: float
    """Mean wait before the first step."""
    attained_share: float | None
    """Requests within every target; ``None`` without a target."""
    requests: int
    preemptions: int
    complete: bool
    """Whether the simulation came to its end."""


@dataclass(frozen=True, kw_only=True)
class HourReport:
    """Minute by minute, requests counted in the minute of their arrival; times in seconds, ``None`` = nobody came."""

    offered_per_s: tuple[float, ...]
    """Arrivals of the whole deployment, as many times those of one replica as it has."""
    ttft_p50_s: Series
    ttft_p95_s: Series
    ttft_p99_s: Series
    e2e_p50_s: Series
    e2e_p95_s: Series
    e2e_p99_s: Series
    waiting: tuple[float, ...]
    """Mean requests waiting on all replicas."""
    running: tuple[float, ...]
    kv_usage_share: tuple[float, ...]
    """Mean; with preemptions an upper bound."""
    over: tuple[bool, ...]
    """Whether a target is missed at the SLO's percentile; ITL as the mean gap of each request."""
    whole: Played
    even: Played
    """The same time at the mean rate, Poisson."""
    notes: tuple[Message, ...] = ()

    @property
    def minutes_over(self) -> int:
        """Minutes in which a target is missed."""
        return sum(self.over)

    @property
    def understated(self) -> float | None:
        """How many times longer requests wait than at the mean rate."""
        return self.whole.queue_s / self.even.queue_s if self.even.queue_s > 0 else None


def play(
    scenario: Scenario, *, arrivals: Arrivals | None = None, memory: MemoryReport | None = None, seed: int = 1
) -> HourReport:
    """Simulates every request of an hour on one replica, from an idle start; ``arrivals`` in place of the scenario's.

    A list of rates that is longer than an hour is played to its end, a shorter one repeats; a log is played as long as
    it is. More than :data:`MAX_SIMULATED` requests per replica are cut, with a note.
    """
    coming = arrivals or scenario.workload.arrivals
    if isinstance(coming, Closed):
        raise InputError(msg("a closed loop has no rates to play through: choose arrivals with a rate."))
    replica = prepare(scenario, memory, seed)
    minutes = _minutes(coming)
    plan = _plan(replica, coming, minutes, seed)
    played_minutes = minutes if plan.end < _most(replica) else math.ceil(float(plan.start_s[-1]) / SECONDS_PER_MINUTE)
    steady = OpenLoop(kind="poisson", rate_per_s=coming.rate_per_s)
    even = _run(replica, _plan(replica, steady, played_minutes, seed), steady, seed)
    return _report(scenario.slo, replica, _run(replica, plan, coming, seed), even, played_minutes, minutes)


def _minutes(arrivals: Arrivals) -> int:
    if isinstance(arrivals, PerMinute):
        return min(max(HOUR_MINUTES, len(arrivals.rates_per_s)), MAX_MINUTES)
    if isinstance(arrivals, Recorded):
        span_s = arrivals.times_s[-1] - arrivals.times_s[0]
        return min(max(1, math.ceil(span_s / SECONDS_PER_MINUTE)), MAX_MINUTES)
    return HOUR_MINUTES


def _plan(replica: Replica, arrivals: Arrivals, minutes: int, seed: int) -> RequestPlan:
    """The requests of one replica that arrive in so many minutes."""
    horizon_s = float(minutes * SECONDS_PER_MINUTE)
    if isinstance(arrivals, Recorded):  # a log ends with its last arrival and does not begin again
        horizon_s = min(horizon_s, arrivals.times_s[-1] - arrivals.times_s[0])
    most = _most(replica)
    mean = arrivals.rate_per_s / _scale(replica) * horizon_s if not isinstance(arrivals, Closed) else 1.0
    count = min(most, math.ceil(mean + SPREAD * math.sqrt(mean)) + 1)
    while True:
        plan = plan_requests(
            replace(replica.workload, arrivals=arrivals, num_requests=None),
            requests=count,
            lead=0,
            tail=0,
            split=_scale(replica),
            longest_tokens=replica.settings.max_model_len_tokens,
            service_s=0.0,
            think_s=0.0,
            seed=seed,
            reuse=replica.settings.prefix_caching,
            tiers=replica.options.tiers,
            speculation=replica.options.speculation,
        )
        inside = int(np.searchsorted(plan.start_s, horizon_s, side="right"))
        if inside < count or count == most:
            return _first(plan, max(1, inside))
        count = min(most, 2 * count)


def _run(replica: Replica, plan: RequestPlan, arrivals: Arrivals, seed: int) -> SimulationResult:
    return run_plan(replica, plan, replace(replica.workload, arrivals=arrivals, num_requests=None), seed)


def _scale(replica: Replica) -> float:
    """Deployments in one simulation: its schedulers are simulated together, or one stands for all."""
    return 1.0 if replica.fleet is not None else float(replica.split)


def _most(replica: Replica) -> int:
    """Requests simulated at most."""
    return MAX_SIMULATED if replica.fleet is None else min(MAX_SIMULATED, MAX_PLACES // replica.split)


def _first(plan: RequestPlan, count: int) -> RequestPlan:
    """Only the first requests of a plan, whatever columns it has."""
    whole = plan.prompt_tokens.size
    columns = {field.name: getattr(plan, field.name) for field in fields(plan)}
    cut: dict[str, Any] = {
        name: column[:count]
        for name, column in columns.items()
        if isinstance(column, np.ndarray) and column.shape[:1] == (whole,)
    }
    return replace(plan, **cut, end_measured=count)


def _report(
    slo: Slo, replica: Replica, result: SimulationResult, even: SimulationResult, minutes: int, asked_minutes: int
) -> HourReport:
    scale = _scale(replica)
    times = Times.of(result, replica.model.http_s, replica.first_token_steps)
    minute = np.minimum((times.arrival_s / SECONDS_PER_MINUTE).astype(np.int64), minutes - 1)
    ttft, e2e = _by_minute(times.ttft_s, minute, minutes), _by_minute(times.e2e_s, minute, minutes)
    itl = _by_minute(times.mean_gap_s, minute, minutes)
    seconds = np.arange(minutes * SECONDS_PER_MINUTE, dtype=np.float64) + 0.5
    return HourReport(
        offered_per_s=_offered(result, minutes, scale),
        **{f"ttft_p{rank}_s": _at(ttft, rank / 100) for rank in (50, 95, 99)},
        **{f"e2e_p{rank}_s": _at(e2e, rank / 100) for rank in (50, 95, 99)},
        waiting=_mean_by_minute(_between(result.arrival_s, _left_queue(result), seconds) * scale),
        running=_mean_by_minute(_between(result.admitted_s, result.finished_s, seconds) * scale),
        kv_usage_share=_mean_by_minute(kv_usage(result, replica.rules, seconds)),
        over=_over(slo, ttft, itl, e2e),
        whole=_played(slo, times, result),
        even=_even(slo, replica, even),
        notes=_notes(minutes, asked_minutes, result),
    )


def _notes(minutes: int, asked_minutes: int, result: SimulationResult) -> tuple[Message, ...]:
    notes = []
    if minutes < asked_minutes:
        notes.append(
            msg(
                "Only the first {minutes:count} minutes are played: a replica gets more than {limit:count} requests.",
                minutes=minutes,
                limit=MAX_SIMULATED,
            )
        )
    if result.preemptions:
        notes.append(msg("Requests were preempted: KV usage by minute counts their blocks as kept, an upper bound."))
    if not result.complete:
        notes.append(msg("The simulation was stopped early: figures are of the requests finished until then."))
    return tuple(notes)


def _even(slo: Slo, replica: Replica, result: SimulationResult) -> Played:
    return _played(slo, Times.of(result, replica.model.http_s, replica.first_token_steps), result)


def _played(slo: Slo, times: Times, result: SimulationResult) -> Played:
    return Played(
        ttft=percentiles_of(np.sort(times.ttft_s)),
        e2e=percentiles_of(np.sort(times.e2e_s)),
        queue_s=float(times.queue_s.mean()) if times.queue_s.size else 0.0,
        attained_share=times.attained(slo),
        requests=times.ttft_s.size,
        preemptions=result.preemptions,
        complete=result.complete,
    )


def _by_minute(values: FloatArray, minute: FloatArray, minutes: int) -> list[FloatArray]:
    """The values of each minute, rising."""
    order = np.lexsort((values, minute))
    ends = np.searchsorted(minute[order], np.arange(1, minutes))
    return np.split(values[order], ends)


def _at(by_minute: Sequence[FloatArray], share: float) -> Series:
    return tuple(quantile(values, share) for values in by_minute)


def _over(slo: Slo, *by_minute: Sequence[FloatArray]) -> tuple[bool, ...]:
    targets = (slo.ttft_s, slo.itl_s, slo.e2e_s)
    return tuple(
        any(
            target is not None and values.size > 0 and (quantile(values, slo.percentile_share) or 0.0) > target
            for values, target in zip(minute, targets, strict=True)
        )
        for minute in zip(*by_minute, strict=True)
    )


def _offered(result: SimulationResult, minutes: int, scale: float) -> tuple[float, ...]:
    came = result.arrival_s if result.first_arrival_s is None else result.first_arrival_s
    came = came[~np.isnan(came)]
    counted = np.histogram(came, minutes, (0, minutes * SECONDS_PER_MINUTE))[0]
    return tuple(float(number) * scale / SECONDS_PER_MINUTE for number in counted)


def _mean_by_minute(by_second: FloatArray) -> tuple[float, ...]:
    return tuple(map(float, by_second.reshape(-1, SECONDS_PER_MINUTE).mean(axis=1)))


def _left_queue(result: SimulationResult) -> FloatArray:
    """When each request began to run, or its client gave up."""
    if result.gave_up_s is None:
        return result.admitted_s
    return np.where(np.isnan(result.admitted_s), result.gave_up_s, result.admitted_s)


def _between(begin_s: FloatArray, end_s: FloatArray, at_s: FloatArray) -> FloatArray:
    """How many requests are between their two times at each moment; one that never ends counts on."""
    begun = np.searchsorted(np.sort(begin_s[~np.isnan(begin_s)]), at_s, side="right")
    ended = np.searchsorted(np.sort(end_s[~np.isnan(end_s)]), at_s, side="right")
    return (begun - ended).astype(np.float64)


def kv_usage(result: SimulationResult, rules: SchedulerRules, at_s: FloatArray) -> FloatArray:
    """Share of the KV pool taken at each moment (0-1): whole prompts from admission on, then a token a step.

    Read off the times of each request, so that any moment can be asked; a request that was preempted counts as if it
    had kept its blocks.
    """
    known = ~np.isnan(result.finished_s)
    admitted, first, finished = (times[known] for times in (result.admitted_s, result.first_token_s, result.finished_s))
    prompt = result.prompt_tokens[known] + np.float64(rules.fixed_blocks + HALF_FILLED) * rules.block_tokens
    speed: FloatArray = (result.output_tokens[known] - 1) / np.maximum(finished - first, SHORTEST_S)
    held: FloatArray = (
        _sum_until(admitted, prompt, at_s)
        - _sum_until(finished, prompt, at_s)
        + at_s * (_sum_until(first, speed, at_s) - _sum_until(finished, speed, at_s))
        - (_sum_until(first, speed * first, at_s) - _sum_until(finished, speed * first, at_s))
    )
    pool_tokens = rules.total_blocks * rules.block_tokens * result.schedulers
    share: FloatArray = np.clip(held / pool_tokens, 0.0, 1.0)
    return share


def _sum_until(times_s: FloatArray, amounts: FloatArray, at_s: FloatArray) -> FloatArray:
    """Sum of the amounts whose time has come, at each moment."""
    order = np.argsort(times_s)
    summed = np.concatenate(([0.0], np.cumsum(amounts[order])))
    found: FloatArray = summed[np.searchsorted(times_s[order], at_s, side="right")]
    return found
