"""Short requests against long ones: what each quarter of prompts meets, and behind whose prefill it waits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.anatomy.run import Run
from calc.evidence import Percentiles
from calc.order_statistics import percentiles_of
from calc.simulator.simulate import SimulationResult
from calc.workload import FloatArray, IntArray

QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True, kw_only=True)
class Quarter:
    """The requests whose prompts have about the same length; times in seconds."""

    shortest_tokens: int
    longest_tokens: int
    requests: int
    prompt_share: float
    """Of all prompt tokens."""
    ttft: Percentiles
    tpot: Percentiles
    e2e: Percentiles
    queue_s: float
    """Mean wait from arrival to the first step that works on the request."""
    behind_s: tuple[float, ...]
    """Of that, while a prompt of each quarter is prefilled; several at once share the time."""

    @property
    def other_s(self) -> float:
        """Of the wait, while nothing is prefilled: the end of a decode step, a free slot, free blocks."""
        return self.queue_s - sum(self.behind_s)


def quarters(run: Run) -> tuple[Quarter, ...]:
    """Quarters of the requests by prompt length, shortest first; fewer where many prompts are equally long."""
    edges = np.unique(np.quantile(run.prompt_tokens, QUARTERS))
    group = np.searchsorted(edges, run.prompt_tokens)
    everyone = np.searchsorted(edges, run.result.prompt_tokens)
    kinds = np.unique(group)
    behind = _behind(run.result, everyone, kinds)
    finished = ~np.isnan(run.result.finished_s[run.result.measured])
    waited = behind[:, run.result.measured][:, finished]
    return tuple(_quarter(run, group == kind, waited) for kind in kinds)


def _quarter(run: Run, chosen: FloatArray, waited: FloatArray) -> Quarter:
    times, prompt = run.times, run.prompt_tokens
    gaps = times.mean_gap_s[chosen]
    return Quarter(
        shortest_tokens=int(prompt[chosen].min()),
        longest_tokens=int(prompt[chosen].max()),
        requests=int(chosen.sum()),
        prompt_share=float(prompt[chosen].sum() / prompt.sum()),
        ttft=percentiles_of(np.sort(times.ttft_s[chosen])),
        tpot=percentiles_of(np.sort(gaps[gaps > 0])),
        e2e=percentiles_of(np.sort(times.e2e_s[chosen])),
        queue_s=float(times.queue_s[chosen].mean()),
        behind_s=tuple(float(seconds[chosen].mean()) for seconds in waited),
    )


def _behind(result: SimulationResult, group: IntArray, kinds: IntArray) -> FloatArray:
    """Seconds of each request's wait during which prompts of each kind were prefilled (kinds × requests).

    n_k(t) prompts of kind k are between admission and first token; a moment counts for kind k by n_k / n.
    """
    served = ~np.isnan(result.first_token_s)
    begin, end, kind = result.admitted_s[served], result.first_token_s[served], group[served]
    moments = np.concatenate((begin, end))
    order = np.argsort(moments, kind="stable")
    at = moments[order]
    change = np.concatenate((np.ones(begin.size), -np.ones(end.size)))[order]
    which = np.concatenate((kind, kind))[order]
    number = np.array([np.cumsum(np.where(which == one, change, 0.0)) for one in kinds])
    share = number / np.maximum(number.sum(axis=0), 1.0)
    passed = np.concatenate((np.zeros((kinds.size, 1)), np.cumsum(share[:, :-1] * np.diff(at), axis=1)), axis=1)
    arrived, admitted = result.arrival_s, np.nan_to_num(result.admitted_s)
    return np.array([np.interp(admitted, at, row) - np.interp(arrived, at, row) for row in passed])
