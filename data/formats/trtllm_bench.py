"""Report of ``trtllm-bench --report_json``: requests handed to the engine in the process, times in milliseconds.

``streaming_metrics`` (TTFT, TPOT) is there only with ``--streaming``. Requests are all submitted at the start unless a
concurrency caps them; the report does not name the cap, but the mean number in flight shows it.
"""

from __future__ import annotations

from calc.units import MILLI
from data.formats.document import Document
from data.formats.json_fields import count, number, text
from data.formats.json_objects import JsonObject, any_object, facts, has_all, latency, part, read_runs
from data.records import BenchmarkRun, LatencyStats, ReadResult

ALL_AT_ONCE_SHARE = 0.25
"""Requests in flight on the mean as a share of all. Sent at once and served evenly it is about a half; a cap that
lets through a quarter of all requests at a time is no other load."""
_STATS = {"mean_s": "average", "p50_s": "p50", "p90_s": "p90", "p95_s": "p95", "p99_s": "p99"}
_ENGINE_FACTS = {
    "backend": "backend",
    "dtype": "dtype",
    "kv_cache_dtype": "kv_cache_dtype",
    "quantization": "quantization",
}
_WORLD_FACTS = {
    "tp_size": "tp_size",
    "pp_size": "pp_size",
    "max_batch_size": "max_batch_size",
    "max_num_tokens": "max_num_tokens",
    "scheduling_policy": "scheduling_policy",
    "kv_cache_share": "kv_cache_percentage",
}


def looks_like(document: Document) -> bool:
    """True when one object has the report's parts."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """The load point of the report."""
    return read_runs(document, "trtllm_bench_report", signature=_has_signature, run=_run)


def _has_signature(item: JsonObject) -> bool:
    return has_all(item, ("engine", "world_info")) and "system_output_throughput_tok_s" in part(item, "performance")


def _run(item: JsonObject) -> BenchmarkRun:
    engine, world, requests = part(item, "engine"), part(item, "world_info"), part(item, "request_info")
    performance, streaming = part(item, "performance"), part(item, "streaming_metrics")
    answered, in_flight = count(requests, "num_requests"), number(requests, "avg_num_concurrent_requests")
    total_ms = number(performance, "total_latency_ms")
    at_once = bool(answered and in_flight and in_flight > ALL_AT_ONCE_SHARE * answered)
    return BenchmarkRun(
        tool="trtllm-bench",
        tool_version=text(engine, "version"),
        model=text(engine, "model"),
        engine="TensorRT-LLM",
        gpu=text(part(item, "machine"), "name"),
        gpu_count=_gpus(world),
        completed=answered,
        duration_s=None if total_ms is None else total_ms * MILLI,
        achieved_concurrency=in_flight,
        input_tokens_mean=number(requests, "avg_input_length"),
        output_tokens_mean=number(requests, "avg_output_length"),
        request_throughput_per_s=number(performance, "request_throughput_req_s"),
        output_token_throughput_per_s=number(performance, "system_output_throughput_tok_s"),
        total_token_throughput_per_s=number(performance, "system_total_throughput_tok_s"),
        ttft=_stats(part(streaming, "ttft_percentiles"), streaming, "avg_ttft_ms"),
        tpot=_stats(part(streaming, "tpot_percentiles"), streaming, "avg_tpot_ms"),
        e2e=_stats(part(performance, "request_latency_percentiles_ms"), performance, "avg_request_latency_ms"),
        extra=facts(engine, _ENGINE_FACTS) | facts(world, _WORLD_FACTS),
        flags=("all_at_once",) if at_once else (),
    )


def _stats(percentiles: JsonObject, above: JsonObject, mean_key: str) -> LatencyStats | None:
    """Percentiles with their average, else with the mean written beside them."""
    return latency({"average": above.get(mean_key), **percentiles}, _STATS, MILLI)


def _gpus(world: JsonObject) -> int | None:
    """As written, else the product of the parallel sizes, when both are there."""
    tensor, pipeline = count(world, "tp_size"), count(world, "pp_size")
    return count(world, "world_size") or (tensor * pipeline if tensor and pipeline else None)
