"""A server that only prefills, as M/G/1, M/D/1 and G/G/1, beside the same prompts simulated with one-token outputs."""

from __future__ import annotations

import math
from dataclasses import replace

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


def prefill_rows(replica: Replica, rate: float, arrival_cv2: float, seed: int) -> tuple[TextbookResult, ...]:
    """A server that only prefills, one prompt at a time, beside the simulated replica whose outputs are one token."""
    prompts = prompts_of(replica, 0.0, drawn_prompts(replica, seed))
    mean, load = prompts.mean_s, rate * prompts.mean_s
    poisson = is_poisson(replica)
    rare = load * float(prompts.steps.mean()) < SHARED_STEPS or float(prompts.steps.mean()) > 1 + SHARED_STEPS
    waits = _prefill_only(replica, seed) if load < 1 else None
    alone = msg("Prefill alone on the GPU, one prompt at a time, first come first served.")
    sharing = msg("Prompts rarely share a step.")
    what = msg("wait, outputs of one token")

    def row(code: str, title: Message, value: float | None, formula: str, more: Message, holds: bool) -> TextbookResult:
        return TextbookResult(
            code=code,
            title=title,
            value_s=value,
            utilisation_share=load,
            formula=formula,
            conditions=(alone, sharing, more),
            holds=holds and rare,
            simulated_s=None
            if waits is None
            else float(np.quantile(waits, TAIL_SHARE) if "95" in code else waits.mean()),
            simulated=what,
        )

    high = msg("Utilisation of at least {low:pct}: closer the higher it is.", low=KINGMAN_LOW_SHARE)
    in_range = KINGMAN_LOW_SHARE <= load < 1
    return (
        row(
            "prefill-mg1",
            msg("Wait for prefill, M/G/1"),
            mg1_wait_s(rate, mean, prompts.second_s2),
            "λ·E[S²] / (2(1−ρ))",
            msg("Poisson arrivals."),
            poisson,
        ),
        row(
            "prefill-md1",
            msg("Wait for prefill if all prompts were equal, M/D/1"),
            md1_wait_s(rate, mean),
            "ρ·D / (2(1−ρ))",
            msg("Poisson arrivals of equal prompts."),
            poisson and math.isclose(prompts.cv2, 0, abs_tol=1e-9),
        ),
        row(
            "prefill-kingman",
            msg("Wait for prefill with this burstiness, Kingman"),
            kingman_wait_s(rate, mean, arrival_cv2, prompts.cv2),
            "ρ/(1−ρ) · (c_a² + c_s²)/2 · E[S]",
            high,
            in_range,
        ),
        row(
            "prefill-kingman-95",
            msg("P95 of that wait, exponential tail"),
            wait_quantile_s(rate, mean, arrival_cv2, prompts.cv2, TAIL_SHARE),
            "ln(ρ/0.05) · (c_a² + c_s²)·E[S] / (2(1−ρ))",
            msg("Utilisation of at least {low:pct} and no heavy tail of prompts.", low=KINGMAN_LOW_SHARE),
            in_range and prompts.cv2 <= 1,
        ),
    )


def _prefill_only(replica: Replica, seed: int) -> FloatArray:
    """Waits of the same prompts on the same replica when every output is a single token."""
    workload = replace(replica.workload, output_tokens=Fixed(value_tokens=1), num_requests=None)
    result = run_replica(replica, workload, PREFILL_REQUESTS, seed)
    waits: FloatArray = (result.admitted_s - result.arrival_s)[result.measured]
    return waits[~np.isnan(waits)]
