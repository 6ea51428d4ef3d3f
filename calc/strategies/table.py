"""Every strategy, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calc.dtypes import KV_BYTES
from calc.engine import resolve
from calc.judge import lever_changes
from calc.messages import msg
from calc.scenario import Scenario
from calc.strategies import conditions as when
from calc.strategies import switches as to
from calc.strategies.strategy import Goal, Risk, Strategy

NO_CACHE, ROUTE_MODELS = "per-request-kv", "model-routing"
"""Judged by arithmetic of their own: no engine serves without a cache, and two models are two scenarios."""

_QUALITY = msg("Check answer quality on your own tasks before and after.")
_ALWAYS = msg("Engines of today always do this; shown for what it is worth.")
_KEEPS = msg("Nothing is switched: the scenario already runs so.")


def _off(_: Scenario) -> bool:
    return False


def _on(_: Scenario) -> bool:
    return True


def _kv_is(dtype: str, scenario: Scenario) -> bool:
    return KV_BYTES[resolve(scenario.deployment).kv_dtype] <= KV_BYTES[dtype]


def _narrow_weights(scenario: Scenario) -> bool:
    storage = scenario.deployment.model.storage
    return storage.bytes_per_parameter < storage.plain_bytes_per_parameter


_ROWS = (
    Strategy(
        code=NO_CACHE,
        name=msg("KV cache within a request"),
        goals=(Goal.LATENCY,),
        is_on=_on,
        switch_on=to.never(_KEEPS),
        switch_off=to.never(_ALWAYS),
        judge=when.history_is_read_again,
        benefit=msg("ITL and E2E: one token is computed per step instead of the whole history."),
        cost=msg("GPU memory for every token in flight."),
        quality=None,
        source=msg("Hugging Face community article on KV caching, 2025: 61 s to 11.7 s on a T4"),
    ),
    Strategy(
        code="prefix-cache",
        name=msg("Prefix cache"),
        goals=(Goal.COST, Goal.LATENCY),
        is_on=lambda scenario: resolve(scenario.deployment).prefix_caching,
        switch_on=to.prefix_on,
        switch_off=to.prefix_off,
        judge=when.prefixes_repeat,
        benefit=msg("TTFT and load carried: tokens found are not computed. ITL gains only by shorter mixed steps."),
        cost=msg("Exact matches only: model, template and every sign must be equal. Ask which tenants may share."),
        quality=None,
        source=msg("vLLM V1: under 1 % throughput at no hits; NVIDIA 2024: up to 5 times TTFT"),
        risks=(Risk.SCHEDULING,),
    ),
    Strategy(
        code="paged-kv",
        name=msg("Paged KV"),
        goals=(Goal.COST, Goal.LONG_CONTEXT),
        is_on=_on,
        switch_on=to.never(_KEEPS),
        switch_off=to.contiguous,
        judge=when.lengths_vary,
        benefit=msg("Concurrency and load carried: only tokens that exist take memory."),
        cost=msg("Block tables, and preemption when blocks run out."),
        quality=None,
        source=msg("PagedAttention, SOSP 2023 (arXiv 2309.06180): 2-4 times throughput"),
        risks=(Risk.FRAGMENTATION,),
    ),
    Strategy(
        code="block-size",
        name=msg("Small KV blocks (16 against 64 tokens)"),
        goals=(Goal.LATENCY,),
        is_on=lambda scenario: resolve(scenario.deployment).block_size_tokens <= to.SMALL_BLOCK_TOKENS,
        switch_on=to.blocks_of(to.SMALL_BLOCK_TOKENS),
        switch_off=to.blocks_of(to.LARGE_BLOCK_TOKENS),
        judge=when.blocks_lose_prefix,
        benefit=msg("TTFT: more of a shared prefix fills whole blocks and is found."),
        cost=msg("More entries in block tables and in the index; slower large copies to tiers."),
        quality=None,
        source=msg("NVIDIA 2024: blocks of 8 in place of 64 tokens, up to 7 % TTFT on a 70B model"),
        risks=(Risk.FRAGMENTATION,),
    ),
    Strategy(
        code="offload",
        name=msg("KV offload outside the GPU"),
        goals=(Goal.LATENCY, Goal.LONG_CONTEXT),
        is_on=lambda scenario: bool(scenario.deployment.serving.tiers and scenario.workload.offload_hit_share),
        switch_on=to.offload_on,
        switch_off=to.offload_off,
        judge=when.tier_is_fast,
        benefit=msg("TTFT of what the GPU no longer holds; load carried where prefill binds. ITL stays."),
        cost=msg("CPU memory or storage, link bandwidth, and data at rest to protect and to delete."),
        quality=None,
        source=msg("vLLM 2026-01-08: 2-22 times TTFT; llm-d under load: mean TTFT -25 %"),
        risks=(Risk.SCHEDULING, Risk.ROLLBACK),
        assumes=("offload_hit_share",),
    ),
    Strategy(
        code="fp8-kv",
        name=msg("KV in FP8"),
        goals=(Goal.COST, Goal.LONG_CONTEXT),
        is_on=lambda scenario: _kv_is("fp8", scenario),
        switch_on=to.kv_in("fp8"),
        switch_off=to.wide_kv,
        judge=when.cache_is_full,
        benefit=msg("Concurrency: half the bytes per token; shorter reads of long contexts."),
        cost=msg("None in memory; kernels must support it."),
        quality=_QUALITY,
        source=msg("bytes per element; vLLM quantized KV cache documentation"),
        risks=(Risk.ACCURACY, Risk.ROLLBACK),
    ),
    Strategy(
        code="nvfp4-kv",
        name=msg("KV in NVFP4"),
        goals=(Goal.COST, Goal.LONG_CONTEXT),
        is_on=lambda scenario: _kv_is("nvfp4", scenario),
        switch_on=to.kv_in("nvfp4"),
        switch_off=to.wide_kv,
        judge=when.cache_is_full,
        benefit=msg("Concurrency: bytes of FP8 × 0.56, scales included; values are widened to FP8 before attention."),
        cost=msg("Blackwell only."),
        quality=msg("Under 1 % accuracy loss is published for some models: check yours."),
        source=msg("NVIDIA 2025-12-08, NVFP4 KV cache"),
        risks=(Risk.ACCURACY, Risk.ROLLBACK),
    ),
    Strategy(
        code="eviction",
        name=msg("Evict tokens (a budget per sequence)"),
        goals=(Goal.COST, Goal.LONG_CONTEXT),
        is_on=_off,
        switch_on=to.evict,
        switch_off=to.never(_KEEPS),
        judge=when.contexts_are_long,
        benefit=msg("Concurrency and ITL of long contexts: only the kept share is held and read."),
        cost=msg("Not in vLLM's main line: a research engine or your own."),
        quality=msg("What is evicted cannot be recalled: facts in the middle of long contexts are lost."),
        source=msg("H2O and Scissorhands, NeurIPS 2023: 2-5 times smaller"),
        risks=(Risk.ACCURACY, Risk.ROLLBACK),
        assumes=("kept_share",),
    ),
    Strategy(
        code="continuous-batching",
        name=msg("Continuous batching"),
        goals=(Goal.COST, Goal.LATENCY),
        is_on=lambda scenario: scenario.deployment.serving.batching == "continuous",
        switch_on=to.batching("continuous"),
        switch_off=to.batching("static"),
        judge=when.outputs_vary,
        benefit=msg("Load carried and queue: places of finished requests are filled at the next step."),
        cost=msg("Requests share steps: prefill of one stretches ITL of the others."),
        quality=None,
        source=msg("Anyscale 2023: up to 23 times naive static batching, with vLLM"),
        risks=(Risk.SCHEDULING,),
    ),
    Strategy(
        code="chunked-prefill",
        name=msg("Chunked prefill"),
        goals=(Goal.LATENCY,),
        is_on=lambda scenario: resolve(scenario.deployment).chunked_prefill,
        switch_on=to.lever(lever_changes.chunk_prefill),
        switch_off=to.chunks_off,
        judge=when.prompts_exceed_budget,
        benefit=msg("ITL tail: no decode waits for more than one chunk."),
        cost=msg("Each chunk reads the weights again: TTFT of long prompts grows a little."),
        quality=None,
        source=msg("Sarathi-Serve, OSDI 2024; vLLM V1 default"),
        risks=(Risk.SCHEDULING,),
    ),
    Strategy(
        code="larger-budget",
        name=msg("Larger token budget of a step"),
        goals=(Goal.LATENCY,),
        is_on=_off,
        switch_on=to.lever(lever_changes.raise_batched_tokens),
        switch_off=to.never(_KEEPS),
        judge=when.ttft_presses,
        benefit=msg("TTFT: prompts take fewer steps."),
        cost=msg("Mixed steps grow longer: ITL tail; more activation memory."),
        quality=None,
        source=msg("vLLM optimization guide"),
        risks=(Risk.SCHEDULING,),
    ),
    Strategy(
        code="smaller-budget",
        name=msg("Smaller token budget of a step"),
        goals=(Goal.LATENCY,),
        is_on=_off,
        switch_on=to.lever(lever_changes.lower_batched_tokens),
        switch_off=to.never(_KEEPS),
        judge=when.itl_presses,
        benefit=msg("ITL tail: mixed steps grow shorter."),
        cost=msg("Prompts take more steps: TTFT, and less load carried."),
        quality=None,
        source=msg("vLLM optimization guide"),
        risks=(Risk.SCHEDULING,),
    ),
    Strategy(
        code="split-prefill",
        name=msg("Prefill and decode on replicas of their own"),
        goals=(Goal.LATENCY,),
        is_on=lambda scenario: scenario.deployment.serving.prefill_replicas > 0,
        switch_on=to.split_on,
        switch_off=to.split_off,
        judge=when.prefill_disturbs,
        benefit=msg("ITL tail: no prefill in decode steps. Each side is sized on its own."),
        cost=msg("KV of every prompt crosses a link; a wrong ratio leaves one side idle."),
        quality=None,
        source=msg("DistServe, OSDI 2024; Mooncake 2024"),
        risks=(Risk.SCHEDULING, Risk.ROLLBACK),
        assumes=("transfer_bytes_per_s",),
    ),
    Strategy(
        code="speculation",
        name=msg("Speculative decoding"),
        goals=(Goal.LATENCY,),
        is_on=lambda scenario: scenario.deployment.serving.accepted_tokens is not None,
        switch_on=to.speculate,
        switch_off=to.speculation_off,
        judge=when.steps_wait_for_memory,
        benefit=msg("TPOT and E2E at low load: a step yields more than one token."),
        cost=msg("Rejected drafts are computed for nothing: at high load it is slower."),
        quality=None,
        source=msg("vllm#16035: +36 % at batch 1; sglang#6949, vllm#19254: negative at hundreds running"),
        risks=(Risk.SCHEDULING, Risk.ROLLBACK),
        assumes=("spec_tokens", "accepted_tokens"),
    ),
    Strategy(
        code="fp8-weights",
        name=msg("Weights in FP8"),
        goals=(Goal.COST, Goal.LATENCY),
        is_on=_narrow_weights,
        switch_on=to.lever(lever_changes.narrow_weights),
        switch_off=to.never(msg("The checkpoint stores them so: choose another one to compare.")),
        judge=when.weights_are_read_most,
        benefit=msg("ITL, and room for the cache: half the weight bytes."),
        cost=msg("A quantised checkpoint, and a GPU that computes in it to gain prefill too."),
        quality=_QUALITY,
        source=msg("bytes per parameter; GEMM tables of aiconfigurator-core 0.12.0"),
        risks=(Risk.ACCURACY, Risk.ROLLBACK),
    ),
    Strategy(
        code=ROUTE_MODELS,
        name=msg("Route simple requests to a small model"),
        goals=(Goal.COST, Goal.LATENCY),
        is_on=_off,
        switch_on=to.never(msg("Choose the small model and the share of requests it gets.")),
        switch_off=to.never(_KEEPS),
        judge=when.some_tasks_are_simple,
        benefit=msg("Cost, and latency of the requests that go there."),
        cost=msg("A second service to run, and a router that may be wrong."),
        quality=msg("Answers may become less uniform."),
        source=msg("two scenarios, computed together"),
        risks=(Risk.ACCURACY, Risk.SCHEDULING, Risk.ROLLBACK),
        assumes=("routed_share", "small_model"),
    ),
    Strategy(
        code="least-loaded",
        name=msg("Route to the least loaded replica"),
        goals=(Goal.LATENCY,),
        is_on=lambda scenario: scenario.deployment.serving.routing == "least-loaded",
        switch_on=to.route("least-loaded"),
        switch_off=to.route("random"),
        judge=when.several_replicas,
        benefit=msg("Queue and tail: no replica waits while another is idle."),
        cost=msg("A router that knows the load; prefixes are spread over all replicas."),
        quality=None,
        source=msg("join the shortest queue; Gateway API Inference Extension"),
        risks=(Risk.SCHEDULING,),
    ),
    Strategy(
        code="prefix-routing",
        name=msg("Route by prefix"),
        goals=(Goal.LATENCY, Goal.COST),
        is_on=lambda scenario: scenario.deployment.serving.routing == "prefix-aware",
        switch_on=to.route("prefix-aware"),
        switch_off=to.route("random"),
        judge=when.prefixes_are_scattered,
        benefit=msg("Hit rate: a prefix is warm where its requests go."),
        cost=msg("By prefix alone the hottest replica overloads (sglang#21199: 1617 against 627 ms)."),
        quality=None,
        source=msg("sglang#26611: round-robin caps the hit rate at 1/replicas"),
        risks=(Risk.SCHEDULING,),
    ),
)

STRATEGIES: Mapping[str, Strategy] = MappingProxyType({row.code: row for row in _ROWS})
"""Code → strategy, in reading order."""
