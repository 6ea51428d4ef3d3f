"""Continuous batching on one replica, request by request, exact and fast.

Scheduling rules, as vLLM V1 applies them (other engines differ in detail, not in kind):

* Every step, running sequences decode first; what is left of the token budget goes to prefill, in chunks if chunked
  prefill is on, first come first served. At most ``max_seqs`` requests run.
* A request starts when blocks for its whole prompt are free beside a watermark; output takes blocks as it grows. When
  blocks run out the request admitted last is preempted: it loses its blocks, waits at the front and prefills again
  what it had (with prefix caching only what was evicted meanwhile).
* Prefix hits save computing and token budget; the tokens still occupy blocks.
* Arrivals join at the next step boundary; under asynchronous scheduling one step later, since the next step is
  already queued.

The compiled kernel leaps over steps in which nothing changes (:mod:`calc.simulator.kernel`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calc.simulator import layout as at
from calc.simulator.steps import run
from calc.workload import FloatArray, IntArray

MAX_EVENTS = 3_000_000
"""Scheduling rounds after which a simulation stops and says so: about a second of computing."""


@dataclass(frozen=True, kw_only=True)
class StepCosts:
    """Seconds of one engine step, additive; see :class:`calc.step.roofline.StepModel` for where they come from."""

    tokens_s: FloatArray
    """Token-wise kernels and everything fixed, by tokens in the step (index 0 = empty step)."""
    token_beyond_s: float = 0.0
    """Per token past the end of ``tokens_s``."""
    sequence_s: float = 0.0
    """Per running sequence and step."""
    prefill_s: float = 0.0
    """Once per admission."""
    context_s: float = 0.0
    """Per token of context read by attention."""
    window_s: float = 0.0
    """The same in sliding-window layers, where at most ``window_tokens`` count."""
    pair_s: float = 0.0
    """Per pair of prompt token and earlier token in prefill attention."""
    window_pair_s: float = 0.0
    window_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class SchedulerRules:
    """What the engine's scheduler is told."""

    max_tokens: int
    """Token budget of one step."""
    max_seqs: int
    total_blocks: int
    block_tokens: int = 16
    fixed_blocks: int = 0
    """Blocks a request holds whatever its length: states of recurrent layers."""
    watermark_blocks: int = 0
    """Kept free at admission while anything runs."""
    chunked: bool = True
    prefix_caching: bool = True
    queued_step: bool = False
    """Asynchronous scheduling: the next step is fixed while the present one runs."""
    prefill_alone: bool = False
    """Prompts are prefilled by themselves, and the decode step follows: no kernel reads weights for both at once."""
    reserves_output: bool = False
    """A request starts only when the blocks of its whole output are left, so that none is evicted."""


@dataclass(frozen=True, kw_only=True)
class RequestPlan:
    """Requests in order of arrival and when they come. For a closed loop ``start_s`` has one entry per user."""

    prompt_tokens: IntArray
    output_tokens: IntArray
    cached_tokens: IntArray
    start_s: FloatArray
    closed: bool = False
    think_s: float = 0.0
    """Closed loop: from an answer to the same user's next request."""
    first_measured: int = 0
    end_measured: int | None = None
    """Requests in [first, end) are measured; ``None`` = all."""

    @property
    def end(self) -> int:
        """One past the last measured request."""
        return int(self.prompt_tokens.size if self.end_measured is None else self.end_measured)


@dataclass(frozen=True, kw_only=True)
class SimulationResult:
    """Times of every request in seconds (nan = not reached) and totals over the measured span."""

    arrival_s: FloatArray
    admitted_s: FloatArray
    first_token_s: FloatArray
    finished_s: FloatArray
    prompt_tokens: IntArray
    output_tokens: IntArray
    measured: slice
    gap_counts: IntArray
    """Histogram of gaps between tokens over bins of equal ratio."""
    gap_mean_s: float | None
    end_s: float
    busy_s: float
    prefill_busy_s: float
    """What prefill added to the steps it shared."""
    kv_used_mean_share: float
    """While busy."""
    kv_used_max_share: float
    blocks_left: int
    """Free blocks at the end."""
    decode_tokens: int
    mixed_tokens: int
    """Of those, made in steps that also prefilled."""
    prefill_tokens: int
    preemptions: int
    events: int
    complete: bool
    """False: stopped at :data:`MAX_EVENTS` with requests unfinished."""

    def gap_quantiles(self, shares: tuple[float, ...]) -> tuple[float | None, ...]:
        """Gaps in seconds below which these shares of gaps lie; ``None`` without gaps."""
        below = np.cumsum(self.gap_counts)
        if below[-1] == 0:
            return (None,) * len(shares)
        wanted = np.array(shares) * below[-1]
        found = np.searchsorted(below, wanted)
        inside = 1 - (below[found] - wanted) / self.gap_counts[found]
        return tuple(float(gap) for gap in at.gap_edges(found + inside))


_Tables: TypeAlias = tuple[IntArray, FloatArray, IntArray, FloatArray, IntArray]


def simulate(
    plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, *, max_events: int = MAX_EVENTS
) -> SimulationResult:
    """Runs the plan on one replica. Every request must fit in the blocks alone, else it could never finish."""
    longest = int((plan.prompt_tokens + plan.output_tokens - 1).max())
    if -(-longest // rules.block_tokens) + rules.fixed_blocks > rules.total_blocks:
        raise ValueError("a request is longer than the KV pool")
    tables = _tables(plan, rules, costs, max_events)
    run(*tables)
    return _result(plan, rules, tables)


def warm_up() -> None:
    """Compiles the kernel (or loads it from disk), so that the first visitor does not wait."""
    few = np.full(2, 20, np.int64)
    plan = RequestPlan(prompt_tokens=few, output_tokens=few, cached_tokens=few * 0, start_s=np.array([0.0, 0.1]))
    simulate(
        plan,
        SchedulerRules(max_tokens=16, max_seqs=2, total_blocks=8),
        StepCosts(tokens_s=np.full(3, 0.01)),
    )


def _tables(plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, max_events: int) -> _Tables:
    """The kernel's arrays at the start; places are named in :mod:`calc.simulator.layout`."""
    count = plan.prompt_tokens.size
    requests = np.zeros((at.DONE_ORDER + 1, count), np.int64)
    for column, tokens in zip(_GIVEN, (plan.prompt_tokens, plan.output_tokens, plan.cached_tokens), strict=True):
        requests[column] = tokens
    requests[at.BASE] = at.NOT_DECODING
    times = np.empty((at.LOST_AT + 1, count))
    times[at.ARRIVAL :] = np.nan
    times[at.START, : plan.start_s.size] = plan.start_s
    queues = np.zeros((at.CROSS + 1, at.queue_size(rules.max_seqs, count)), np.int64)
    return _whole(plan, rules, costs, max_events), _seconds(plan, costs), requests, times, queues


_GIVEN = (at.PROMPT, at.OUTPUT, at.CACHED)


def _whole(plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, max_events: int) -> IntArray:
    n = np.zeros(at.RESIDUES + rules.block_tokens + at.GAP_BINS, np.int64)
    n[at.FREE] = n[at.TOTAL_BLOCKS] = rules.total_blocks
    n[at.PARTIAL] = -1
    n[at.FIRST_MEASURED] = plan.first_measured
    n[at.END_MEASURED] = plan.end
    n[at.MAX_TOKENS] = rules.max_tokens
    n[at.MAX_SEQS] = min(rules.max_seqs, rules.max_tokens)
    n[at.WATERMARK_BLOCKS] = rules.watermark_blocks
    n[at.BLOCK_TOKENS] = rules.block_tokens
    n[at.FIXED_BLOCKS] = rules.fixed_blocks
    n[at.WINDOW_TOKENS] = costs.window_tokens
    n[at.MAX_EVENTS] = max_events
    n[at.CHUNKED] = rules.chunked
    n[at.PREFIX_CACHING] = rules.prefix_caching
    n[at.QUEUED_STEP] = rules.queued_step
    n[at.PREFILL_ALONE] = rules.prefill_alone
    n[at.RESERVES_OUTPUT] = rules.reserves_output
    n[at.CLOSED] = plan.closed
    n[at.USERS] = plan.start_s.size
    n[at.LAST_COST] = costs.tokens_s.size - 1
    n[at.GAPS] = at.RESIDUES + rules.block_tokens
    return n


def _seconds(plan: RequestPlan, costs: StepCosts) -> FloatArray:
    x = np.zeros(at.TOKEN_COST + costs.tokens_s.size)
    x[at.TOKEN_COST :] = costs.tokens_s
    x[at.BEYOND_S] = costs.token_beyond_s
    x[at.THINK_S] = plan.think_s
    x[at.UNTIL_S] = np.inf
    x[at.SEQUENCE_S] = costs.sequence_s
    x[at.PREFILL_S] = costs.prefill_s
    x[at.CONTEXT_S] = costs.context_s
    x[at.WINDOW_S] = costs.window_s
    x[at.PAIR_S] = costs.pair_s
    x[at.WINDOW_PAIR_S] = costs.window_pair_s
    return x


def _result(plan: RequestPlan, rules: SchedulerRules, tables: _Tables) -> SimulationResult:
    n, x, _, times, _ = tables
    gap_counts = n[n[at.GAPS] :]
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
    )
