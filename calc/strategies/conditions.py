"""When each strategy is worth using, judged on the user's own scenario with its numbers."""

from __future__ import annotations

import numpy as np

from calc.cache.block_size import prefill_gain_share
from calc.cache.waste import waste_shares
from calc.judge.conditions import Truth
from calc.judge.decision import Verdict
from calc.judge.thresholds import THRESHOLDS
from calc.messages import Message, msg
from calc.offload.fetch import Offload
from calc.offload.links import gpus_sharing, host_link
from calc.simulator.replica import Replica
from calc.strategies.strategy import Ground, Judged
from calc.strategies.switches import LARGE_BLOCK_TOKENS, SMALL_BLOCK_TOKENS

REUSE_SHARE = THRESHOLDS["reuse_low_share"].value
WASTE_SHARE = THRESHOLDS["waste_share"].value
KV_FULL_SHARE = THRESHOLDS["kv_full_share"].value
PREFILL_SHARE = THRESHOLDS["prefill_share"].value
MIXED_SHARE = THRESHOLDS["mixed_step_share"].value
LONG_CONTEXT_TOKENS = 4096
"""From here on a blog's rule of thumb calls a context long (under 4 thousand tokens compute again, over 8 offload)."""
NOTABLE_GAIN_SHARE = 0.01
WEIGHTS_READ_SHARE = 0.5
"""Of a step's memory reads, from which narrower weights shorten it by a quarter or more."""
SPREAD_RATIO = 1.5
"""Longest of a batch over its mean, from which a static batch idles a third of its time."""
WIDEST_STEP_TOKENS = 8192.0
"""Widest step looked at for where compute takes over."""
BATCH_SEEN = 32
"""Requests over whose longest a static batch is judged."""


def judged(truth: Truth, statement: Message) -> Judged:
    """Met, not met or unknown, with the sentence that says why."""
    verdict = {True: Verdict.MET, False: Verdict.NOT_MET, None: Verdict.UNKNOWN}[truth]
    return Judged(verdict=verdict, statement=statement)


_NO_LATENCY = msg("Latency of this scenario is not known.")


def history_is_read_again(ground: Ground) -> Judged:
    """Every output token reads the whole history: without a cache it is computed again."""
    tokens = ground.scenario.workload.output_tokens.mean()
    return judged(
        tokens > 1, msg("{tokens:tok} of output on average: each would compute the whole history again.", tokens=tokens)
    )


def prefixes_repeat(ground: Ground) -> Judged:
    """A share of prompt tokens repeats exactly."""
    share = ground.scenario.workload.prefix_hit_share
    if not share:
        return judged(None, msg("No prefix hits are declared: replay a request log for the share that repeats."))
    return judged(
        share >= REUSE_SHARE,
        msg(
            "{share:pct} of prompt tokens repeat; under {limit:pct} reuse carries little.",
            share=share,
            limit=REUSE_SHARE,
        ),
    )


def lengths_vary(ground: Ground) -> Judged:
    """Reserving the maximum length leaves much empty."""
    empty = waste_shares(ground.memory, ground.scenario.workload).max_length
    return judged(
        empty >= WASTE_SHARE,
        msg("Reserved up to the maximum length, {empty:pct} of the cache would be empty.", empty=empty),
    )


def blocks_lose_prefix(ground: Ground) -> Judged:
    """The end of a prefix that fills no block is a notable part of what is computed."""
    load = ground.scenario.workload
    if not load.prefix_hit_share:
        return judged(False, msg("No prefix hits are declared: block size changes nothing in prefill."))
    own = load.prompt_tokens.mean() * (1 - load.prefix_hit_share)
    gain = prefill_gain_share(own, LARGE_BLOCK_TOKENS, SMALL_BLOCK_TOKENS)
    return judged(
        gain >= NOTABLE_GAIN_SHARE,
        msg("{own:tok} of a prompt are its own: smaller blocks save {gain:pct} of prefill.", own=own, gain=gain),
    )


def tier_is_fast(ground: Ground) -> Judged:
    """The link to the tier is faster than the break-even bandwidth."""
    deployment, load = ground.scenario.deployment, ground.scenario.workload
    prompt = round(load.prompt_tokens.mean())
    prefix = max(1, round(prompt * max(load.prefix_hit_share + load.offload_hit_share, PREFILL_SHARE)))
    hit = Offload.of(deployment, ground.scenario.calibration).hit(prefix, prompt - prefix)
    tiers = deployment.serving.tiers or (host_link(deployment.gpu).as_tier(gpus_sharing(deployment)),)
    speed = max(tier.bytes_per_s for tier in tiers)
    needed = hit.break_even_bytes_per_s
    return judged(
        speed > needed,
        msg("The link gives {speed:gbps}; fetching pays above {needed:gbps}.", speed=speed, needed=needed),
    )


def cache_is_full(ground: Ground) -> Judged:
    """The KV pool binds: more of it would be used."""
    if not ground.memory.fits:
        return judged(True, msg("It does not fit: {over:gib} too much on each GPU.", over=ground.memory.over_bytes))
    latency = ground.latency
    if latency is None:
        return judged(None, _NO_LATENCY)
    full, binds = latency.kv_usage_max_share >= KV_FULL_SHARE, latency.limit == "memory_capacity"
    statement = msg("KV usage reaches {usage:pct} at this load.", usage=latency.kv_usage_max_share)
    if binds and not full:
        statement = msg(
            "KV usage reaches {usage:pct} now, and the pool is what limits the load.", usage=latency.kv_usage_max_share
        )
    return judged(full or binds, statement)


def contexts_are_long(ground: Ground) -> Judged:
    """Requests are long enough that dropping tokens frees much."""
    load = ground.scenario.workload
    mean = load.prompt_tokens.mean() + load.output_tokens.mean()
    return judged(
        mean >= LONG_CONTEXT_TOKENS,
        msg(
            "Requests hold {mean:tok} on average; contexts count as long from {limit:tok}.",
            mean=mean,
            limit=LONG_CONTEXT_TOKENS,
        ),
    )


def outputs_vary(ground: Ground) -> Judged:
    """The longest answer of a batch is much longer than the mean: a static batch waits for it."""
    output = ground.scenario.workload.output_tokens
    ratio = output.quantile(1 - 1 / BATCH_SEEN) / output.mean()
    return judged(
        ratio >= SPREAD_RATIO,
        msg("The longest of {batch:count} answers is {ratio:.1f} times the mean.", batch=BATCH_SEEN, ratio=ratio),
    )


def prefill_disturbs(ground: Ground) -> Judged:
    """Prefill takes much of the time and lands in decode steps."""
    latency = ground.latency
    if latency is None:
        return judged(None, _NO_LATENCY)
    share, mixed = latency.prefill_compute_share, latency.mixed_step_share
    return judged(
        mixed >= MIXED_SHARE and share >= REUSE_SHARE,
        msg(
            "{mixed:pct} of tokens come from steps that also prefill; prefill takes {share:pct} of busy time.",
            mixed=mixed,
            share=share,
        ),
    )


def steps_wait_for_memory(ground: Ground) -> Judged:
    """Decode steps leave compute idle that checking drafts could use."""
    if ground.replica is None or ground.latency is None:
        return judged(None, _NO_LATENCY)
    running = max(1.0, ground.latency.concurrency / ground.replica.split)
    bend = bend_tokens(ground.replica)
    return judged(
        running < bend,
        msg(
            "{running:.3g} requests run at once; a step computes for free up to {bend:count} tokens.",
            running=running,
            bend=bend,
        ),
    )


def bend_tokens(replica: Replica) -> float:
    """Tokens in a step from which its matrix products wait for compute instead of weights."""
    grid = np.geomspace(1, WIDEST_STEP_TOKENS, 200)
    compute, memory = np.zeros_like(grid), np.zeros_like(grid)
    for kernel in replica.model.classes:
        compute, memory = compute + kernel.compute_s(grid), memory + kernel.memory_s(grid)
    beyond = grid[compute >= memory]
    return float(beyond[0]) if beyond.size else WIDEST_STEP_TOKENS


def weights_are_read_most(ground: Ground) -> Judged:
    """Weights are most of what a decode step reads, or what does not fit."""
    if not ground.memory.fits:
        return judged(True, msg("It does not fit: {over:gib} too much on each GPU.", over=ground.memory.over_bytes))
    if ground.replica is None or ground.latency is None:
        return judged(None, _NO_LATENCY)
    running = max(1.0, ground.latency.concurrency / ground.replica.split)
    model = ground.replica.model
    context = running * ground.replica.demand.held * model.kv_bytes_per_token
    share = model.weight_bytes / (model.weight_bytes + context)
    return judged(share >= WEIGHTS_READ_SHARE, msg("{share:pct} of what a decode step reads are weights.", share=share))


def prompts_exceed_budget(ground: Ground) -> Judged:
    """Long prompts would hold up the others for more than a step."""
    budget = ground.settings.max_num_batched_tokens
    longest = ground.scenario.workload.prompt_tokens.quantile(0.99)
    return judged(
        longest > budget or ground.settings.chunked_prefill is False,
        msg("P99 of prompts is {longest:tok}; a step takes {budget:tok}.", longest=longest, budget=budget),
    )


def ttft_presses(ground: Ground) -> Judged:
    """TTFT is nearer to its target than ITL."""
    return _presses(ground, more_prefill=True)


def itl_presses(ground: Ground) -> Judged:
    """ITL is nearer to its target than TTFT."""
    return _presses(ground, more_prefill=False)


def _presses(ground: Ground, *, more_prefill: bool) -> Judged:
    slo, latency = ground.scenario.slo, ground.latency
    if latency is None:
        return judged(None, _NO_LATENCY)
    share = slo.percentile_share
    ttft, itl = latency.ttft.at(share), latency.itl.at(share)
    if not (slo.ttft_s and slo.itl_s and ttft and itl):
        return judged(None, msg("Both a TTFT and an ITL target are needed to say which one presses."))
    used_ttft, used_itl = ttft / slo.ttft_s, itl / slo.itl_s
    return judged(
        (used_ttft > used_itl) is more_prefill,
        msg("TTFT uses {ttft:pct} of its target, ITL {itl:pct}.", ttft=used_ttft, itl=used_itl),
    )


def several_replicas(ground: Ground) -> Judged:
    """There is a choice of replicas."""
    count = ground.scenario.deployment.replicas * ground.scenario.deployment.dp
    return judged(count > 1, msg("{count:count} replicas share the load.", count=count))


def prefixes_are_scattered(ground: Ground) -> Judged:
    """Every replica warms its own copy of each prefix."""
    count = ground.scenario.deployment.replicas * ground.scenario.deployment.dp
    groups = ground.scenario.workload.prefix_groups
    if groups is None:
        return judged(None, msg("How many distinct prefixes there are is not known."))
    return judged(
        count > 1 and ground.scenario.workload.prefix_hit_share > 0,
        msg(
            "{groups:count} prefixes over {count:count} replicas: each warms its own cache.", groups=groups, count=count
        ),
    )


def some_tasks_are_simple(ground: Ground) -> Judged:
    """Nobody but the team knows which requests a small model answers as well."""
    name = ground.scenario.deployment.model.name
    return judged(
        None, msg("Which share of requests a smaller model than {model} answers as well must be tried out.", model=name)
    )
