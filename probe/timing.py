"""Medians of repeated steps inside a time budget.

Before each repetition a large buffer is read: it pushes weights and cache out of the device's caches, as the rest of a
model would, and on a GPU gives the host time to queue the step, so that the two events enclose kernels, not launches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from calc.units import MILLI
from probe.result import Timing

if TYPE_CHECKING:
    import torch

Step: TypeAlias = "Callable[[], torch.Tensor]"

MAX_REPEATS = 30
"""More do not move a median."""
WARM_UP_REPEATS = 3
"""For lazy loading of kernels and the libraries' choice of algorithm."""
LAUNCH_BOUND_SHARE = 0.95
"""Host time to queue the repetitions over the time until they ended, from which the host set the pace."""


class Deadline:
    """The end of a run, agreed at its start."""

    def __init__(self, cap_s: float) -> None:
        self._end = time.perf_counter() + cap_s

    def share_s(self, steps_left: int) -> float:
        """An equal part of the remaining time for each of ``steps_left`` steps."""
        return max(0.0, self._end - time.perf_counter()) / max(1, steps_left)


def measure(step: Step, evict: Step, kind: str, budget_s: float) -> Timing | None:
    """Median time of ``step`` from as many repetitions as ``budget_s`` allows; ``None`` when it allows none."""
    return _on_cuda(step, evict, budget_s) if kind == "cuda" else _on_cpu(step, evict, budget_s)


def _on_cpu(step: Step, evict: Step, budget_s: float) -> Timing | None:
    begin = time.perf_counter()
    step()
    samples: list[float] = []
    while len(samples) < MAX_REPEATS and _room(begin, len(samples) + 1, budget_s):
        evict()
        start = time.perf_counter()
        step()
        samples.append(time.perf_counter() - start)
    return _timing(samples, launch_bound=False)


def _room(begin: float, runs_done: int, budget_s: float) -> bool:
    """Whether one more run, as long as those before, ends within the budget."""
    elapsed_s = time.perf_counter() - begin
    return elapsed_s * (runs_done + 1) / runs_done <= budget_s


def _on_cuda(step: Step, evict: Step, budget_s: float) -> Timing | None:
    import torch

    warm_up_s = _warm_up(step, evict)
    repeats = min(MAX_REPEATS, int((budget_s - WARM_UP_REPEATS * warm_up_s) / warm_up_s))
    if repeats < 1:
        return None
    event: Any = torch.cuda.Event  # torch gives it no types
    pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(repeats)]
    begin = time.perf_counter()
    for start, end in pairs:
        evict()
        start.record()
        step()
        end.record()
    queued_s = time.perf_counter() - begin
    torch.cuda.synchronize()
    ended_s = time.perf_counter() - begin
    samples = [start.elapsed_time(end) * MILLI for start, end in pairs]
    return _timing(samples, launch_bound=queued_s > LAUNCH_BOUND_SHARE * ended_s)


def _warm_up(step: Step, evict: Step) -> float:
    """Seconds of one repetition once everything is loaded."""
    import torch

    for _ in range(WARM_UP_REPEATS):
        begin = time.perf_counter()
        evict()
        step()
        torch.cuda.synchronize()
        last_s = time.perf_counter() - begin
    return last_s


def _timing(samples: list[float], *, launch_bound: bool) -> Timing | None:
    if not samples:
        return None
    median_s = statistics.median(samples)
    spread_share = None
    if len(samples) > 1:
        lower, _, upper = statistics.quantiles(samples, n=4, method="inclusive")
        spread_share = (upper - lower) / median_s
    return Timing(median_s=median_s, spread_share=spread_share, repeats=len(samples), launch_bound=launch_bound)
