"""A server that only prefills, as M/G/1, M/D/1 and G/G/1, beside the same prompts simulated with one-token outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from calc.messages import Message, msg
from calc.queueing import kingman_wait_s, md1_wait_s, mg1_wait_s, wait_quantile_s
from calc.simulator.replica import Replica, run_replica
from calc.textbook.prompts import drawn_prompts, is_poisson, prompts_of
from calc.textbook.results import TextbookResult
from calc.workload import Fixed, FloatArray

KINGMAN_LOW_SHARE = 0.5
"""Below this utilisation Kingman's formula is no longer close."""
SHARED_STEPS = 0.3
"""Prompts that arrive while one is prefilled, up to which they rarely share a step."""
PREFILL_REQUESTS = 2000
"""Prompts of the simulated server that only prefills."""
TAIL_SHARE = 0.95
ALONE = (
    msg("Prefill alone on the GPU, one prompt at a time, first come first served."),
    msg("Prompts rarely share a step."),
)


@dataclass(frozen=True, kw_only=True)
class _Row:
    """What is said of one formula, whatever the load."""

    code: str
    title: Message
    formula: str
    condition: Message


_MG1 = _Row(
    code="prefill-mg1",
    title=msg("Wait for prefill, M/G/1"),
    formula="λ·E[S²] / (2(1−ρ))",
    condition=msg("Poisson arrivals."),
)
_MD1 = _Row(
    code="prefill-md1",
    title=msg("Wait for prefill if all prompts were equal, M/D/1"),
    formula="ρ·D / (2(1−ρ))",
    condition=msg("Poisson arrivals of equal prompts."),
)
_KINGMAN = _Row(
    code="prefill-kingman",
    title=msg("Wait for prefill with this burstiness, Kingman"),
    formula="ρ/(1−ρ) · (c_a² + c_s²)/2 · E[S]",
    condition=msg("Utilisation of at least {low:pct}: closer the higher it is.", low=KINGMAN_LOW_SHARE),
)
_TAIL = _Row(
    code="prefill-kingman-95",
    title=msg("P95 of that wait, exponential tail"),
    formula="ln(ρ/0.05) · (c_a² + c_s²)·E[S] / (2(1−ρ))",
    condition=msg("Utilisation of at least {low:pct} and no heavy tail of prompts.", low=KINGMAN_LOW_SHARE),
)


def prefill_rows(replica: Replica, rate: float, arrival_cv2: float, seed: int) -> tuple[TextbookResult, ...]:
    """A server that only prefills, one prompt at a time, beside the simulated replica whose outputs are one token."""
    prompts = prompts_of(replica, 0.0, drawn_prompts(replica, seed))
    mean, load, cv2 = prompts.mean_s, rate * prompts.mean_s, prompts.cv2
    poisson, in_range = is_poisson(replica), KINGMAN_LOW_SHARE <= load < 1
    lone = load < SHARED_STEPS or float(prompts.steps.mean()) > 1 + SHARED_STEPS
    waits = _prefill_only(replica, seed) if load < 1 else None
    equal = math.isclose(cv2, 0, abs_tol=1e-9)
    formulas = (
        (_MG1, mg1_wait_s(rate, mean, prompts.second_s2), poisson),
        (_MD1, md1_wait_s(rate, mean), poisson and equal),
        (_KINGMAN, kingman_wait_s(rate, mean, arrival_cv2, cv2), in_range),
        (_TAIL, wait_quantile_s(rate, mean, arrival_cv2, cv2, TAIL_SHARE), in_range and cv2 <= 1),
    )
    return tuple(
        TextbookResult(
            code=row.code,
            title=row.title,
            value_s=value,
            utilisation_share=load,
            formula=row.formula,
            conditions=(*ALONE, row.condition),
            holds=holds and lone,
            simulated_s=None if waits is None else _simulated(waits, tail=row is _TAIL),
            simulated=msg("P95 of the wait, outputs of one token")
            if row is _TAIL
            else msg("wait, outputs of one token"),
        )
        for row, value, holds in formulas
    )


def _simulated(waits: FloatArray, *, tail: bool) -> float:
    return float(np.quantile(waits, TAIL_SHARE) if tail else waits.mean())


def _prefill_only(replica: Replica, seed: int) -> FloatArray:
    """Waits of the same prompts on the same replica when every output is a single token."""
    workload = replace(replica.workload, output_tokens=Fixed(value_tokens=1), num_requests=None)
    result = run_replica(replica, workload, PREFILL_REQUESTS, seed)
    waits: FloatArray = (result.admitted_s - result.arrival_s)[result.measured]
    return waits[~np.isnan(waits)]
