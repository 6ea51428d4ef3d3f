"""Results of ``vllm bench latency`` and ``vllm bench throughput``: one batch in the process, no server, in seconds.

Both tools write a twin for the PyTorch dashboard beside the result (``*.pytorch.json``): it holds the same figures.
"""

from __future__ import annotations

from array import array
from dataclasses import asdict
from typing import Any

import numpy as np

from data.formats.document import Document
from data.formats.json_fields import count, number
from data.formats.json_objects import JsonObject, any_object, has_all, latency, part, read_runs
from data.formats.request_figures import column, stats_of
from data.formats.result import companion
from data.records import BenchmarkRun, LatencyStats, ReadResult

MIN_ITERATIONS = 30
"""The tool's own default of iterations; a mean over fewer is not settled."""
AGREES = 0.01
"""Largest relative difference between the mean of the listed latencies and the one written."""
_PERCENTILES = {"p50_s": "50", "p90_s": "90", "p95_s": "95", "p99_s": "99"}
_THROUGHPUT = ("elapsed_time", "num_requests", "requests_per_second", "tokens_per_second")
_TWIN = ("benchmark", "model", "metric")


def is_latency(document: Document) -> bool:
    """True for ``vllm bench latency``."""
    return any_object(document, _has_latency)


def read_latency(document: Document) -> ReadResult:
    """The time of one batch over the iterations."""
    return read_runs(document, "vllm_bench_latency_json", signature=_has_latency, run=_latency_run)


def is_throughput(document: Document) -> bool:
    """True for ``vllm bench throughput``."""
    return any_object(document, _has_throughput)


def read_throughput(document: Document) -> ReadResult:
    """All requests handed over at once, in the process; prompt and output tokens are not told apart."""
    return read_runs(document, "vllm_bench_throughput_json", signature=_has_throughput, run=_throughput_run)


def is_twin(document: Document) -> bool:
    """True for the copy of a result in the form of the PyTorch dashboard."""
    return any_object(document, _is_twin)


def read_twin(document: Document) -> ReadResult:
    """Nothing: the result it repeats is the file to give."""
    return companion(document, "vllm_bench_pytorch_json")


def _has_latency(item: JsonObject) -> bool:
    return "avg_latency" in item and ("percentiles" in item or "latencies" in item)


def _has_throughput(item: JsonObject) -> bool:
    return has_all(item, _THROUGHPUT)


def _is_twin(item: JsonObject) -> bool:
    return has_all(item, _TWIN) and all(isinstance(item[key], dict) for key in _TWIN)


def _latency_run(item: JsonObject) -> BenchmarkRun:
    values = item.get("latencies")
    iterations = len(values) if isinstance(values, list | array) else None
    few = iterations is not None and iterations < MIN_ITERATIONS
    return BenchmarkRun(
        tool="vllm bench latency",
        e2e=_latency_stats(item, values),
        extra={} if iterations is None else {"iterations": float(iterations)},
        flags=("not_serving", "few_requests") if few else ("not_serving",),
    )


def _latency_stats(item: JsonObject, values: Any) -> LatencyStats | None:
    """As written; percentiles that are missing come from the listed latencies when those agree with the mean."""
    written = latency(item, {"mean_s": "avg_latency", "std_s": "std_latency"}, 1.0)
    percentiles = latency(part(item, "percentiles"), _PERCENTILES, 1.0)
    listed = stats_of(column(values)) if isinstance(values, list | array) else None
    if written is None or written.mean_s is None:
        return listed
    if listed is not None and not np.isclose(listed.mean_s or 0.0, written.mean_s, rtol=AGREES):
        listed = None
    known = _known(listed) | _known(percentiles) | _known(written)
    return LatencyStats(**known)


def _known(stats: LatencyStats | None) -> dict[str, float]:
    return {} if stats is None else {key: value for key, value in asdict(stats).items() if value is not None}


def _throughput_run(item: JsonObject) -> BenchmarkRun:
    sent = count(item, "num_requests")
    return BenchmarkRun(
        tool="vllm bench throughput",
        num_prompts=sent,
        completed=sent,
        failed=0 if sent is not None else None,
        duration_s=number(item, "elapsed_time"),
        request_throughput_per_s=number(item, "requests_per_second"),
        total_token_throughput_per_s=number(item, "tokens_per_second"),
        flags=("not_serving",),
    )
