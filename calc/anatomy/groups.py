"""Requests told apart: short against long prompts, classes; what each meets, and behind whose prefill it waits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.anatomy.run import Run
from calc.evidence import Percentiles
from calc.order_statistics import percentiles_of
from calc.request_times import answered
from calc.simulator.simulate import BoolArray, SimulationResult
from calc.workload import FloatArray, IntArray

QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Requests of one kind: prompts of about the same length, or one class; times in seconds."""

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
    """Of that, while a prompt of each group is prefilled; several at once share the time."""

    @property
    def other_s(self) -> float:
        """Of the wait, while nothing is prefilled: the end of a decode step, a free slot, free blocks."""
        return self.queue_s - sum(self.behind_s)


def quarters(run: Run) -> tuple[Group, ...]:
    """Quarters of the requests by prompt length, shortest first; fewer where many prompts are equally long."""
    edges = np.unique(np.quantile(run.prompt_tokens, QUARTERS))
    return tuple(_told_apart(run, np.searchsorted(edges, run.result.prompt_tokens)).values())


def classes(run: Run) -> tuple[tuple[str, Group], ...]:
    """Each class of the load of which requests were answered, by name; empty where all requests are alike."""
    index, named = run.result.class_index, run.replica.workload.classes
    if index is None or not named:
        return ()
    return tuple((named[kind].name, group) for kind, group in _told_apart(run, index).items())


def _told_apart(run: Run, everyone: IntArray) -> dict[int, Group]:
    """Groups by the kind of every request of the run; those of which no measured request was answered are left out."""
    result = run.result
    done = answered(result)
    kind = everyone[result.measured][done]
    kinds = np.unique(kind)
    waited = _behind(result, everyone, kinds)[:, result.measured][:, done]
    return {int(one): _group(run, kind == one, waited) for one in kinds}


def _group(run: Run, chosen: BoolArray, waited: FloatArray) -> Group:
    times, prompt = run.times, run.prompt_tokens
    gaps = times.mean_gap_s[chosen]
    return Group(
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
