"""Results of SGLang's ``bench_serving``: JSON Lines to which every run appends one object.

Times end in ``_ms``, ``duration`` and the arrays of ``--output-details`` are seconds. The early schema of 2025 has
medians only. The model is not named: ``server_info`` holds a path on the server, which is kept as a hint.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from calc.units import MILLI
from data.formats.document import Document
from data.formats.json_fields import count, number, text
from data.formats.json_objects import JsonObject, any_object, facts, has_zero, latency, part, per, read_runs
from data.formats.vllm_details import Details, from_details
from data.records import BenchmarkRun, LatencyStats, ReadResult

_STATS = {"mean_s": "mean", "p50_s": "median", "std_s": "std", "p90_s": "p90", "p95_s": "p95", "p99_s": "p99"}
_LATENCIES = {
    ours: {stat: f"{prefix}_{theirs}_ms" for stat, prefix in _STATS.items()}
    for ours, theirs in {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e_latency"}.items()
}
_SHARED_PREFIXES = frozenset({"generated-shared-prefix", "mooncake"})
"""Data sets whose prompts share prefixes by design."""
_FACTS = {
    "dataset": "dataset_name",
    "tag": "tag",
    "spec_accept_len": "accept_length",
    "input_tokens_nominal": "random_input_len",
    "output_tokens_nominal": "random_output_len",
    "output_tokens_retokenized": "total_output_tokens_retokenized",
    "max_output_tokens_per_s": "max_output_tokens_per_s",
}
_SERVER_FACTS = {
    "server_model_path": "model_path",
    "server_version": "version",
    "server_tp_size": "tp_size",
    "server_dp_size": "dp_size",
}


def looks_like(document: Document) -> bool:
    """True when one object has the tool's keys."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """Every run that was appended to the file."""
    return read_runs(document, "sglang_bench_serving_jsonl", signature=_has_signature, run=_run)


def _has_signature(item: JsonObject) -> bool:
    named = "median_e2e_latency_ms" in item or "total_output_tokens_retokenized" in item
    return named and "completed" in item and ("backend" in item or "total_output_tokens_retokenized" in item)


def _run(item: JsonObject) -> BenchmarkRun:
    completed, duration = count(item, "completed"), number(item, "duration")
    tokens_in, tokens_out = count(item, "total_input_tokens"), count(item, "total_output_tokens")
    rate = item.get("request_rate")
    details = from_details(item)
    latencies = _latencies(item, details) if completed else {}
    sent, failed = _failures(item, completed)
    return BenchmarkRun(
        tool="sglang bench_serving",
        backend=text(item, "backend"),
        request_rate_per_s=None if rate == "trace" else number(item, "request_rate"),
        request_rate_is_infinite=rate in (math.inf, "inf", "Infinity"),
        max_concurrency=count(item, "max_concurrency"),
        num_prompts=sent,
        completed=completed,
        failed=failed,
        duration_s=duration,
        input_tokens_total=tokens_in,
        output_tokens_total=tokens_out,
        input_tokens_mean=per(tokens_in, completed),
        output_tokens_mean=per(tokens_out, completed),
        request_throughput_per_s=_written(item, "request_throughput", per(completed, duration)),
        input_token_throughput_per_s=_written(item, "input_throughput", per(tokens_in, duration)),
        output_token_throughput_per_s=_written(item, "output_throughput", per(tokens_out, duration)),
        total_token_throughput_per_s=_written(item, "total_throughput", _total(tokens_in, tokens_out, duration)),
        achieved_concurrency=number(item, "concurrency"),
        peak_concurrency=count(item, "max_concurrent_requests"),
        extra=_extra(item, details),
        flags=_flags(item, completed),
        **latencies,
    )


def _written(item: JsonObject, key: str, derived: float | None) -> float | None:
    """As written, else from counts and duration, its definition."""
    written = number(item, key)
    return derived if written is None else written


def _total(tokens_in: int | None, tokens_out: int | None, duration: float | None) -> float | None:
    return None if tokens_in is None or tokens_out is None else per(tokens_in + tokens_out, duration)


def _latencies(item: JsonObject, details: Details) -> dict[str, Any]:
    """Statistics as written, and those the arrays of single requests add."""
    found: dict[str, LatencyStats] = {}
    for ours, names in _LATENCIES.items():
        stats = latency(item, names, MILLI)
        known = {} if stats is None else {key: value for key, value in asdict(stats).items() if value is not None}
        complete = details.complete(ours, known)
        if complete:
            found[ours] = LatencyStats(**complete)
    return found


def _failures(item: JsonObject, completed: int | None) -> tuple[int | None, int | None]:
    """Requests sent and failed: only ``--output-details`` lists every request, with its error or an empty text."""
    errors = item.get("errors")
    if not isinstance(errors, list) or not errors or completed is None or len(errors) < completed:
        return None, None
    return len(errors), len(errors) - completed


def _extra(item: JsonObject, details: Details) -> dict[str, float | str]:
    arrivals: dict[str, float | str] = {"arrivals": "trace"} if item.get("request_rate") == "trace" else {}
    server = facts(part(item, "server_info"), _SERVER_FACTS)
    return facts(item, _FACTS) | server | arrivals | details.further()


def _flags(item: JsonObject, completed: int | None) -> tuple[str, ...]:
    flags = ["zero_may_be_missing"] if completed and has_zero(item, _LATENCIES.values()) else []
    if text(item, "dataset_name") in _SHARED_PREFIXES:
        flags.append("prompts_shared")
    return tuple(flags)
