"""Headlines about work saved: the cache within a request, a shared system prompt in a burst, smaller blocks."""

from __future__ import annotations

from dataclasses import replace

from calc.cache.block_size import (
    REPORTED_FROM_TOKENS,
    REPORTED_TO_TOKENS,
    REPORTED_TTFT_GAIN,
    mean_unshared_tokens,
    prefill_gain_share,
)
from calc.claims.claim import Claim, Shelf, Yours
from calc.messages import msg
from calc.offload.fetch import Offload
from calc.scenario import Scenario
from calc.step.efficiency import Efficiency, efficiency_of
from calc.step.roofline import step_model
from calc.strategies.recompute import Alone, alone
from calc.units import TERA

T4_FP32_FLOPS = 8.1 * TERA
"""Vendor figure, FP32 without tensor cores."""
EAGER_COMPUTE_SHARE = 0.4
"""Of the FP32 peak that small matrix products reach on a T4; assumed."""
EAGER_BANDWIDTH_SHARE = 0.75
EAGER_LAYER_S = 0.4e-3
"""Per layer without CUDA graphs: about a dozen kernels × 30 µs of Python and launch; assumed."""
RED_CAT_PROMPT_TOKENS, RED_CAT_OUTPUT_TOKENS = 4, 300
WITH_S, WITHOUT_S = 11.7, 61.0


def eager(shares: Efficiency) -> Efficiency:
    """A framework without CUDA graphs, scheduler or HTTP."""
    return replace(
        shares,
        compute_share={**shares.compute_share, "bf16": EAGER_COMPUTE_SHARE},
        bandwidth_share={**shares.bandwidth_share, "bf16": EAGER_BANDWIDTH_SHARE},
        layer_s=EAGER_LAYER_S,
        prefill_s=0.0,
        http_s=0.0,
    )


def _on_t4(shelf: Shelf, *, full_precision: bool) -> Alone:
    weights = "fp32" if full_precision else None
    deployment = shelf.deploy("HuggingFaceTB/SmolLM2-1.7B-Instruct", "t4", weights=weights)
    if full_precision:
        plain = replace(deployment.gpu, flops_per_s={"bf16": T4_FP32_FLOPS})
        deployment = replace(deployment, gpu=plain, kv_dtype="fp32")
    model = step_model(deployment, efficiency=eager(efficiency_of(deployment.gpu)), http=False)
    return alone(model, RED_CAT_PROMPT_TOKENS, RED_CAT_OUTPUT_TOKENS)


def kv_cache_on_t4(shelf: Shelf) -> Claim:
    """61 s without, 11.7 s with a KV cache."""
    full, half = _on_t4(shelf, full_precision=True), _on_t4(shelf, full_precision=False)
    return Claim(
        code="kv-cache",
        title=msg("KV cache on against off, one request on a T4"),
        claimed=(WITHOUT_S / WITH_S, WITHOUT_S / WITH_S),
        computed=full.ratio,
        tolerance=0.15,
        conditions=msg(
            "SmolLM2-1.7B, NVIDIA T4, batch 1, {prompt:count} prompt and {output:tok} of output, eager framework.",
            prompt=RED_CAT_PROMPT_TOKENS,
            output=RED_CAT_OUTPUT_TOKENS,
        ),
        working=msg(
            "With the cache a token reads all weights once: {on:ms}. Without, it computes {mean:count} tokens on "
            "average: {off:ms}. Together {with_s:s} against {without_s:s}.",
            on=full.mean_gap_with_s,
            mean=RED_CAT_PROMPT_TOKENS + RED_CAT_OUTPUT_TOKENS / 2,
            off=full.mean_gap_without_s,
            with_s=full.with_s,
            without_s=full.without_s,
        ),
        assumed=msg("Weights in FP32, the framework's default; of its peak 40 %, of bandwidth 75 %; 0.4 ms a layer."),
        source=msg("huggingface.co/blog/not-lain/kv-caching, 2025-01-30"),
        counter=msg(
            "In 16 bits with tensor cores the same request would gain {ratio:.2g} times only: overhead binds then.",
            ratio=half.ratio,
        ),
    )


def kv_cache_on_yours(scenario: Scenario) -> Yours:
    """One mean request alone."""
    load = scenario.workload
    model = Offload.of(scenario.deployment, scenario.calibration).model
    prompt, output = max(1, round(load.prompt_tokens.mean())), max(2, round(load.output_tokens.mean()))
    one = alone(model, prompt, output)
    return Yours(
        value=one.ratio,
        statement=msg(
            "A request of {prompt:count} + {output:tok} alone: {on:s} with, {off:s} without a cache.",
            prompt=prompt,
            output=output,
            on=one.with_s,
            off=one.without_s,
        ),
    )


BURST_USERS = 20
BURST_PREFIX_TOKENS, BURST_OWN_TOKENS = 2048, 228
"""Nine tokens in ten shared."""
BURSTS = (10, 40)
"""Fewest and most users of the span."""


def _burst_ratio(engine: Offload, users: int, prefix_tokens: int, own_tokens: int) -> tuple[float, float, float]:
    """Mean TTFT of a burst served in turn, without and with early reuse, and their ratio.

    Without, every user computes prefix and own part: (n + 1)/2 · c(P + U). With, the first computes the prefix and
    all their own parts: c(P + U) + (n − 1)/2 · c(U on P).
    """
    whole = engine.prefill_s(prefix_tokens + own_tokens)
    own = engine.prefill_s(prefix_tokens + own_tokens, prefix_tokens)
    without, with_it = (users + 1) / 2 * whole, whole + (users - 1) / 2 * own
    return without, with_it, without / with_it


def early_reuse(shelf: Shelf) -> Claim:
    """Up to five times TTFT when a burst of users shares a system prompt."""
    engine = Offload.of(shelf.deploy("meta-llama/Meta-Llama-3-70B-Instruct", "h100-sxm", tp=4))
    without, with_it, ratio = _burst_ratio(engine, BURST_USERS, BURST_PREFIX_TOKENS, BURST_OWN_TOKENS)
    few, many = (_burst_ratio(engine, users, BURST_PREFIX_TOKENS, BURST_OWN_TOKENS)[2] for users in BURSTS)
    return Claim(
        code="early-reuse",
        title=msg("A system prompt shared by a burst of users: TTFT"),
        claimed=(5.0, 5.0),
        is_most=True,
        computed=ratio,
        span=(few, many),
        conditions=msg("A burst of users with one system prompt, H100, TensorRT-LLM."),
        working=msg(
            "Served in turn, the mean of {users:count} users waits {without:ms} when each computes the prompt, and "
            "{with_it:ms} when only the first does.",
            users=BURST_USERS,
            without=without,
            with_it=with_it,
        ),
        assumed=msg(
            "Llama-3-70B in BF16 on four H100, {prefix:count} shared and {own:tok} of one's own, {users:count} users; "
            "span over {few:count} to {many:count} users.",
            prefix=BURST_PREFIX_TOKENS,
            own=BURST_OWN_TOKENS,
            users=BURST_USERS,
            few=BURSTS[0],
            many=BURSTS[1],
        ),
        source=msg("NVIDIA developer blog, TensorRT-LLM KV cache early reuse, 2024-11-08"),
        counter=msg(
            "Measured under steady load: hits on 66.5 %, and TTFT P50 was 2.3 times shorter (GB10, vLLM); at low load "
            "hits on 87 %, and nothing changed (vllm#1983)."
        ),
    )


def early_reuse_on_yours(scenario: Scenario) -> Yours:
    """A burst of as many users with this load's mean prompt."""
    load = scenario.workload
    prompt = round(load.prompt_tokens.mean())
    prefix = round(prompt * load.prefix_hit_share)
    if not prefix:
        return Yours(value=None, statement=msg("No prefix hits are declared for this load: nothing is shared."))
    engine = Offload.of(scenario.deployment, scenario.calibration)
    without, with_it, ratio = _burst_ratio(engine, BURST_USERS, prefix, max(1, prompt - prefix))
    return Yours(
        value=ratio,
        statement=msg(
            "{users:count} users at once share {prefix:tok} of {prompt:count}: mean TTFT {without:ms} becomes "
            "{with_it:ms}.",
            users=BURST_USERS,
            prefix=prefix,
            prompt=prompt,
            without=without,
            with_it=with_it,
        ),
    )


OWN_TOKENS = 400
OWN_SPAN = (200, 1000)


def small_blocks(_: Shelf) -> Claim:
    """Up to 7 % TTFT from blocks of 8 in place of 64 tokens."""
    gain, most, least = (
        prefill_gain_share(own, REPORTED_FROM_TOKENS, REPORTED_TO_TOKENS) for own in (OWN_TOKENS, *OWN_SPAN)
    )
    return Claim(
        code="block-size",
        title=msg("Blocks of 8 in place of 64 tokens: TTFT"),
        claimed=(REPORTED_TTFT_GAIN, REPORTED_TTFT_GAIN),
        is_most=True,
        computed=gain,
        span=(least, most),
        is_share=True,
        conditions=msg("Llama-70B on H100, TensorRT-LLM, prefixes found in the cache."),
        working=msg(
            "The end of a prefix that fills no block is computed again: {before:.3g} against {after:.3g} tokens each.",
            before=mean_unshared_tokens(REPORTED_FROM_TOKENS),
            after=mean_unshared_tokens(REPORTED_TO_TOKENS),
        ),
        assumed=msg(
            "{own:tok} not in the cache; span over {few:count} to {many:tok}.",
            own=OWN_TOKENS,
            few=OWN_SPAN[0],
            many=OWN_SPAN[1],
        ),
        source=msg("NVIDIA developer blog, TensorRT-LLM KV cache early reuse, 2024-11-08"),
        counter=msg("With 3,000 tokens of one's own the same change gives 0.9 %."),
    )


def small_blocks_on_yours(scenario: Scenario) -> Yours:
    """The same change at this load's own tokens."""
    load = scenario.workload
    if not load.prefix_hit_share:
        return Yours(value=None, statement=msg("No prefix hits are declared for this load: nothing is shared."))
    own = load.prompt_tokens.mean() * (1 - load.prefix_hit_share)
    gain = prefill_gain_share(own, REPORTED_FROM_TOKENS, REPORTED_TO_TOKENS)
    return Yours(value=gain, statement=msg("{own:tok} of a mean prompt are computed in any case.", own=own))
