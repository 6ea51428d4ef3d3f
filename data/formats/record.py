"""A run as the flat record programs read: milliseconds, shares 0-1, keys absent when not known."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from calc.units import MEGA, MILLI
from data.records import BenchmarkRun, GpuMetrics, LatencyStats, MetricsSnapshot, ReadResult

_RENAMED = {
    "gpu_count": "n_gpus",
    "request_rate_per_s": "request_rate",
    "request_throughput_per_s": "request_throughput",
    "input_token_throughput_per_s": "input_token_throughput",
    "output_token_throughput_per_s": "output_token_throughput",
    "total_token_throughput_per_s": "total_token_throughput",
    "ambiguous_throughput_per_s": "throughput_ambiguous",
    "prefix_hit_share": "prefix_cache_hit_rate",
    "kv_usage_share": "kv_usage_frac",
    "requests_running": "running",
    "requests_waiting": "waiting",
    "prefix_queries_tokens": "prefix_cache_queries",
    "prefix_hits_tokens": "prefix_cache_hits",
}
_SNAPSHOT_RENAMED = _RENAMED | {"output_tokens_total": "generation_tokens_total"}
_LATENCIES = ("ttft", "tpot", "itl", "e2e", "queue", "prefill", "decode")
_NOT_FLAT = frozenset(
    {
        *_LATENCIES,
        "extra",
        "line",
        "flags",
        "request_rate_is_infinite",
        "histograms",
        "settings",
        "gpus",
        "success_share",
    }
)


def records(result: ReadResult) -> list[dict[str, Any]]:
    """Every load point, or every metrics snapshot, of a file."""
    if result.runs:
        return [to_record(run) for run in result.runs]
    return [record for snapshot in result.snapshots for record in snapshot_records(snapshot)]


def to_record(run: BenchmarkRun) -> dict[str, Any]:
    """One load point; further facts of the file stand beside the canonical keys unless they share a name."""
    record = _flat(run, _RENAMED)
    if run.request_rate_is_infinite:
        record["request_rate"] = "inf"
    if run.success_share is not None:
        record["success_pct"] = run.success_share * 100
    return dict(run.extra) | record


def snapshot_records(snapshot: MetricsSnapshot) -> list[dict[str, Any]]:
    """One record of an engine's metrics, or one a GPU when only GPUs were exported."""
    engine = _flat(snapshot, _SNAPSHOT_RENAMED)
    if snapshot.gpus and set(engine) <= {"source", "taken_at_s"}:
        return [_gpu(gpu) for gpu in snapshot.gpus]
    return [engine]


def _flat(run: BenchmarkRun | MetricsSnapshot, renamed: dict[str, str]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for field in fields(run):
        value = getattr(run, field.name)
        if field.name in _LATENCIES:
            record |= _latency(field.name, value)
        elif field.name not in _NOT_FLAT and value not in (None, ""):
            record[renamed.get(field.name, field.name)] = value
    return record


def _latency(name: str, stats: LatencyStats | None) -> dict[str, dict[str, float]]:
    if stats is None:
        return {}
    known = {key.removesuffix("_s"): value / MILLI for key, value in asdict(stats).items() if value is not None}
    return {f"{name}_ms": known} if known else {}


def _gpu(gpu: GpuMetrics) -> dict[str, Any]:
    """Clocks in MHz, as every GPU tool prints them."""
    record = {key: value for key, value in asdict(gpu).items() if value is not None}
    for key, name in (("sm_clock_hz", "sm_clock_mhz"), ("memory_clock_hz", "mem_clock_mhz")):
        if key in record:
            record[name] = record.pop(key) / MEGA
    if "memory_temperature_c" in record:
        record["memory_temp_c"] = record.pop("memory_temperature_c")
    return record
