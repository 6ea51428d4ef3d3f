"""The whole engine under arrivals: the first token as a sum, slots as servers, decode as processor sharing."""

from __future__ import annotations

import numpy as np

from calc.latency import LatencyReport
from calc.messages import msg
from calc.queueing import batch_quantile, mmc_wait_s, vacation_wait_s
from calc.simulator.replica import Replica
from calc.simulator.stability import service_s, steady_batch
from calc.textbook.prompts import batch_shares, drawn_prompts, is_poisson, prompts_of
from calc.textbook.results import FirstToken, TextbookResult

TAIL_SHARE = 0.95


def first_token_of(replica: Replica, rate: float, seed: int) -> FirstToken | None:
    """M/G/1 with vacations: the server prefills prompts in turn; while none waits it decodes, step by step."""
    if rate >= replica.limits.max_rate_per_s:
        return None
    model, demand = replica.model, replica.demand
    batch = steady_batch(model, demand, replica.limits, rate)
    prompts = prompts_of(replica, batch, drawn_prompts(replica, seed))
    busy = 1 - float(batch_shares(replica, rate)[0][0])
    decode_s = model.decode_s(max(batch, 1.0), max(batch, 1.0) * demand.held)
    wait_s = vacation_wait_s(rate, prompts.mean_s, prompts.second_s2, decode_s, busy * decode_s**2)
    if wait_s is None:
        return None
    load, steps = rate * prompts.mean_s, float(prompts.steps.mean())
    residual_s = (1 - load) * busy * decode_s / 2 + rate * prompts.second_s2 / (2 * steps)
    return FirstToken(
        residual_s=min(residual_s, wait_s),
        behind_s=max(0.0, wait_s - residual_s),
        queued_s=busy * decode_s if model.queued_step else 0.0,
        own_s=prompts.mean_s,
        ingress_s=model.http_s,
        own_steps=steps,
    )


def whole_rows(
    replica: Replica, rate: float, first: FirstToken | None, latency: LatencyReport | None
) -> tuple[TextbookResult, ...]:
    """The whole engine: first token as a sum, and slots as servers."""
    below = msg("Load below the stability limit, KV pool not full.")
    servers = max(1, int(min(replica.rules.max_seqs, replica.pool_tokens / replica.demand.held)))
    stay_s = service_s(replica.model, replica.demand, float(servers))
    poisson = is_poisson(replica)
    return (
        TextbookResult(
            code="first-token",
            title=msg("TTFT between decode steps, M/G/1 with vacations"),
            value_s=None if first is None else first.total_s,
            utilisation_share=rate / replica.limits.max_rate_per_s,
            formula="residual step + λ·E[S²]/(2(1−ρ)) + queued step + own steps + ingress",
            conditions=(msg("Poisson arrivals."), msg("Prompts rarely share a step."), below),
            holds=poisson and first is not None,
            simulated_s=None if latency is None else latency.ttft.mean_s,
            simulated=msg("mean TTFT"),
        ),
        TextbookResult(
            code="slots-mmc",
            title=msg("Wait for a slot at most, M/M/c with {servers:count} slots", servers=servers),
            value_s=mmc_wait_s(rate, stay_s, servers),
            utilisation_share=rate * stay_s / servers,
            formula="C(c, λ·E[S]) · E[S] / (c − λ·E[S])",
            conditions=(
                msg("Poisson arrivals."),
                msg("Exponential service times."),
                msg("Service as slow as with all slots taken: an upper bound at low load."),
            ),
            holds=poisson,
            simulated_s=None if latency is None or first is None else max(0.0, latency.queue_s - first.waiting_s),
            simulated=msg("mean wait less that for steps"),
        ),
    )


def decode_rows(replica: Replica, rate: float, latency: LatencyReport | None) -> tuple[TextbookResult, ...]:
    """Decode as processor sharing: the step a token waits for depends on how many run, as one of them sees it."""
    shares, step_s = batch_shares(replica, rate)
    seen = shares * np.arange(shares.size)
    load = rate / replica.limits.max_rate_per_s
    holds = is_poisson(replica) and load < 1
    tail = float(step_s[batch_quantile(seen, TAIL_SHARE)])
    conditions = (msg("Poisson arrivals."), msg("Nobody waits: load below the stability limit."))
    return (
        TextbookResult(
            code="decode-ps",
            title=msg("Time per output token, processor sharing"),
            value_s=float((seen * step_s).sum() / seen.sum()),
            utilisation_share=load,
            formula="Σ n·π(n)·t(n) / Σ n·π(n), π(n) ~ Π λ·E[o]·t(k)/k",
            conditions=conditions,
            holds=holds,
            simulated_s=None if latency is None else latency.tpot.mean_s,
            simulated=msg("mean TPOT"),
        ),
        TextbookResult(
            code="decode-ps-95",
            title=msg("P95 of TPOT, from the P95 of requests running"),
            value_s=tail,
            utilisation_share=load,
            formula="t(n₉₅), Σ_{n≤n₉₅} n·π(n) ≥ 0.95 · Σ n·π(n)",
            conditions=(*conditions, msg("Short outputs: long ones average over many batches and vary less.")),
            holds=holds,
            simulated_s=None if latency is None else latency.tpot.p95_s,
            simulated=msg("P95 of TPOT"),
        ),
    )
