"""Summary and arguments of ``evalscope perf``; the keys of a summary changed three times.

Latency is in seconds; TTFT, TPOT and ITL are milliseconds in new files and seconds in old ones: the unit stands in the
key. A request rate of -1 is no rate.
"""

from __future__ import annotations

from collections.abc import Mapping

from calc.units import MILLI
from data.formats.document import Document
from data.formats.json_fields import count, number
from data.formats.json_objects import JsonObject, any_object, facts, has_all, latency, read_runs
from data.formats.result import companion
from data.records import BenchmarkRun, LatencyStats, ReadResult

_KEYS: Mapping[str, tuple[str, ...]] = {
    "duration_s": ("Test Duration (s)", "Time taken for tests (s)"),
    "max_concurrency": ("Concurrency", "Number of concurrency"),
    "request_rate": ("Request Rate (req/s)", "Request rate (req/s)"),
    "num_prompts": ("Total Requests", "Total requests", "Expected number of requests"),
    "completed": ("Success Requests", "Succeed requests", "Success requests"),
    "failed": ("Failed Requests", "Failed requests"),
    "request_throughput": ("Req Throughput (req/s)", "Request throughput (req/s)", "Average QPS"),
    "output_throughput": (
        "Output Throughput (tok/s)",
        "Output token throughput (tok/s)",
        "Throughput(average tokens/s)",
        "Throughput(average output tokens per second)",
        "Average output tokens per second",
    ),
    "total_throughput": ("Total Throughput (tok/s)", "Total token throughput (tok/s)"),
    "input_throughput": ("Input Throughput (tok/s)", "Input token throughput (tok/s)"),
    "input_tokens": ("Avg Input Tokens", "Average input tokens per request"),
    "output_tokens": ("Avg Output Tokens", "Average output tokens per request"),
    "e2e": ("Avg Latency (s)", "Average latency (s)"),
    "ttft": ("Avg TTFT (ms)", "TTFT (ms)", "Avg TTFT (s)", "Average time to first token (s)"),
    "tpot": ("Avg TPOT (ms)", "TPOT (ms)", "Avg TPOT (s)", "Average time per output token (s)"),
    "itl": ("Avg ITL (ms)", "ITL (ms)", "Avg ITL (s)", "Average inter-token latency (s)"),
    "hit_rate": ("KV Cache Hit Rate (%)", "Average approx KV cache hit rate (%)"),
    "turns": ("Avg Turns/Request", "Average input turns per request"),
}
"""What a figure is called, newest first."""
_NEW = "Test Duration (s)"
_LATENCIES = ("ttft", "tpot", "itl", "e2e")
_FACTS = {
    "package_latency_s": "Average package latency (s)",
    "packages_mean": "Average package per request",
    "decoded_tokens_per_iteration": "Decoded Tok/Iter",
    "spec_accept_share": "Spec. Accept Rate",
}
_PERCENT = 100.0
_ROUNDING = 0.02
"""TPOT x output throughput is 1 within this where one is the other's inverse."""
_ARGUMENTS = ("url", "parallel", "number", "api", "dataset")


def is_summary(document: Document) -> bool:
    """True for ``benchmark_summary.json``."""
    return any_object(document, _has_summary)


def read_summary(document: Document) -> ReadResult:
    """The load point of a summary."""
    new = any_object(document, lambda item: _NEW in item)
    code = "evalscope_summary" if new else "evalscope_summary_old"
    return read_runs(document, code, signature=_has_summary, run=_summary)


def is_arguments(document: Document) -> bool:
    """True for ``benchmark_args.json``."""
    return any_object(document, lambda item: has_all(item, _ARGUMENTS))


def read_arguments(document: Document) -> ReadResult:
    """Nothing that was measured: settings of the run whose summary lies beside it."""
    return companion(document, "evalscope_args")


def _has_summary(item: JsonObject) -> bool:
    named = _NEW in item or "Time taken for tests (s)" in item
    return named and any(key in item for key in _KEYS["completed"])


def _summary(item: JsonObject) -> BenchmarkRun:
    completed, prompt = _number(item, "completed"), _number(item, "input_tokens")
    rate, users = _number(item, "request_rate"), _number(item, "max_concurrency")
    hits, input_rate = _number(item, "hit_rate"), _number(item, "input_throughput")
    return BenchmarkRun(
        tool="evalscope perf" if _NEW in item else "evalscope perf (old)",
        request_rate_per_s=rate if rate is not None and rate > 0 else None,
        request_rate_is_infinite=rate is not None and rate < 0,
        max_concurrency=round(users) if users is not None and users > 0 else None,
        num_prompts=_count(item, "num_prompts"),
        completed=_count(item, "completed"),
        failed=_count(item, "failed"),
        duration_s=_number(item, "duration_s"),
        input_tokens_mean=prompt,
        output_tokens_mean=_number(item, "output_tokens"),
        request_throughput_per_s=_number(item, "request_throughput"),
        input_token_throughput_per_s=None if input_rate == 0 and prompt else input_rate,
        output_token_throughput_per_s=_number(item, "output_throughput"),
        total_token_throughput_per_s=_number(item, "total_throughput"),
        prefix_hit_share=None if hits is None else hits / _PERCENT,
        ttft=_latency(item, "ttft") if completed else None,
        tpot=_latency(item, "tpot") if completed and not _is_of_all_requests(item) else None,
        itl=_latency(item, "itl") if completed else None,
        e2e=_latency(item, "e2e") if completed else None,
        extra=facts(item, _FACTS),
        flags=_flags(item, completed),
    )


def _key(item: JsonObject, name: str) -> str:
    """The first key of this meaning that the file has."""
    return next((key for key in _KEYS[name] if key in item), _KEYS[name][0])


def _number(item: JsonObject, name: str) -> float | None:
    return number(item, _key(item, name))


def _count(item: JsonObject, name: str) -> int | None:
    return count(item, _key(item, name))


def _latency(item: JsonObject, name: str) -> LatencyStats | None:
    key = _key(item, name)
    return latency(item, {"mean_s": key}, MILLI if key.endswith("(ms)") else 1.0)


def _is_of_all_requests(item: JsonObject) -> bool:
    """In the releases of 2024 TPOT is 1 / output throughput: the time between any two tokens, whoever gets them."""
    gap, rate, users = _number(item, "tpot"), _number(item, "output_throughput"), _number(item, "max_concurrency")
    if not gap or not rate or not users or users <= 1 or _key(item, "tpot").endswith("(ms)"):
        return False
    return abs(gap * rate - 1) < _ROUNDING


def _flags(item: JsonObject, completed: float | None) -> tuple[str, ...]:
    zero = bool(completed) and any(_number(item, name) == 0 for name in _LATENCIES)
    flags = ["zero_may_be_missing"] if zero else []
    turns = _number(item, "turns")
    if turns is not None and turns > 1:
        flags.append("prompts_shared")
    return tuple(flags)
