"""Continuous batching on one replica, request by request, exact and fast.

Scheduling rules, as vLLM V1 applies them (other engines differ in detail, not in kind):

* Every step, running sequences decode first; what is left of the token budget goes to prefill, in chunks if chunked
  prefill is on, first come first served. At most ``max_seqs`` requests run.
* A request starts when blocks for its whole prompt are free beside a watermark; output takes blocks as it grows. When
  blocks run out the request admitted last is preempted: it loses its blocks, waits at the front and prefills again
  what it had (with prefix caching only what was evicted meanwhile).
* Prefix hits save computing and token budget; the tokens still occupy blocks. Where requests share prefixes by group,
  the cache decides what is found (:mod:`calc.simulator.prefixes`), and running requests hold a prefix once.
* Arrivals join at the next step boundary; under asynchronous scheduling one step later, since the next step is
  already queued.
* Request classes: lower priorities start first, first come first served within one; a class at its quota of running
  requests is passed over. When blocks run out, the request served last by (priority, arrival) is preempted, as with
  vLLM's ``--scheduling-policy priority``.
* Clients: one that cancels takes its output tokens up to that moment. One without a first token after ``patience_s``
  is gone at the next step boundary: what its request held is free. It may come back ``retry_after_s`` later as a new
  attempt at the end of the line.
* Swap: a preempted request's written blocks move out, and back before it goes on; both lengthen the step they are
  moved in. Nothing is computed again.
* Fetch: the part of a prompt that lies in a tier is read before its rest is prefilled, as vLLM's connectors do:
  the request takes blocks for its whole prompt, others go on meanwhile, and it starts before anybody else once fetched
  (:mod:`calc.simulator.fetch`). A preempted request fetches again what the pool has lost of it.
* Speculation: every step verifies ``verified_tokens`` per sequence (cost and token budget) and takes blocks for them.
  A request gains the same fraction of tokens in each step, its ``pace_tokens``; one chunk of tokens is streamed per
  step, so gaps are between chunks.
* Static batching: when nothing runs, up to ``max_seqs`` waiting requests start together, prefill in one step whatever
  the token budget, and reserve blocks for prompt + ``reserved_tokens``. Whoever is done keeps its slot, its blocks and
  its computing until the longest is done. Patience ends with the start.

The compiled kernel leaps over steps in which nothing changes (:mod:`calc.simulator.kernel`).
"""

from __future__ import annotations

from calc.simulator import layout as at
from calc.simulator.contract import (
    BoolArray,
    ClassRule,
    FetchTier,
    PrefixPlan,
    RequestPlan,
    SchedulerRules,
    SimulationResult,
    StepCosts,
)
from calc.simulator.steps import Run, kernel
from calc.simulator.tables import Tables, is_joint, is_managed, is_paced, tables_of
from calc.workload import IntArray

__all__ = [
    "MAX_EVENTS",
    "BoolArray",
    "ClassRule",
    "FetchTier",
    "PrefixPlan",
    "RequestPlan",
    "SchedulerRules",
    "SimulationResult",
    "StepCosts",
    "kernel_for",
    "result_of",
    "simulate",
    "tables_of",
]

MAX_EVENTS = 3_000_000
"""Scheduling rounds after which a simulation stops and says so: about a second of computing."""


def simulate(
    plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, *, max_events: int = MAX_EVENTS
) -> SimulationResult:
    """Runs the plan on one replica. Every request must fit in the blocks alone, else it could never finish."""
    longest = int((plan.prompt_tokens + plan.output_tokens - 1).max())
    if -(-longest // rules.block_tokens) + rules.fixed_blocks > rules.total_blocks:
        raise ValueError("a request is longer than the KV pool")
    tables = tables_of(plan, rules, costs, max_events)
    kernel_for(plan, rules)(*tables)
    return result_of(plan, rules, tables)


def kernel_for(plan: RequestPlan, rules: SchedulerRules) -> Run:
    """The compiled kernel that knows what this plan and these rules use, and no more."""
    return kernel(managed=is_managed(plan, rules), paced=is_paced(plan, rules), joint=is_joint(plan, rules))


def result_of(plan: RequestPlan, rules: SchedulerRules, tables: Tables) -> SimulationResult:
    """What a kernel left in its arrays."""
    n, x, requests, times, _ = tables
    managed = is_managed(plan, rules)
    gap_counts = n[n[at.GAPS] : n[at.GAPS] + at.GAP_BINS]
    gaps, busy_s = int(gap_counts.sum()), float(x[at.BUSY_S])
    return SimulationResult(
        arrival_s=times[at.ARRIVAL],
        admitted_s=times[at.ADMITTED],
        first_token_s=times[at.FIRST],
        finished_s=times[at.FINISH],
        prompt_tokens=plan.prompt_tokens,
        output_tokens=plan.output_tokens,
        measured=slice(plan.first_measured, plan.end),
        gap_counts=gap_counts,
        gap_mean_s=float(x[at.GAP_S]) / gaps if gaps else None,
        end_s=float(x[at.NOW]),
        busy_s=busy_s,
        prefill_busy_s=float(x[at.PREFILL_BUSY_S]),
        kv_used_mean_share=float(x[at.USED_BLOCK_S]) / busy_s / rules.total_blocks if busy_s else 0.0,
        kv_used_max_share=float(n[at.MOST_USED]) / rules.total_blocks,
        blocks_left=int(n[at.FREE]),
        decode_tokens=int(n[at.DECODE_TOKENS]),
        mixed_tokens=int(n[at.MIXED_TOKENS]),
        prefill_tokens=int(n[at.PREFILL_TOKENS]),
        preemptions=int(n[at.PREEMPTIONS]),
        events=int(n[at.EVENTS]),
        complete=bool(n[at.MEASURED] == plan.end - plan.first_measured),
        class_index=plan.class_index,
        cancelled=plan.cancelled,
        gave_up_s=times[at.GAVE_UP] if plan.patience_s is not None else None,
        attempts=requests[at.ATTEMPT] + 1 if plan.patience_s is not None else None,
        first_arrival_s=times[at.FIRST_ARRIVAL] if managed else None,
        fetch_s=times[at.FETCH_WAIT] if managed and rules.tiers else None,
        hit_share=hit_share(n),
    )


def hit_share(n: IntArray) -> float | None:
    """Found of the prompt tokens asked for, by one scheduler or several; ``None`` where requests share no prefixes."""
    asked = int(n[..., at.ASKED_TOKENS].sum())
    return float(n[..., at.HIT_TOKENS].sum()) / asked if asked else None
