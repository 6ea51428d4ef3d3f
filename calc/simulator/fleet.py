"""Several replicas at once: routing between them, and prefill handed over to decode replicas.

Rules:

* ``random`` and ``round-robin`` look at nothing; ``least-loaded`` counts the requests sent to a scheduler and not
  answered yet; ``prefix-aware`` prefers the one whose cache holds the request's prefix unless it is overloaded.
* Split prefill, as vLLM does it with its NIXL connector and proxy: a prefill replica computes the prompt (one token
  of output, thrown away) and keeps the blocks; the proxy then sends the request to a decode replica, which takes blocks
  for it at a step boundary, first come first served, and only then fetches the KV: a hand-shake, then the bytes, one
  transfer of a prefill replica after the other. When they are there the prefill replica frees its blocks and the decode
  replica computes the last prompt token: the first token the user sees. A preempted request is computed again on the
  decode replica.

Replicas move together in order of time (:mod:`calc.simulator.fleet_steps`), each as exactly as alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calc.simulator import fleet_layout as fleet_at
from calc.simulator import layout as at
from calc.simulator.fleet_steps import fleet_kernel
from calc.simulator.simulate import MAX_EVENTS, RequestPlan, SchedulerRules, SimulationResult, StepCosts, hit_share
from calc.simulator.tables import is_managed, is_paced, numbers_of, remind, seconds_of, width_of
from calc.workload import FloatArray, IntArray

POLICIES = ("random", "round-robin", "least-loaded", "prefix-aware")
MAX_PLACES = 16_000_000
"""Most schedulers × requests simulated together: each has a column of 200 bytes, touched only when used."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Schedulers that share a load. DP ranks count as schedulers."""

    schedulers: int
    """That answer: all, or the decode side."""
    routing: str = "random"
    prefill_schedulers: int = 0
    """That only prefill; 0 = not split."""
    handover_s: float = 0.0
    token_move_s: float = 0.0
    """Seconds to move the KV of one prompt token from a prefill to a decode scheduler."""
    seed: int = 1


_Tables: TypeAlias = tuple[
    IntArray,
    FloatArray,
    IntArray,
    FloatArray,
    IntArray,
    IntArray,
    FloatArray,
    IntArray,
    FloatArray,
    IntArray,
    FloatArray,
    IntArray,
    FloatArray,
]


def simulate_fleet(
    plan: RequestPlan,
    fleet: Fleet,
    rules: SchedulerRules,
    costs: StepCosts,
    *,
    prefill_rules: SchedulerRules | None = None,
    max_events: int = MAX_EVENTS,
) -> SimulationResult:
    """Runs the plan, the load of all schedulers together. Every request must fit in the blocks of one alone."""
    tables = _tables(plan, fleet, rules, prefill_rules or rules, costs, max_events)
    fleet_kernel(managed=is_managed(plan, rules), paced=is_paced(plan, rules))(*tables)
    return _result(plan, fleet, rules, prefill_rules or rules, tables)


def _tables(
    plan: RequestPlan,
    fleet: Fleet,
    rules: SchedulerRules,
    prefill_rules: SchedulerRules,
    costs: StepCosts,
    max_events: int,
) -> _Tables:
    count, answering = plan.prompt_tokens.size, fleet.schedulers
    everybody = answering + fleet.prefill_schedulers
    numbers = [numbers_of(plan, own, costs, max_events) for own in (rules, prefill_rules)]
    for one in numbers:
        one[at.FIRST_MEASURED], one[at.END_MEASURED] = fleet_at.NOT_YET, 2 * fleet_at.NOT_YET
        one[at.CLOSED], one[at.USERS] = at.SENT_BACK, 0
    if fleet.prefill_schedulers:
        numbers[0][at.GROUPS] = 0
        numbers[1][at.HOLDS] = 1
    n = np.stack([numbers[i >= answering] for i in range(everybody)])
    x = np.tile(seconds_of(plan, rules, costs), (everybody, 1))
    x[:, at.THINK_S] = 0.0
    r = np.zeros((everybody, at.JOINT_ROWS, count), np.int64)
    t = np.empty((everybody, at.ALL_TIMES, count))
    width = max(width_of(rules, count), width_of(prefill_rules, count))
    q = np.zeros((everybody, at.ALL_QUEUES, width), np.int64)
    for i in range(answering if fleet.prefill_schedulers else 0, everybody):
        remind(plan, n[i], r[i], i)
    d = np.zeros((fleet_at.SCHEDULER_TIMES, everybody))
    d[: fleet_at.LINK_FREE] = np.inf
    return (
        n,
        x,
        r,
        t,
        q,
        _fleet_numbers(plan, fleet, max_events),
        np.array([plan.think_s, fleet.handover_s, fleet.token_move_s]),
        _asked(plan, fleet),
        _begins(plan),
        np.zeros((fleet_at.SCHEDULER_ROWS, everybody), np.int64),
        d,
        np.zeros((everybody, count), np.int64),
        np.zeros((fleet_at.EVENT_ROWS, 3 * count + at.SPARE)),
    )


def _fleet_numbers(plan: RequestPlan, fleet: Fleet, max_events: int) -> IntArray:
    f = np.zeros(fleet_at.FLEET_NUMBERS, np.int64)
    f[fleet_at.POOL] = fleet.schedulers
    f[fleet_at.PREFILLERS] = fleet.prefill_schedulers
    f[fleet_at.POLICY] = POLICIES.index(fleet.routing)
    f[fleet_at.USERS_GIVEN] = plan.start_s.size
    f[fleet_at.FIRST_WANTED] = plan.first_measured
    f[fleet_at.END_WANTED] = plan.end
    f[fleet_at.WANTED] = plan.end - plan.first_measured
    f[fleet_at.RETURNING] = plan.closed
    f[fleet_at.WATCHED] = plan.closed or fleet.prefill_schedulers > 0
    f[fleet_at.MAX_ROUNDS] = max_events
    return f


def _asked(plan: RequestPlan, fleet: Fleet) -> IntArray:
    g = np.zeros((fleet_at.ASKED_ROWS, plan.prompt_tokens.size), np.int64)
    g[fleet_at.ASKED_PROMPT] = plan.prompt_tokens
    g[fleet_at.ASKED_OUTPUT] = plan.output_tokens
    g[fleet_at.ASKED_CACHED] = plan.cached_tokens
    if plan.groups is not None:
        g[fleet_at.ASKED_GROUP] = plan.groups.group
        g[fleet_at.ASKED_SHARED] = plan.groups.shared_blocks
    given = (
        (fleet_at.ASKED_CLASS, plan.class_index),
        (fleet_at.ASKED_FETCH, plan.fetch_tokens),
        (fleet_at.ASKED_TIER, plan.fetch_tier),
    )
    for row, values in given:
        if values is not None:
            g[row] = values
    g[fleet_at.ASKED_PACE] = 1 << at.FINE_BITS
    if plan.pace_tokens is not None:
        g[fleet_at.ASKED_PACE] = np.maximum(1 << at.FINE_BITS, np.rint(plan.pace_tokens * (1 << at.FINE_BITS)))
    if fleet.routing == "random":
        g[fleet_at.LUCK] = np.random.default_rng((fleet.seed, 2)).integers(1 << 62, size=plan.prompt_tokens.size)
    return g


def _begins(plan: RequestPlan) -> FloatArray:
    w = np.full((fleet_at.TIME_ROWS, plan.prompt_tokens.size), np.nan)
    w[fleet_at.BEGIN, : plan.start_s.size] = plan.start_s
    return w


def _result(
    plan: RequestPlan, fleet: Fleet, rules: SchedulerRules, prefill_rules: SchedulerRules, tables: _Tables
) -> SimulationResult:
    n, x, _, t, _, f, _, g, w, *_ = tables
    own = slice(0, fleet.schedulers)
    first, finished = (_times(t, row, g[fleet_at.PLACE], g[fleet_at.LOCAL], w) for row in (at.FIRST, at.FINISH))
    split = fleet.prefill_schedulers > 0
    entry = (fleet_at.ENTRY, fleet_at.ENTRY_LOCAL) if split else (fleet_at.PLACE, fleet_at.LOCAL)
    admitted = _times(t, at.ADMITTED, g[entry[0]], g[entry[1]], w)
    if split:
        unanswered = np.isnan(w[fleet_at.LANDED])
        first[unanswered] = finished[unanswered] = np.nan
    gap_counts: IntArray = n[own, int(n[0, at.GAPS]) : int(n[0, at.GAPS]) + at.GAP_BINS].sum(axis=0)
    gaps = int(gap_counts.sum())
    entered = slice(fleet.schedulers, None) if split else own
    return SimulationResult(
        arrival_s=w[fleet_at.CAME],
        admitted_s=admitted,
        first_token_s=first,
        finished_s=finished,
        prompt_tokens=plan.prompt_tokens,
        output_tokens=plan.output_tokens,
        class_index=plan.class_index,
        cancelled=plan.cancelled,
        measured=slice(plan.first_measured, plan.end),
        gap_counts=gap_counts,
        gap_mean_s=float(x[own, at.GAP_S].sum()) / gaps if gaps else None,
        end_s=float(np.nanmax(finished, initial=0.0)),
        busy_s=float(x[:, at.BUSY_S].sum()),
        prefill_busy_s=float(x[:, at.PREFILL_BUSY_S].sum()),
        kv_used_mean_share=_used(x[own], rules),
        kv_used_max_share=float(n[own, at.MOST_USED].max()) / rules.total_blocks,
        blocks_left=int(n[:, at.FREE].min()),
        decode_tokens=int(n[own, at.DECODE_TOKENS].sum()),
        mixed_tokens=int(n[own, at.MIXED_TOKENS].sum()),
        prefill_tokens=int(n[:, at.PREFILL_TOKENS].sum()),
        preemptions=int(n[own, at.PREEMPTIONS].sum()),
        events=int(n[:, at.EVENTS].sum()),
        complete=bool(f[fleet_at.COMPLETED] == f[fleet_at.WANTED]),
        schedulers=fleet.schedulers,
        hit_share=hit_share(n[entered]),
        transfer_s=w[fleet_at.LANDED] - w[fleet_at.HANDED] if split else None,
        prefill_kv_used_mean_share=_used(x[entered], prefill_rules) if split else None,
        prefill_kv_used_max_share=float(n[entered, at.MOST_USED].max()) / prefill_rules.total_blocks if split else None,
    )


def _used(x: FloatArray, rules: SchedulerRules) -> float:
    busy_s = float(x[:, at.BUSY_S].sum())
    return float(x[:, at.USED_BLOCK_S].sum()) / busy_s / rules.total_blocks if busy_s else 0.0


def _times(t: FloatArray, row: int, scheduler: IntArray, local: IntArray, w: FloatArray) -> FloatArray:
    """Of requests that came; nan for the others."""
    found: FloatArray = t[scheduler, row, local]
    return np.where(np.isnan(w[fleet_at.CAME]), np.nan, found)
