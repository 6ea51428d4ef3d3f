"""The headline about batching: requests that join and leave at every step, against batches that end as one."""

from __future__ import annotations

import math
from dataclasses import replace

from calc.claims.capacity import OPT_LENGTH_TOKENS, SEED, opt_13b
from calc.claims.claim import Claim, Shelf, Yours
from calc.claims.compute import eager
from calc.evidence import Provenance
from calc.latency import predict
from calc.messages import msg
from calc.scenario import Scenario
from calc.step.efficiency import Efficiency, efficiency_of
from calc.workload import Empirical, Fixed, OpenLoop, Workload

REQUESTS = 1000
PROMPT_TOKENS = 512
MEAN_OUTPUT_TOKENS = 128
MOST_OUTPUT_TOKENS = 1536
STATIC_BATCH = 8
BURST_PER_S = 1000.0
"""All requests within a second: the backlog is what is measured."""
STEPS = 200
"""Quantiles of the output lengths given."""


def _exponential() -> Empirical:
    """Exponential output lengths, cut at the most."""
    shares = [step / STEPS for step in range(STEPS)] + [1.0]
    tokens = [min(MOST_OUTPUT_TOKENS, max(1.0, -MEAN_OUTPUT_TOKENS * math.log(1 - share))) for share in shares[:-1]]
    return Empirical(quantiles=tuple(zip(shares, [*tokens, MOST_OUTPUT_TOKENS], strict=True)))


def _backlog(shelf: Shelf) -> Scenario:
    load = Workload(
        prompt_tokens=Fixed(value_tokens=PROMPT_TOKENS),
        output_tokens=_exponential(),
        arrivals=OpenLoop(kind="constant", rate_per_s=BURST_PER_S),
        num_requests=REQUESTS,
        http=False,
    )
    return Scenario(deployment=replace(opt_13b(shelf), max_model_len_tokens=OPT_LENGTH_TOKENS), workload=load)


def static(scenario: Scenario, batch: int | None = None) -> Scenario:
    """The same in batches that start together and wait for their longest, of ``batch`` or as many as may run."""
    deployment = scenario.deployment
    serving = replace(deployment.serving, batching="static")
    return replace(
        scenario, deployment=replace(deployment, serving=serving, max_num_seqs=batch or deployment.max_num_seqs)
    )


def _naive(scenario: Scenario) -> Scenario:
    """Batches of eight. A framework without a pool takes all of the GPU's memory and grows the cache as tokens come:
    eight of the longest fit (8 · 2,048 · 0.8 MB beside 26 GB of weights)."""
    room = replace(scenario.deployment, kv_tokens=STATIC_BATCH * OPT_LENGTH_TOKENS)
    return static(replace(scenario, deployment=room), STATIC_BATCH)


def _rate(scenario: Scenario, efficiency: Efficiency | None = None) -> float:
    """Output tokens per second over the whole backlog."""
    return predict(scenario, seed=SEED, efficiency=efficiency).output_tokens_per_s


def continuous_batching(shelf: Shelf) -> Claim:
    """Up to 23 times the throughput of naive static batching."""
    scenario = _backlog(shelf)
    naive = _rate(_naive(scenario), eager(efficiency_of(scenario.deployment.gpu)))
    ours, eight = _rate(scenario), _rate(_naive(scenario))
    return Claim(
        code="continuous-batching",
        title=msg("Continuous against naive static batching: throughput"),
        claimed=(8.0, 23.0),
        computed=ours / naive,
        span=(ours / eight, ours / naive),
        conditions=msg(
            "OPT-13B on one A100 40GB, {count:count} requests of {prompt:tok}, exponential output up to {most:tok}, "
            "against batches of {batch:count}.",
            count=REQUESTS,
            prompt=PROMPT_TOKENS,
            most=MOST_OUTPUT_TOKENS,
            batch=STATIC_BATCH,
        ),
        working=msg(
            "{ours:toks} in continuous batches as large as the pool allows; {eight:toks} in batches of {batch:count} "
            "that wait for their longest; {naive:toks} where an eager framework runs them.",
            ours=ours,
            eight=eight,
            batch=STATIC_BATCH,
            naive=naive,
        ),
        assumed=msg(
            "Mean output of {mean:tok}; overheads of the eager framework; a present engine.", mean=MEAN_OUTPUT_TOKENS
        ),
        recalled=True,
        source=msg("Anyscale, continuous batching, June 2023: 8 times by batching alone, 23 with vLLM"),
        counter=msg("With outputs of equal length a static batch waits for nobody: only its size is left to gain."),
        provenance=Provenance.SIMULATED.value,
    )


BACKLOG = 400


def continuous_batching_on_yours(scenario: Scenario) -> Yours:
    """A backlog of this load's requests, both ways, on one replica with the engine's own limits."""
    deployment = replace(
        scenario.deployment, replicas=1, serving=replace(scenario.deployment.serving, batching="continuous")
    )
    burst = OpenLoop(kind="constant", rate_per_s=BURST_PER_S)
    load = replace(scenario.workload, arrivals=burst, num_requests=BACKLOG)
    one = replace(scenario, deployment=deployment, workload=load)
    ours, batches = _rate(one), _rate(static(one))
    return Yours(
        value=ours / batches,
        statement=msg(
            "A backlog of {count:count} requests of this load: {ours:toks} against {batches:toks} in static batches as "
            "large as the pool allows.",
            count=BACKLOG,
            ours=ours,
            batches=batches,
        ),
    )
