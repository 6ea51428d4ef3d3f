"""What the simulator is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calc.simulator.layout import gap_edges
from calc.workload import FloatArray, IntArray

BoolArray: TypeAlias = NDArray[np.bool_]


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
class ClassRule:
    """How one class of requests is served."""

    priority: int = 0
    """Lower is served first."""
    max_running: int | None = None
    """Most that run (or fetch) at once; ``None`` = no quota."""


@dataclass(frozen=True, kw_only=True)
class FetchTier:
    """One place outside the GPU from which cached KV is read."""

    token_s: float
    """Seconds per token of a fetch alone."""
    latency_s: float = 0.0
    concurrency: int = 1
    """Fetches under way at once; they share the bandwidth."""


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
    classes: tuple[ClassRule, ...] = ()
    """Empty = all requests alike."""
    tiers: tuple[FetchTier, ...] = ()
    swap_block_s: float | None = None
    """Seconds to move a preempted request's block out, or back in; ``None`` = preempted requests recompute."""
    reserved_tokens: int | None = None
    """Static batching: output tokens reserved for each; ``None`` = continuous batching."""
    verified_tokens: int = 1
    """Tokens each sequence puts into a step: 1 + drafted ones."""

    @property
    def slots(self) -> int:
        """Most requests that run at once: the token budget must hold what they verify."""
        return max(1, min(self.max_seqs, self.max_tokens // self.verified_tokens))


@dataclass(frozen=True, kw_only=True)
class PrefixPlan:
    """Which requests begin alike, and what caches remember at the start."""

    group: IntArray
    """Of each request, counted from 0."""
    shared_blocks: IntArray
    """Whole blocks of its prefix."""
    count: int
    remembered: tuple[tuple[IntArray, IntArray, IntArray], ...] = ()
    """For each scheduler in turn group, end in the free queue and blocks of the prefixes it still keeps."""


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
    class_index: IntArray | None = None
    """Place in the rules' classes; ``None`` = all in the first."""
    cancelled: BoolArray | None = None
    """Whether the client goes away after the request's output tokens, before its answer was complete."""
    fetch_tokens: IntArray | None = None
    """Prompt tokens beyond the cached ones that lie in a tier."""
    fetch_tier: IntArray | None = None
    pace_tokens: FloatArray | None = None
    """Tokens gained per step; ``None`` = one."""
    patience_s: float | None = None
    """A client without a first token after this long goes away; ``None`` = waits for ever."""
    retries: int = 0
    retry_after_s: float = 0.0
    groups: PrefixPlan | None = None
    """Whose prefixes caches find, beside ``cached_tokens``."""

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
    """False: stopped at its most rounds with requests unfinished."""
    class_index: IntArray | None = None
    cancelled: BoolArray | None = None
    """Whose client went away while tokens came; ``None`` = nobody's."""
    gave_up_s: FloatArray | None = None
    """When the last attempt was given up (nan = answered); ``None`` = all clients are patient."""
    attempts: IntArray | None = None
    """Tries of each request; ``arrival_s`` is that of the last."""
    first_arrival_s: FloatArray | None = None
    fetch_s: FloatArray | None = None
    """Seconds each request waited for a tier, part of the time between its admission and its first token."""
    schedulers: int = 1
    """Simulated together; all figures are theirs."""
    hit_share: float | None = None
    """Prompt tokens found in the cache, where requests share prefixes by group."""
    transfer_s: FloatArray | None = None
    """Split prefill: of each request from the end of prefill until its KV is on the decode replica."""
    prefill_kv_used_mean_share: float | None = None
    prefill_kv_used_max_share: float | None = None
    """Of prefill replicas."""

    def gap_quantiles(self, shares: tuple[float, ...]) -> tuple[float | None, ...]:
        """Gaps in seconds below which these shares of gaps lie; ``None`` without gaps."""
        below = np.cumsum(self.gap_counts)
        if below[-1] == 0:
            return (None,) * len(shares)
        wanted = np.array(shares) * below[-1]
        found = np.searchsorted(below, wanted)
        inside = 1 - (below[found] - wanted) / self.gap_counts[found]
        return tuple(float(gap) for gap in gap_edges(found + inside))
