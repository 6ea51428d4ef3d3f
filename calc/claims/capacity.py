"""Headlines about memory: paging, block waste, NVFP4 and eviction."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from calc.cache.eviction import Budgets, Policy, evict
from calc.cache.formats import CLAIMED_NVFP4_OF_FP8
from calc.cache.kv import request_bytes
from calc.cache.waste import Reservation, WasteReport, waste_of, waste_shares
from calc.claims.claim import Claim, Shelf, Yours
from calc.deployment import Deployment
from calc.engine import resolve
from calc.memory import estimate_memory
from calc.messages import msg
from calc.room.capacity import Room
from calc.scenario import Scenario
from calc.simulator.replica import prepare
from calc.simulator.stability import rate_at
from calc.workload import LogNormal, OpenLoop, Workload

SHAREGPT = Workload(
    prompt_tokens=LogNormal(p50_tokens=80, p95_tokens=560),
    output_tokens=LogNormal(p50_tokens=215, p95_tokens=1060),
    arrivals=OpenLoop(kind="poisson", rate_per_s=1.0),
    http=False,
)
"""Means of 161 and 338 tokens as recalled from the PagedAttention paper; the spread is assumed."""
OPT_LENGTH_TOKENS = 2048
PAPER_FRACTION = 0.9
SEED = 1


def opt_13b(shelf: Shelf) -> Deployment:
    """The setup of the paper and of the batching post: OPT-13B on one A100 with 40 GB."""
    bare = shelf.deploy("facebook/opt-13b", "a100-40-sxm")
    return replace(
        bare,
        memory_fraction=PAPER_FRACTION,
        max_model_len_tokens=OPT_LENGTH_TOKENS,
        max_num_seqs=256,
        block_size_tokens=16,
    )


def _rates(scenario: Scenario) -> tuple[WasteReport, dict[Reservation, float]]:
    """Highest stable rate of one replica for each way of reserving: its batch is what the pool then holds."""
    deployment = scenario.deployment
    memory = estimate_memory(deployment, scenario.workload)
    report = waste_of(deployment, memory, scenario.workload)
    replica = prepare(scenario, memory, SEED)
    ways = {
        Reservation.PAGED: report.own,
        Reservation.POWER_OF_TWO: report.of(Reservation.POWER_OF_TWO),
        Reservation.MAX_LENGTH: report.of(Reservation.MAX_LENGTH),
    }
    most = min(replica.limits.max_batch, replica.model.max_seqs)
    batches = [min(most, max(1.0, row.sequences / deployment.dp)) for row in ways.values()]
    rates = rate_at(replica.model, replica.demand, np.array(batches))
    return report, dict(zip(ways, map(float, rates), strict=True))


def paged_attention(shelf: Shelf) -> Claim:
    """Two to four times throughput at the same latency."""
    scenario = Scenario(deployment=opt_13b(shelf), workload=SHAREGPT)
    report, rates = _rates(scenario)
    paged, two, longest = (rates[way] for way in (Reservation.PAGED, Reservation.POWER_OF_TWO, Reservation.MAX_LENGTH))
    return Claim(
        code="paged-attention",
        title=msg("Paged against contiguous KV: throughput"),
        claimed=(2.0, 4.0),
        computed=paged / longest,
        span=(paged / two, paged / longest),
        conditions=msg("OPT-13B on one A100 40GB, ShareGPT, against reserving 2,048 tokens or a power of two."),
        working=msg(
            "The pool holds {paged:count} such requests in blocks, {two:count} in powers of two, {whole:count} at full "
            "length; the rate follows the batch until compute binds.",
            paged=report.own.sequences,
            two=report.of(Reservation.POWER_OF_TWO).sequences,
            whole=report.of(Reservation.MAX_LENGTH).sequences,
        ),
        assumed=msg("Spread of lengths around the means 161 and 338; kernels of a present engine on all sides."),
        recalled=True,
        source=msg("Kwon et al., SOSP 2023 (arXiv 2309.06180)"),
        counter=msg("Where the pool is not full, more room changes 0 to 3 % (vllm#1018, #42058)."),
    )


def paged_attention_on_yours(scenario: Scenario) -> Yours:
    """Highest stable rate in blocks over that at full length."""
    report, rates = _rates(scenario)
    return Yours(
        value=rates[Reservation.PAGED] / rates[Reservation.MAX_LENGTH],
        statement=msg(
            "The pool holds {paged:count} requests of this load in blocks, {whole:.3g} of the maximum length.",
            paged=report.own.sequences,
            whole=report.of(Reservation.MAX_LENGTH).sequences,
        ),
    )


def block_waste(shelf: Shelf) -> Claim:
    """Under 4 % of the cache wasted."""
    memory = estimate_memory(opt_13b(shelf), SHAREGPT)
    shares = waste_shares(memory, SHAREGPT)
    return Claim(
        code="block-waste",
        title=msg("Share of the cache that paging leaves empty"),
        claimed=(0.0, 0.04),
        computed=shares.paged,
        is_share=True,
        conditions=msg("vLLM, blocks of 16 tokens, ShareGPT."),
        working=msg(
            "Half of a block is empty on average, of {held:tok} held; up to the maximum length {longest:pct} would be, "
            "in powers of two {two:pct}.",
            held=shares.held_tokens,
            longest=shares.max_length,
            two=shares.power_of_two,
        ),
        assumed=msg("Spread of lengths around the means 161 and 338."),
        recalled=True,
        source=msg("vLLM launch post, 2023-06-20: others 60-80 %"),
        counter=msg("Requests of 20 tokens would waste 27 %: short ones never fill a block."),
    )


def block_waste_on_yours(scenario: Scenario) -> Yours:
    """The engine's own block under this load."""
    memory = estimate_memory(scenario.deployment, scenario.workload)
    shares = waste_shares(memory, scenario.workload)
    return Yours(
        value=shares.paged,
        statement=msg(
            "Blocks of {block:count} tokens, {held:tok} held on average.",
            block=memory.block_size_tokens,
            held=shares.held_tokens,
        ),
    )


OWN_SHARE = 0.2
"""Of a prompt, never in the cache."""
OWN_SHARES = (0.1, 0.4)


def _ttft_gain(before_share: float, own_share: float) -> float:
    """Prefill with a cache that holds ``before_share`` of what repeats, over prefill with all of it held."""
    return (own_share + (1 - own_share) * (1 - before_share)) / own_share


def nvfp4(shelf: Shelf) -> Claim:
    """Half of FP8; the bits say 56 %."""
    model = shelf.model("meta-llama/Llama-3.1-70B-Instruct", None)
    length = 32_768
    share = request_bytes(model, "nvfp4", 1, 1, length) / request_bytes(model, "fp8", 1, 1, length)
    gain, low, high = (_ttft_gain(share, own) for own in (OWN_SHARE, OWN_SHARES[1], OWN_SHARES[0]))
    return Claim(
        code="nvfp4-kv",
        title=msg("NVFP4 cache in place of FP8: bytes"),
        claimed=(CLAIMED_NVFP4_OF_FP8, CLAIMED_NVFP4_OF_FP8),
        computed=share,
        tolerance=0.05,
        is_share=True,
        conditions=msg("Blackwell; any model with plain attention."),
        working=msg(
            "4 bits and an 8-bit scale for every 16 values are 4.5 bits. Where FP8 holds {share:pct} of what repeats "
            "and NVFP4 all of it, TTFT gains {gain:.2g} times ({low:.2g} to {high:.2g}); up to 3 is published.",
            share=share,
            gain=gain,
            low=low,
            high=high,
        ),
        assumed=msg("For TTFT: a fifth of a prompt is new (a tenth to two fifths), all of the rest repeats evenly."),
        source=msg("NVIDIA developer blog, NVFP4 KV cache, 2025-12-08; under 1 % accuracy loss on their tasks"),
        counter=msg(
            "Values are widened to FP8 before attention, so nothing is computed faster; without reuse TTFT stays."
        ),
    )


def nvfp4_on_yours(scenario: Scenario) -> Yours:
    """A mean request in NVFP4 over the format in use."""
    deployment, load = scenario.deployment, scenario.workload
    length = load.prompt_tokens.mean() + load.output_tokens.mean()
    now = resolve(deployment).kv_dtype
    share = request_bytes(deployment.model, "nvfp4", deployment.tp, 1, length) / request_bytes(
        deployment.model, now, deployment.tp, 1, length
    )
    if "fp4" not in deployment.gpu.flops_per_s:
        note = msg("Of the present {dtype}; {gpu} does not compute in FP4.", dtype=now, gpu=deployment.gpu.name)
        return Yours(value=share, statement=note)
    return Yours(value=share, statement=msg("Of the present {dtype}.", dtype=now))


KEPT_SHARES = (0.2, 0.5)
EVICTION_TOKENS = 2048


def eviction(shelf: Shelf) -> Claim:
    """A cache two to five times smaller."""
    deployment = replace(shelf.deploy("facebook/opt-6.7b", "a100-40-sxm"), block_size_tokens=16)
    small, half = (_smaller(deployment, share, EVICTION_TOKENS) for share in KEPT_SHARES)
    return Claim(
        code="eviction",
        title=msg("Evicting tokens of little attention: size of the cache"),
        claimed=(2.0, 5.0),
        computed=small,
        span=(half, small),
        conditions=msg("OPT-6.7B, sequences of {tokens:tok}, a budget per sequence.", tokens=EVICTION_TOKENS),
        working=msg(
            "A budget of a fifth leaves {small:.3g} times less, a half {half:.3g} times, counted in whole blocks.",
            small=small,
            half=half,
        ),
        recalled=True,
        source=msg("H2O and Scissorhands, NeurIPS 2023"),
        counter=msg(
            "Not in vLLM's main line; what is dropped cannot be found again. Baselines were offline, with offloading."
        ),
    )


def _smaller(deployment: Deployment, kept_share: float, length_tokens: int) -> float:
    room = Room.of(deployment, estimate_memory(deployment))
    budgets = Budgets(window_tokens=length_tokens, kept_share=kept_share, full_layers_share=0.0)
    return next(row.smaller for row in evict(room, length_tokens, budgets) if row.policy is Policy.SCORE)


def eviction_on_yours(scenario: Scenario) -> Yours:
    """A fifth kept of a mean request of this load."""
    load = scenario.workload
    length = math.ceil(load.prompt_tokens.mean() + load.output_tokens.mean())
    return Yours(
        value=_smaller(scenario.deployment, KEPT_SHARES[0], length),
        statement=msg(
            "A fifth kept of a mean request of {length:tok}; windows and states stay as they are.", length=length
        ),
    )
