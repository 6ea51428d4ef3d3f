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

The compiled kernel leaps over steps in which nothing changes (:mod:`calc.simulate_kernel`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calc.simulate_kernel import (
    BIN_RATIO,
    GAP_BINS,
    NOT_DECODING,
    RULES,
    SHORTEST_GAP_S,
    STATE,
    Book,
)
from calc.simulate_steps import UNTOUCHED, run
from calc.workload import FloatArray, IntArray

MAX_EVENTS = 5_000_000
"""Scheduling rounds after which a simulation stops and says so: a few seconds of computing."""
SPARE = 64
"""Extra room of the kernel's queues."""


@dataclass(frozen=True, kw_only=True)
class StepCosts:
    """Seconds of one engine step, additive; see :class:`calc.roofline.StepModel` for where they come from."""

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
    watermark_blocks: int = 0
    """Kept free at admission while anything runs."""
    chunked: bool = True
    prefix_caching: bool = True
    queued_step: bool = False
    """Asynchronous scheduling: the next step is fixed while the present one runs."""


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
        at = np.searchsorted(below, wanted)
        inside = 1 - (below[at] - wanted) / self.gap_counts[at]
        return tuple(float(gap) for gap in SHORTEST_GAP_S * BIN_RATIO ** (at + inside))


def simulate(
    plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, *, max_events: int = MAX_EVENTS
) -> SimulationResult:
    """Runs the plan on one replica. Every request must fit in the blocks alone, else it could never finish."""
    longest = int((plan.prompt_tokens + plan.output_tokens - 1).max())
    if -(-longest // rules.block_tokens) > rules.total_blocks:
        raise ValueError("a request is longer than the KV pool")
    book = _book(plan, rules, costs)
    rules_row = _rules_row(plan, rules, costs, max_events)
    state = np.zeros(1, STATE)
    state["free"] = rules.total_blocks
    state["partial"] = -1
    run(rules_row, state, book)
    return _result(plan, rules, book, state[0])


def warm_up() -> None:
    """Compiles the kernel (or loads it from disk), so that the first visitor does not wait."""
    few = np.full(2, 20, np.int64)
    plan = RequestPlan(prompt_tokens=few, output_tokens=few, cached_tokens=few * 0, start_s=np.array([0.0, 0.1]))
    simulate(
        plan,
        SchedulerRules(max_tokens=16, max_seqs=2, total_blocks=8),
        StepCosts(tokens_s=np.full(3, 0.01)),
    )


def _book(plan: RequestPlan, rules: SchedulerRules, costs: StepCosts) -> Book:
    count = plan.prompt_tokens.size
    unseen = np.full((4, count), np.nan)
    queue = 2 * min(rules.max_seqs, count) + SPARE
    integers = np.zeros((4, count), np.int64)
    return Book(
        prompt=plan.prompt_tokens,
        output=plan.output_tokens,
        cached=plan.cached_tokens,
        start=plan.start_s,
        token_cost_s=costs.tokens_s,
        arrival=unseen[0],
        admitted=unseen[1],
        first=unseen[2],
        finish=unseen[3],
        generated=integers[0],
        base=np.full(count, NOT_DECODING),
        stack_at=np.full(count, -1),
        lost_at=np.full(count, UNTOUCHED),
        lost_tokens=integers[1],
        lost_blocks=integers[2],
        lost_older=integers[3],
        back=np.empty(count if plan.closed else 0),
        front=np.zeros(queue, np.int64),
        ready=np.zeros(queue, np.int64),
        stack=np.zeros(queue, np.int64),
        done=np.zeros(queue, np.int64),
        cross=np.zeros(queue if costs.window_tokens else 1, np.int64),
        residues=np.zeros(rules.block_tokens, np.int64),
        gaps=np.zeros(GAP_BINS, np.int64),
    )


def _rules_row(plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, max_events: int) -> Any:
    row = np.zeros(1, RULES)
    fields = {
        "first_measured": plan.first_measured,
        "end_measured": plan.prompt_tokens.size if plan.end_measured is None else plan.end_measured,
        "max_tokens": rules.max_tokens,
        "max_seqs": min(rules.max_seqs, rules.max_tokens),
        "total_blocks": rules.total_blocks,
        "watermark_blocks": rules.watermark_blocks,
        "block_tokens": rules.block_tokens,
        "window_tokens": costs.window_tokens,
        "max_events": max_events,
        "chunked": rules.chunked,
        "prefix_caching": rules.prefix_caching,
        "queued_step": rules.queued_step,
        "closed": plan.closed,
        "think_s": plan.think_s,
        "sequence_s": costs.sequence_s,
        "prefill_s": costs.prefill_s,
        "context_s": costs.context_s,
        "window_s": costs.window_s,
        "pair_s": costs.pair_s,
        "window_pair_s": costs.window_pair_s,
        "beyond_s": costs.token_beyond_s,
    }
    for name, value in fields.items():
        row[name] = value
    return row


def _result(plan: RequestPlan, rules: SchedulerRules, book: Book, s: Any) -> SimulationResult:
    end = plan.prompt_tokens.size if plan.end_measured is None else plan.end_measured
    busy_s, decode_tokens = float(s["busy_s"]), int(s["decode_tokens"])
    gaps = int(book.gaps.sum())
    return SimulationResult(
        arrival_s=book.arrival,
        admitted_s=book.admitted,
        first_token_s=book.first,
        finished_s=book.finish,
        prompt_tokens=plan.prompt_tokens,
        output_tokens=plan.output_tokens,
        measured=slice(plan.first_measured, end),
        gap_counts=book.gaps,
        gap_mean_s=float(s["gap_s"]) / gaps if gaps else None,
        end_s=float(s["now"]),
        busy_s=busy_s,
        prefill_busy_s=float(s["prefill_busy_s"]),
        kv_used_mean_share=float(s["used_block_s"]) / busy_s / rules.total_blocks if busy_s else 0.0,
        kv_used_max_share=float(s["most_used"]) / rules.total_blocks,
        blocks_left=int(s["free"]),
        decode_tokens=decode_tokens,
        mixed_tokens=int(s["mixed_tokens"]),
        prefill_tokens=int(s["prefill_tokens"]),
        preemptions=int(s["preemptions"]),
        events=int(s["events"]),
        complete=bool(s["measured"] == end - plan.first_measured),
    )
