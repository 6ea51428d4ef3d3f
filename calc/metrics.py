"""The named metrics a decision can rest on: unit, layer of the service, and meaning. One table, one wording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from calc.messages import Message, msg


class Layer(StrEnum):
    """Where in the service a metric is read."""

    CACHE = "cache"
    RESOURCE = "resource"
    SERVICE = "service"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric. Units: bytes, s, tokens, share (0-1), ratio, count, per_s, flag, text, currency …"""

    name: str
    unit: str
    layer: Layer
    meaning: Message


_CACHE = (
    ("kv_pool_bytes", "bytes", msg("KV pool of one GPU")),
    ("kv_demand_bytes", "bytes", msg("KV bytes needed on one GPU at peak concurrency")),
    ("kv_demand_ratio", "ratio", msg("KV demand / KV pool")),
    ("kv_request_bytes", "bytes", msg("KV bytes of one request of mean length on one GPU")),
    ("kv_tokens", "tokens", msg("KV pool of one replica in tokens, as the engine logs it")),
    ("kv_usage_mean_share", "share", msg("Mean KV usage")),
    ("kv_usage_max_share", "share", msg("Highest KV usage")),
    ("kv_waste_share", "share", msg("Allocated KV memory that holds no token")),
    ("block_tokens", "tokens", msg("Cache block (smallest prefix that can be reused)")),
    ("prefix_caching", "flag", msg("Prefix caching")),
    ("hit_rate_share", "share", msg("Prompt tokens found in the prefix cache")),
    ("prefix_share", "share", msg("Prompt tokens that repeat an earlier beginning")),
    ("reuse_gap_share", "share", msg("Prompt tokens that repeat and are not hit")),
    ("reuse_gain_share", "share", msg("Share of TTFT that closing this gap can save")),
    ("prefix_tokens", "tokens", msg("Length of the shared prefix")),
    ("prefix_lifetime_s", "s", msg("Time until a content update invalidates a prefix")),
    ("reuse_interval_s", "s", msg("Typical time between two uses of the same prefix")),
    ("prompts_stable", "flag", msg("Prompts begin with the same text each time")),
    ("tenants_may_share", "flag", msg("Tenants may share cached prefixes")),
    ("cache_complexity_accepted", "flag", msg("Cache management is accepted")),
    ("one_off_share", "share", msg("Cached tokens that are never read again")),
    ("preempted_share", "share", msg("Preemptions per request")),
    ("rebuild_share", "share", msg("Prefill tokens computed again after an eviction")),
    ("memory_not_released", "flag", msg("KV usage stays high after requests end")),
    ("offload", "flag", msg("KV offload to CPU memory, disk or a remote store")),
    ("offload_tail_ratio", "ratio", msg("P99 with offload / without")),
    ("transfer_bytes_per_s", "bytes/s", msg("Rate at which KV is fetched")),
    ("break_even_bytes_per_s", "bytes/s", msg("Fetch rate that beats recomputing")),
    ("transfer_share", "share", msg("Time spent moving KV")),
)

_RESOURCE = (
    ("gpu_memory_bytes", "bytes", msg("Memory of one GPU as the driver shows it")),
    ("weights_bytes", "bytes", msg("Weights on one GPU")),
    ("weights_share", "share", msg("Weights / GPU memory")),
    (
        "runtime_share",
        "share",
        msg("Activations, CUDA context, buffers and graphs as a share of GPU memory"),
    ),
    ("margin_bytes", "bytes", msg("GPU memory outside the engine's budget")),
    ("over_bytes", "bytes", msg("Over the budget of a GPU")),
    ("fits", "flag", msg("Fits in memory")),
    ("start_failed", "flag", msg("Start refused for lack of memory")),
    ("runtime_oom", "flag", msg("Out of memory while serving, outside the KV pool")),
    ("oom_count", "count", msg("Out-of-memory events seen")),
    ("gpu_utilisation_share", "share", msg("GPU busy (duty cycle, not efficiency)")),
    ("gpu_power_share", "share", msg("GPU power / its limit")),
    ("gpu_memory_peak_bytes", "bytes", msg("Most memory used on one GPU, the engine's reserve included")),
    ("gpu_imbalance_share", "share", msg("How far the GPUs of the deployment differ in use or memory")),
    ("cpu_utilisation_share", "share", msg("Busiest CPU core of the engine")),
    ("models_on_gpu", "count", msg("Models or versions that share the GPU")),
    ("gpu_count", "count", msg("GPUs of the deployment")),
    ("tp", "count", msg("Tensor-parallel degree")),
    ("pp", "count", msg("Pipeline-parallel degree")),
    ("replicas", "count", msg("Engine replicas")),
    ("routing", "text", msg("How requests find a replica: round_robin, random, load, prefix or prefix_and_load")),
    ("local_layers_share", "share", msg("Layers that attend to a window only")),
    ("link", "text", msg("Link between the GPUs of a replica")),
    ("one_gpu_weights_share", "share", msg("All weights of a replica / memory of one GPU")),
    ("pd_split", "flag", msg("Prefill and decode run on separate workers")),
    ("bound", "text", msg("What binds at this load")),
)

_SERVICE = (
    ("request_rate_per_s", "per_s", msg("Requests offered per second, all replicas")),
    ("max_rate_per_s", "per_s", msg("Requests per second beyond which queues grow without bound")),
    ("rho", "ratio", msg("Offered rate / maximum rate")),
    ("saturated", "flag", msg("More is offered than can be served")),
    ("concurrency", "count", msg("Mean requests in the deployment")),
    ("running", "count", msg("Requests running per replica")),
    ("waiting", "count", msg("Requests waiting per replica")),
    ("max_num_seqs", "count", msg("Running requests allowed (max_num_seqs)")),
    ("seqs_used_share", "share", msg("Allowed running requests in use")),
    ("max_num_batched_tokens", "tokens", msg("Token budget of a step (max_num_batched_tokens)")),
    ("chunked_prefill", "flag", msg("Chunked prefill")),
    ("prompt_p50_tokens", "tokens", msg("Prompt tokens, P50")),
    ("prompt_p99_tokens", "tokens", msg("Prompt tokens, P99")),
    ("prompt_tail_ratio", "ratio", msg("Prompt tokens P99 / P50")),
    ("output_p50_tokens", "tokens", msg("Output tokens, P50")),
    *(
        (f"{latency}_{stat}_s", "s", msg("{latency}, {stat}", latency=label, stat=stat_label))
        for latency, label in (("ttft", "TTFT"), ("itl", "ITL"), ("tpot", "TPOT"), ("e2e", "E2E"))
        for stat, stat_label in (("mean", msg("mean")), ("p50", "P50"), ("p90", "P90"), ("p95", "P95"), ("p99", "P99"))
    ),
    ("ttft_tail_ratio", "ratio", msg("TTFT P99 / P50")),
    ("itl_tail_ratio", "ratio", msg("ITL P99 / P50")),
    ("itl_rise_ratio", "ratio", msg("ITL now / ITL at a slightly lower load")),
    ("unloaded_ttft_s", "s", msg("TTFT on an idle server")),
    ("unloaded_itl_s", "s", msg("ITL on an idle server")),
    ("unloaded_e2e_s", "s", msg("E2E on an idle server")),
    ("queue_s", "s", msg("Mean time in the queue")),
    ("prefill_s", "s", msg("Mean time in prefill")),
    ("decode_s", "s", msg("Mean time in decode")),
    ("network_s", "s", msg("Mean time on the network and in the client")),
    ("queue_share", "share", msg("Queue time / E2E")),
    ("prefill_share", "share", msg("GPU busy time spent on prefill")),
    ("mixed_step_share", "share", msg("Output tokens made beside a prefill")),
    ("output_tokens_per_s", "tokens/s", msg("Output tokens per second, all replicas")),
    ("ttft_slo_s", "s", msg("TTFT target")),
    ("itl_slo_s", "s", msg("ITL target")),
    ("e2e_slo_s", "s", msg("E2E target")),
    ("slo_percentile_share", "share", msg("Percentile of the targets")),
    ("ttft_target_ratio", "ratio", msg("TTFT / its target")),
    ("itl_target_ratio", "ratio", msg("ITL / its target")),
    ("e2e_target_ratio", "ratio", msg("E2E / its target")),
    ("worst_target_ratio", "ratio", msg("Tightest latency / its target")),
    (
        "unloaded_target_ratio",
        "ratio",
        msg("Tightest latency on an idle server / its target"),
    ),
    ("slo_attainment_share", "share", msg("Requests that meet every target")),
    ("knee_per_s", "per_s", msg("Highest rate that meets the SLO")),
    ("headroom_share", "share", msg("Load that can be added")),
    ("rejected_share", "share", msg("Requests rejected or failed")),
    ("timeout_share", "share", msg("Requests that timed out")),
    ("long_context_required", "flag", msg("The long context cannot be cut")),
    ("demand_steady", "flag", msg("Demand is steady, not a burst")),
    ("multi_tenant", "flag", msg("Tenants share the deployment")),
    ("offline_mixed", "flag", msg("Offline batches share the replicas")),
    ("speculation", "flag", msg("Speculative decoding")),
    ("run_invalid", "flag", msg("The benchmark run cannot be used as it stands")),
    ("cost_per_hour", "currency", msg("Cost of the deployment per hour")),
    ("cost_per_million_tokens", "currency", msg("Cost per million output tokens")),
    ("cost_per_slo_request", "currency", msg("Cost per request that meets the SLO")),
    (
        "carrying_cost_per_million_tokens",
        "currency",
        msg("Cost per million output tokens of the cheapest way that carries the load"),
    ),
    ("cost_limit_per_million_tokens", "currency", msg("Highest accepted cost per million output tokens")),
    ("levers_tried", "count", msg("Levers simulated")),
    ("levers_carrying", "count", msg("Levers that carry the load within the SLO, with headroom")),
)


def _table() -> Iterator[Metric]:
    for layer, rows in ((Layer.CACHE, _CACHE), (Layer.RESOURCE, _RESOURCE), (Layer.SERVICE, _SERVICE)):
        for name, unit, meaning in rows:
            yield Metric(name=name, unit=unit, layer=layer, meaning=meaning)


_SHOWN: Mapping[str, str] = MappingProxyType(
    {
        "bytes": "{value:gib}",
        "bytes/s": "{value:gbps}",
        "s": "{value:s}",
        "tokens": "{value:tok}",
        "tokens/s": "{value:toks}",
        "share": "{value:pct}",
        "per_s": "{value:rate}",
        "ratio": "{value:.2f}",
        "count": "{value:.4g}",
        "currency": "{value:.2f}",
    }
)
"""How a figure is written, by unit; the sentence around it says what it is."""


def shown(metric: str, value: float) -> Message:
    """A figure of ``metric`` with its display unit."""
    return Message(_SHOWN.get(METRICS[metric].unit, "{value}"), {"value": value})


METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _table()})
"""Every metric a condition may ask for, by name."""
