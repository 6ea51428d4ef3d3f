"""A closed loop as a fixed point: so many users, each sending again when answered."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calc.latency import LatencyReport
from calc.messages import msg
from calc.simulator.replica import Replica
from calc.textbook.prompts import drawn_prompts, prompts_of
from calc.textbook.results import TextbookResult

ROUNDS = 100
"""Of the fixed point; each halves what is left of the error, or better."""
NEAR_FULL = 0.25
"""So near the largest batch, chance decides who waits for a place."""
QUEUED_STEPS, NEXT_STEP = 1.5, 0.5
"""Steps that an answer's user waits for on average: half of the one in progress, and with asynchronous scheduling the
one already queued."""


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """One user's round in a closed loop, means in seconds."""

    ttft_s: float
    tpot_s: float
    e2e_s: float


def closed_cycle(replica: Replica, users: float, seed: int = 1) -> Cycle:
    """Fixed point of N users on one replica: X = N / E2E, batch = X·(own prefill + decode), step = t(batch).

    Users beyond the largest batch wait for a place: E2E = N / λ(largest batch).
    """
    model, demand, most = replica.model, replica.demand, replica.limits.max_batch
    drawn = drawn_prompts(replica, seed)
    gaps, batch = demand.output - 1, min(users, most)
    ttft_s = tpot_s = e2e_s = 0.0
    for _ in range(ROUNDS):
        prompts = prompts_of(replica, batch, drawn)
        plain_s = model.decode_s(batch, batch * demand.held)
        steps, starts = float(prompts.steps.mean()), batch / demand.output
        tpot_s = plain_s + starts * max(0.0, prompts.mean_s - steps * plain_s)
        others = max(0.0, 1 - 1 / max(users, 1.0))
        ttft_s = prompts.mean_s + others * tpot_s * (QUEUED_STEPS if model.queued_step else NEXT_STEP) + model.http_s
        e2e_s = ttft_s + gaps * tpot_s
        running = min(most, max(1.0, users * (prompts.mean_s + gaps * tpot_s) / e2e_s))
        if math.isclose(running, batch, rel_tol=1e-6):
            break
        batch = (batch + running) / 2
    if users > most:
        waited_s = max(0.0, users * demand.output * tpot_s / most - e2e_s)
        ttft_s, e2e_s = ttft_s + waited_s, e2e_s + waited_s
    return Cycle(ttft_s=ttft_s, tpot_s=tpot_s, e2e_s=e2e_s)


def closed_rows(replica: Replica, users: float, latency: LatencyReport, seed: int) -> tuple[TextbookResult, ...]:
    """The round of a user as TPOT, TTFT and E2E, beside the simulated means."""
    cycle = closed_cycle(replica, users, seed)
    full = users / replica.limits.max_batch
    conditions = (
        msg("Users who send again at once."),
        msg("Clearly fewer or more users than the largest batch of {batch:count}.", batch=replica.limits.max_batch),
    )
    rows = (
        ("closed-tpot", msg("Time per output token, fixed point"), cycle.tpot_s, latency.tpot.mean_s, msg("mean TPOT")),
        ("closed-ttft", msg("TTFT, fixed point"), cycle.ttft_s, latency.ttft.mean_s, msg("mean TTFT")),
        ("closed-e2e", msg("E2E, fixed point: X = N / E2E"), cycle.e2e_s, latency.e2e.mean_s, msg("mean E2E")),
    )
    formulas = (
        "t(b) + X·t·(t_mixed − t)·n_steps, b = X·(E2E − waiting)",
        "own steps + residual step + queued step + (N − b_max)·E2E/b_max + ingress",
        "TTFT + (E[o] − 1)·TPOT",
    )
    return tuple(
        TextbookResult(
            code=code,
            title=title,
            value_s=value,
            utilisation_share=min(1.0, full),
            formula=formula,
            conditions=conditions,
            holds=abs(full - 1) > NEAR_FULL,
            simulated_s=simulated,
            simulated=what,
        )
        for (code, title, value, simulated, what), formula in zip(rows, formulas, strict=True)
    )
