"""What each engine calls a setting on its command line, version by version; what it has no name for is said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from calc.messages import msg
from calc.ways.launch_flags import (
    NOTHING,
    Asked,
    Piece,
    Rule,
    Version,
    block,
    degrees,
    flag,
    given_pool_as,
    has_experts,
    joined,
    kv_dtype,
    kv_option,
    lacks,
    remark,
    sequences,
    setting,
    weights,
)

VLLM_KV: Mapping[str, tuple[str, Version]] = MappingProxyType(
    {
        "fp8": ("fp8", (0,)),
        "bf16": ("bfloat16", (0, 11)),
        "nvfp4": ("nvfp4", (0, 20)),
        "int8": ("int8_per_token_head", (0, 32)),
        "fp16": ("float16", (0, 32)),
    }
)
"""Cache format → its name and the version from which it is known (``CacheDType`` in vLLM's config; pull request 40177
for NVFP4; the rest as read in 0.10 and 0.32)."""
SGLANG_KV: Mapping[str, tuple[str, Version]] = MappingProxyType({"fp8": ("fp8_e4m3", (0,)), "bf16": ("bf16", (0, 5))})
"""SGLang's server arguments; its ``fp4_e2m1`` scales otherwise than NVFP4."""
TENSORRT_KV: Mapping[str, tuple[str, Version]] = MappingProxyType({"fp8": ("fp8", (0,)), "nvfp4": ("nvfp4", (1, 0))})
"""``KvCacheConfig.dtype`` of TensorRT-LLM's PyTorch backend."""
VLLM_PARALLEL_SINCE: Version = (0, 8)
"""Data and expert parallelism of the V1 engine."""
VLLM_NO_PREFIX_SINCE: Version = (0, 8)
"""``--no-enable-prefix-caching`` came when caching became the default."""
VLLM_NO_CHUNKED_SINCE: Version = (0, 9)
"""Before it a value followed: ``--enable-chunked-prefill=False``."""
VLLM_ASYNC_SINCE: Version = (0, 10)
VLLM_POOL_BYTES_SINCE: Version = (0, 11)
VLLM_SPECULATION_SINCE: Version = (0, 9)
"""``--speculative-config`` as one JSON object; before it there were several flags."""
SGLANG_EP_ALONE_SINCE: Version = (0, 5)
"""Before it ``--enable-ep-moe`` had to be given too."""


def _vllm_ranks(asked: Asked) -> Piece:
    deployment = asked.deployment
    if asked.version < VLLM_PARALLEL_SINCE and (deployment.dp > 1 or deployment.ep):
        return lacks(asked, msg("data or expert parallelism"))
    ranks = flag("--data-parallel-size", deployment.dp) if deployment.dp > 1 else NOTHING
    return joined(ranks, flag("--enable-expert-parallel") if has_experts(deployment) else NOTHING)


def _vllm_speculation(asked: Asked) -> Piece:
    deployment = asked.deployment
    if deployment.spec_method is None:
        return NOTHING
    if asked.version < VLLM_SPECULATION_SINCE:
        return lacks(asked, msg("speculation in this form"))
    config = {"method": deployment.spec_method, "num_speculative_tokens": deployment.spec_tokens}
    return flag("--speculative-config", json.dumps(config))


def _no_speculation(asked: Asked) -> Piece:
    """Other engines take a draft's shape too, which a scenario does not hold."""
    return NOTHING if asked.deployment.spec_method is None else lacks(asked, msg("speculation in this form"))


def _full_history(name: str, since: Version) -> Rule:
    """Local-attention layers kept in full, where that was asked for."""

    def rule(asked: Asked) -> Piece:
        if asked.deployment.hybrid_kv is not False or not asked.deployment.engine.hybrid_kv:
            return NOTHING
        return flag(name) if asked.version >= since else NOTHING

    return rule


def _other_args(asked: Asked) -> Piece:
    if not asked.deployment.other_args:
        return NOTHING
    names = ", ".join(json.loads(asked.deployment.other_args))
    return remark(msg("Kept with the scenario, but not written here: {names}.", names=names))


def _sglang_ranks(asked: Asked) -> Piece:
    """Attention in DP ranks beside experts over all GPUs counts every GPU of the engine as TP."""
    deployment, world = asked.deployment, asked.deployment.tp * asked.deployment.dp
    if not has_experts(deployment):
        plain = flag("--tp-size", deployment.tp) if deployment.tp > 1 else NOTHING
        return joined(plain, flag("--dp-size", deployment.dp) if deployment.dp > 1 else NOTHING)
    pieces = [flag("--tp-size", world), flag("--ep-size", world)]
    if asked.version < SGLANG_EP_ALONE_SINCE:
        pieces += [flag("--enable-ep-moe"), remark(msg("From 0.5 on --ep-size is enough; --enable-ep-moe is gone."))]
    if deployment.dp > 1:
        pieces += [flag("--dp-size", deployment.dp), flag("--enable-dp-attention")]
        pieces.append(
            remark(msg("With --enable-dp-attention SGLang counts all {world:count} GPUs as TP.", world=world))
        )
    return joined(*pieces)


def _tensorrt_ranks(asked: Asked) -> Piece:
    deployment = asked.deployment
    if deployment.dp == 1:
        tp = flag("--tp_size", deployment.tp) if deployment.tp > 1 else NOTHING
        return joined(tp, flag("--ep_size", deployment.tp) if has_experts(deployment) else NOTHING)
    if deployment.tp > 1 or not has_experts(deployment):
        return lacks(asked, msg("data-parallel ranks of this kind (start one server for each rank)"))
    ranks = joined(flag("--tp_size", deployment.dp), flag("--ep_size", deployment.dp))
    return joined(ranks, Piece(yaml={"enable_attention_dp": "true"}))


def _vllm_prefix(asked: Asked) -> Piece:
    wanted = asked.deployment.prefix_caching
    if wanted is None or (wanted is False and asked.version < VLLM_NO_PREFIX_SINCE and not asked.usual.prefix_caching):
        return NOTHING
    return flag("--enable-prefix-caching" if wanted else "--no-enable-prefix-caching")


def _vllm_chunked(asked: Asked) -> Piece:
    wanted = asked.deployment.chunked_prefill
    if wanted is None or wanted:
        return NOTHING if wanted is None else flag("--enable-chunked-prefill")
    if asked.version < VLLM_NO_CHUNKED_SINCE:
        note = msg("From 0.9 on it is spelt --no-enable-chunked-prefill.")
        return Piece(words=("--enable-chunked-prefill=False",), notes=(note,))
    return flag("--no-enable-chunked-prefill")


def _vllm_async(asked: Asked) -> Piece:
    wanted, usual = asked.deployment.engine.async_scheduling, asked.usual.async_scheduling
    if wanted == usual:
        return NOTHING
    if asked.version < VLLM_ASYNC_SINCE:
        return lacks(asked, msg("asynchronous scheduling"))
    return flag("--async-scheduling" if wanted else "--no-async-scheduling")


def _vllm_pool(asked: Asked) -> Piece:
    deployment = asked.deployment
    if deployment.kv_pool_bytes_per_gpu is not None and asked.version >= VLLM_POOL_BYTES_SINCE:
        return flag("--kv-cache-memory-bytes", deployment.kv_pool_bytes_per_gpu)
    if deployment.kv_pool_bytes_per_gpu is None and deployment.kv_tokens is None:
        return NOTHING
    return remark(msg("The pool that was given is not a setting of this version: the engine works out its own."))


def _sglang_chunk(asked: Asked) -> Piece:
    return flag(
        "--chunked-prefill-size", asked.settings.max_num_batched_tokens if asked.settings.chunked_prefill else -1
    )


def _sglang_switches(asked: Asked) -> Piece:
    radix = flag("--disable-radix-cache") if asked.deployment.prefix_caching is False else NOTHING
    differs = asked.usual.async_scheduling and not asked.deployment.engine.async_scheduling
    return joined(radix, flag("--disable-overlap-schedule") if differs else NOTHING)


def _tensorrt_switches(asked: Asked) -> Piece:
    deployment, pieces = asked.deployment, []
    if deployment.prefix_caching is not None:
        pieces.append(kv_option("enable_block_reuse", str(deployment.prefix_caching).lower()))
    if deployment.block_size_tokens is not None:
        pieces.append(kv_option("tokens_per_block", str(deployment.block_size_tokens)))
    if deployment.chunked_prefill is not None:
        pieces.append(Piece(yaml={"enable_chunked_prefill": str(deployment.chunked_prefill).lower()}))
    if asked.usual.async_scheduling != deployment.engine.async_scheduling:
        pieces.append(Piece(yaml={"disable_overlap_scheduler": str(asked.usual.async_scheduling).lower()}))
    return joined(*pieces)


RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "vllm": (
            degrees({"tp": "--tensor-parallel-size", "pp": "--pipeline-parallel-size"}),
            _vllm_ranks,
            setting("memory_fraction", "--gpu-memory-utilization"),
            setting("max_model_len_tokens", "--max-model-len"),
            setting("max_num_batched_tokens", "--max-num-batched-tokens"),
            sequences("--max-num-seqs"),
            kv_dtype(VLLM_KV, lambda name: flag("--kv-cache-dtype", name)),
            weights(in_flight=True),
            block("--block-size"),
            _vllm_prefix,
            _vllm_chunked,
            _vllm_async,
            _vllm_pool,
            _vllm_speculation,
            _full_history("--disable-hybrid-kv-cache-manager", (0, 11)),
            _other_args,
        ),
        "sglang": (
            _sglang_ranks,
            degrees({"pp": "--pp-size"}),
            setting("memory_fraction", "--mem-fraction-static"),
            setting("max_model_len_tokens", "--context-length"),
            _sglang_chunk,
            sequences("--max-running-requests", only_if_asked=True),
            kv_dtype(SGLANG_KV, lambda name: flag("--kv-cache-dtype", name)),
            weights(in_flight=True),
            block("--page-size"),
            _sglang_switches,
            given_pool_as(lambda tokens: flag("--max-total-tokens", tokens)),
            _no_speculation,
            _full_history("--disable-hybrid-swa-memory", (0, 5)),
            _other_args,
        ),
        "tensorrt-llm": (
            _tensorrt_ranks,
            degrees({"pp": "--pp_size"}),
            sequences("--max_batch_size"),
            setting("max_num_batched_tokens", "--max_num_tokens"),
            setting("max_model_len_tokens", "--max_seq_len"),
            setting("memory_fraction", "--kv_cache_free_gpu_memory_fraction"),
            kv_dtype(TENSORRT_KV, lambda name: kv_option("dtype", name)),
            weights(in_flight=False),
            _tensorrt_switches,
            given_pool_as(lambda tokens: kv_option("max_tokens", str(tokens))),
            _no_speculation,
            _other_args,
        ),
    }
)
"""Per engine, in the order of its command line."""
