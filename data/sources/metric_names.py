"""What exporters call each figure of a snapshot: vLLM (V0, V1, current), SGLang, TensorRT-LLM and Triton.

Newest name first; a family that tells its figures apart by one label is written ``family:label value``. Sources: the
collectors of vLLM (v1/metrics/loggers.py), SGLang (srt/metrics/collector.py), TensorRT-LLM (metrics/collector.py) and
the Triton backend's custom_metrics_reporter.
"""

from __future__ import annotations

from collections.abc import Mapping

FOLDED: Mapping[str, str] = {
    "nv_trt_llm_request_metrics": "request_type",
    "nv_trt_llm_kv_cache_block_metrics": "kv_cache_block_type",
    "nv_trt_llm_runtime_memory_metrics": "memory_type",
}
"""Families of the Triton backend whose figures differ by this label."""

ADDED: Mapping[str, tuple[str, ...]] = {
    "requests_running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "trtllm_num_requests_running",
        "trtllm_num_active_requests",
        "nv_trt_llm_request_metrics:scheduled",
        "nv_trt_llm_request_metrics:active",
    ),
    "requests_waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "trtllm_num_requests_waiting",
        "trtllm_num_queued_requests",
        "trtllm_server_queue_length",
        "nv_trt_llm_request_metrics:waiting",
    ),
    "max_running": ("trtllm_max_num_active_requests", "nv_trt_llm_request_metrics:max"),
    "prompt_tokens_per_s": ("vllm:avg_prompt_throughput_toks_per_s",),
    "output_tokens_per_s": ("vllm:avg_generation_throughput_toks_per_s", "sglang:gen_throughput"),
    "prefix_queries_tokens": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits_tokens": (
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
        "sglang:cached_tokens_total",
        "trtllm_prompt_cached_tokens_total",
        "trtllm_prompt_tokens_cached_total",
    ),
    "preemptions_total": ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total"),
    "prompt_tokens_total": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "trtllm_prompt_tokens_total"),
    "output_tokens_total": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "trtllm_generation_tokens_total",
    ),
    "evicted_tokens_total": ("sglang:evicted_tokens_total",),
    "offload_stored_bytes_total": ("vllm:kv_offload_store_bytes_total",),
    "offload_loaded_bytes_total": ("vllm:kv_offload_load_bytes_total",),
    "offload_loading_s_total": ("vllm:kv_offload_load_time_total", "sglang:load_back_duration_seconds_sum"),
    "offload_loaded_tokens_total": ("vllm:external_prefix_cache_hits_total", "sglang:load_back_tokens_total"),
    "kv_capacity_tokens": ("sglang:max_total_num_tokens",),
    "cpu_seconds_total": ("process_cpu_seconds_total",),
    "cpu_memory_bytes": ("process_resident_memory_bytes", "trtllm_cpu_memory_usage_bytes"),
}
"""Snapshot field → metric names; each engine of a server has its own part, ranks of one engine repeat it."""

LARGEST: Mapping[str, tuple[str, ...]] = {
    "kv_usage_share": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "sglang:token_usage",
        "trtllm_kv_cache_utilization",
        "nv_trt_llm_kv_cache_block_metrics:fraction",
    ),
    "prefix_hit_share": ("vllm:gpu_prefix_cache_hit_rate", "sglang:cache_hit_rate", "trtllm_kv_cache_hit_rate"),
    "host_cache_usage_share": (
        "vllm:kv_offload_cpu_cache_usage_perc",
        "vllm:cpu_cache_usage_perc",
        "trtllm_kv_cache_host_utilization",
    ),
    "started_at_s": ("process_start_time_seconds",),
}
"""Shares (their names say percent, their values are 0-1) and moments: the largest counts."""

COUNTERS = (
    "prefix_queries_tokens",
    "prefix_hits_tokens",
    "preemptions_total",
    "prompt_tokens_total",
    "output_tokens_total",
    "requests_finished_total",
    "requests_aborted_total",
    "evicted_tokens_total",
    "offload_stored_bytes_total",
    "offload_loaded_bytes_total",
    "offload_loading_s_total",
    "offload_loaded_tokens_total",
    "cpu_seconds_total",
)
"""Snapshot fields that only grow while the server runs."""

HISTOGRAMS: Mapping[str, tuple[str, ...]] = {
    "ttft": (
        "vllm:time_to_first_token_seconds",
        "sglang:time_to_first_token_seconds",
        "trtllm_time_to_first_token_seconds",
    ),
    "itl": (
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
        "sglang:time_per_output_token_seconds",
    ),
    "tpot": ("vllm:request_time_per_output_token_seconds", "trtllm_time_per_output_token_seconds"),
    "e2e": (
        "vllm:e2e_request_latency_seconds",
        "sglang:e2e_request_latency_seconds",
        "trtllm_e2e_request_latency_seconds",
    ),
    "queue": ("vllm:request_queue_time_seconds", "sglang:queue_time_seconds", "trtllm_request_queue_time_seconds"),
    "prefill": ("vllm:request_prefill_time_seconds", "trtllm_request_prefill_time_seconds"),
    "decode": ("vllm:request_decode_time_seconds", "trtllm_request_decode_time_seconds"),
}
"""Latency histograms."""

LIFETIME = "block_lifetime"
LIFETIMES = ("vllm:kv_block_lifetime_seconds",)
"""How long sampled cache blocks live; a histogram without a latency of its own."""

FINISHED = (
    "sglang:num_requests_total",
    "trtllm_request_success_total",
    "trtllm_num_requests_completed_total",
    "nv_inference_request_success",
)
ABORTED = ("sglang:num_aborted_requests_total", "trtllm_request_error_total", "nv_inference_request_failure")
SUCCESS_BY_REASON = "vllm:request_success_total"

TRT_BLOCKS = ("trtllm_kv_cache_max_blocks", "nv_trt_llm_kv_cache_block_metrics:max")
TRT_USED = ("trtllm_kv_cache_used_blocks", "nv_trt_llm_kv_cache_block_metrics:used")
TRT_BLOCK_TOKENS = ("trtllm_kv_cache_tokens_per_block", "nv_trt_llm_kv_cache_block_metrics:tokens_per")
TRT_REUSED, TRT_MISSED = ("trtllm_kv_cache_reused_blocks_total",), ("trtllm_kv_cache_missed_blocks_total",)
HOST_USED, HOST_TOTAL = ("sglang:hicache_host_used_tokens",), ("sglang:hicache_host_total_tokens",)
VLLM_SETTINGS, SGLANG_SETTINGS = "vllm:cache_config_info", "sglang:cache_config_info"
TRT_SETTINGS = "trtllm_cache_config_info"

LEGACY = frozenset({"vllm:gpu_cache_usage_perc", "vllm:avg_generation_throughput_toks_per_s"})
"""Names that vLLM has given up."""

_HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")
_GPU_PREFIXES = ("DCGM_FI_", "nv_gpu_")


def _plain() -> frozenset[str]:
    single = (
        SUCCESS_BY_REASON, VLLM_SETTINGS, SGLANG_SETTINGS, TRT_SETTINGS, *FINISHED, *ABORTED, *TRT_BLOCKS, *TRT_USED,
        *TRT_BLOCK_TOKENS, *TRT_REUSED, *TRT_MISSED, *HOST_USED, *HOST_TOTAL,
    )  # fmt: skip
    listed = (name for table in (ADDED, LARGEST) for names in table.values() for name in names)
    histograms = (name for names in (*HISTOGRAMS.values(), LIFETIMES) for name in names)
    parts = (f"{name}{part}" for name in histograms for part in _HISTOGRAM_PARTS)
    return frozenset(name.partition(":")[0] if name.startswith("nv_") else name for name in (*single, *listed, *parts))


_KNOWN = _plain()


def own_name(name: str) -> str:
    """One name for what differs by prefix: older Dynamo releases write ``trtllm:`` for ``trtllm_``."""
    return name.replace(":", "_", 1) if name.startswith("trtllm:") else name


def is_known(name: str) -> bool:
    """Whether a metric says something that a snapshot keeps; all others are skipped unread."""
    name = own_name(name)
    return name in _KNOWN or name.startswith(_GPU_PREFIXES)
