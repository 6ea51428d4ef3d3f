"""A run as the flat record programs read: milliseconds, shares 0-1, keys absent when not known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from calc.units import MEGA, MIB, MILLI
from data.records import BenchmarkRun, GpuLog, GpuMetrics, LatencyStats, MetricsSnapshot, ReadResult

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
DMON = "nvidia-smi dmon"
"""Source of a log whose busy share is named after the multiprocessors (``sm``)."""
_LATENCIES = ("ttft", "tpot", "itl", "e2e", "queue", "prefill", "decode")
_STATISTIC = re.compile(r"(?:mean|std|min|max|p\d+)_s")
"""What may stand after the point of a further latency; ``p99.9_ttft_s`` is one name."""
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
    """Every load point, metrics snapshot or GPU log of a file."""
    if result.runs:
        return [to_record(run) for run in result.runs]
    if result.gpu_logs:
        return [gpu_log_record(log) for log in result.gpu_logs]
    return [record for snapshot in result.snapshots for record in snapshot_records(snapshot)]


def to_record(run: BenchmarkRun) -> dict[str, Any]:
    """One load point; further facts of the file stand beside the canonical keys unless they share a name.

    A further latency ``name.mean_s`` becomes ``name_ms: {mean}``, a further time ``name_s`` becomes ``name_ms``.
    """
    record = _flat(run, _RENAMED)
    if run.request_rate_is_infinite:
        record["request_rate"] = "inf"
    if run.success_share is not None:
        record["success_pct"] = run.success_share * 100
    return _further(run.extra) | record


def _further(extra: Mapping[str, float | str]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in extra.items():
        name, _, statistic = key.partition(".")
        if _STATISTIC.fullmatch(statistic) and isinstance(value, float):
            record.setdefault(f"{name}_ms", {})[statistic.removesuffix("_s")] = value / MILLI
        elif key.endswith("_s") and not key.endswith("_per_s") and isinstance(value, float):
            record[f"{key.removesuffix('_s')}_ms"] = value / MILLI
        else:
            record[key] = value
    return record


def gpu_log_record(log: GpuLog) -> dict[str, Any]:
    """A log of GPU readings in the words and units of the tools: per cent, MiB, W and degrees Celsius."""
    busy = "sm_pct" if log.source == DMON else "gpu_util_pct"
    record: dict[str, Any] = {
        "source": log.source,
        "samples": log.samples,
        "gpus": log.gpus,
        "names": list(log.names) or None,
        busy: [None if share is None else share * 100 for share in log.busy_shares] or None,
        f"{busy}_mean": _scaled(log.busy_share_mean, 100),
        f"{busy}_max": _scaled(log.busy_share_max, 100),
        "mem_bandwidth_pct_max": _scaled(log.memory_busy_share_max, 100),
        "mem_used_mib_peak": _scaled(log.memory_used_peak_bytes, 1 / MIB),
        "mem_total_mib": _scaled(log.memory_total_bytes, 1 / MIB),
        "power_w_max": log.power_max_w,
        "temp_c_max": log.temperature_max_c,
        "mem_temp_c": log.memory_temperature_max_c,
    }
    return {key: value for key, value in record.items() if value is not None}


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


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
