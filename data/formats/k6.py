"""Summaries of k6: of ``handleSummary``, of the older ``--summary-export``, and as PowerShell flattens either.

Milliseconds; only whole requests are timed. ``http_req_failed`` counts a failed request as a pass.
"""

from __future__ import annotations

import re
from typing import Any

from calc.units import MILLI
from data.formats.document import Document
from data.formats.json_fields import count, number
from data.formats.json_objects import JsonObject, any_object, latency, part, per, read_runs
from data.records import BenchmarkRun, ReadResult

_NAMES = {"mean_s": "avg", "p50_s": "med", "p90_s": "p(90)", "p95_s": "p(95)", "p99_s": "p(99)"}
_FLATTENED = re.compile(r"^@\{(.*)\}$", re.DOTALL)
_MEASURED = ("http_req_duration", "http_reqs", "iteration_duration")


def looks_like(document: Document) -> bool:
    """True when an object holds k6's own metrics."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """One load point: all requests of the test, whatever they asked for."""
    return read_runs(document, "k6_summary", signature=_has_signature, run=_run)


def _has_signature(item: JsonObject) -> bool:
    metrics = _object(item.get("metrics"))
    return "http_req_duration" in metrics and sum(name in metrics for name in _MEASURED) > 1


def _run(item: JsonObject) -> BenchmarkRun:
    metrics = _object(item.get("metrics"))
    requests, failures = _values(metrics, "http_reqs"), _values(metrics, "http_req_failed")
    sent, rate, failed = count(requests, "count"), number(requests, "rate"), _failed(failures, count(requests, "count"))
    completed = sent - failed if sent is not None and failed is not None and failed <= sent else None
    run_ms = number(part(item, "state"), "testRunDurationMs")
    users = number(_values(metrics, "vus_max"), "max") or number(_values(metrics, "vus_max"), "value")
    return BenchmarkRun(
        tool="k6",
        num_prompts=sent,
        completed=completed,
        failed=failed,
        duration_s=per(sent, rate) if run_ms is None else run_ms * MILLI,
        request_throughput_per_s=rate,
        e2e=latency(_values(metrics, "http_req_duration"), _NAMES, MILLI) if completed != 0 else None,
        extra={} if users is None else {"vus_max": users},
        flags=("no_token_metrics", "failures_in_percentiles") if failed else ("no_token_metrics",),
    )


def _failed(failures: JsonObject, sent: int | None) -> int | None:
    """Counted, or as a share of all requests."""
    counted, share = count(failures, "passes"), number(failures, "rate")
    if counted is not None or share is None or sent is None or not 0 <= share <= 1:
        return counted
    return round(share * sent)


def _values(metrics: JsonObject, name: str) -> JsonObject:
    """Figures of a metric: below ``values`` in the newer form, beside its name in the older."""
    metric = _object(metrics.get(name))
    return _object(metric.get("values")) or metric


def _object(value: Any) -> JsonObject:
    """An object, also one that PowerShell wrote as ``@{avg=1.5; p(95)=3}``; an empty one for anything else."""
    if isinstance(value, dict):
        return value
    match = _FLATTENED.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        return {}
    pairs = (entry.partition("=") for entry in match[1].split(";"))
    return {name.strip(): figure.strip() for name, sign, figure in pairs if sign and figure.strip()}
