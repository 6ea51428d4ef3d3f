"""Reports of inference-perf: one stage, all stages pooled, or what the server's own metrics said. All times in seconds.

``time_per_output_token`` leaves the first token out, ``normalized_time_per_output_token`` is E2E over all tokens and
``inter_token_latency`` pools every gap.
"""

from __future__ import annotations

from data.formats.collect import known, own_latency
from data.formats.document import Document
from data.formats.json_fields import count, number
from data.formats.json_objects import JsonObject, any_object, latency, objects, part, per, read_runs
from data.records import BenchmarkRun, LatencyStats, ReadResult

LIFECYCLE, PROMETHEUS = "inference_perf_lifecycle", "inference_perf_prometheus"
NAMES = {"mean_s": "mean", "p50_s": "median", "p90_s": "p90", "p95_s": "p95", "p99_s": "p99"}
_LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "e2e": "request_latency",
}
_SERVER_PARTS = {
    "queue": "request_queue_time",
    "prefill": "request_prefill_time",
    "decode": "request_decode_time",
}
_STAGE, _SUMMARY = "stage", "summary"
"""In the tool's own names of files: ``stage_0_lifecycle_metrics.json``, ``summary_prometheus_metrics.json``."""
_NO_UNIT_SAID = ("kv_cache_usage_percentage", "prefix_cache_hit_percent", "num_preemptions_total")
"""Server figures that are also written as 0 when the metric was not found."""


def looks_like(document: Document) -> bool:
    """True when an object holds a load summary and successes."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """One load point of each report."""
    first = next(item for _, item in objects(document) if _has_signature(item))
    server, name = _is_server_side(first), document.name.lower()
    pooled, of_stage = _SUMMARY in name, _STAGE in name and _SUMMARY not in name
    return read_runs(
        document,
        PROMETHEUS if server else LIFECYCLE,
        signature=_has_signature,
        run=lambda item: _server_run(item, pooled=pooled) if server else _run(item, of_stage=of_stage),
    )


def _has_signature(item: JsonObject) -> bool:
    successes = item.get("successes")
    if not isinstance(successes, dict) or not isinstance(item.get("load_summary"), dict):
        return False
    return "latency" in successes or _is_server_side(item)


def _is_server_side(item: JsonObject) -> bool:
    successes = part(item, "successes")
    return "latency" not in successes and "request_latency" in successes


def _run(item: JsonObject, *, of_stage: bool) -> BenchmarkRun:
    """What the client measured."""
    load, successes = part(item, "load_summary"), part(item, "successes")
    completed, failed = count(successes, "count"), count(part(item, "failures"), "count")
    throughput, delay = part(successes, "throughput"), part(load, "schedule_delay")
    users = count(load, "concurrency")
    found = _latencies(part(successes, "latency"), _LATENCIES) if completed != 0 else {}
    per_token = _latencies(part(successes, "latency"), {"per_token": "normalized_time_per_output_token"})
    return BenchmarkRun(
        tool="inference-perf",
        request_rate_per_s=number(load, "requested_rate") if users is None else None,
        max_concurrency=users,
        num_prompts=count(load, "count") or _sum(completed, failed),
        completed=completed,
        failed=failed,
        duration_s=number(item, "benchmark_time_seconds") or number(load, "send_duration"),
        input_tokens_total=count(part(successes, "prompt_tokens"), "total"),
        output_tokens_total=count(part(successes, "output_tokens"), "total"),
        input_tokens_mean=_mean(successes, "prompt_len", "prompt_tokens"),
        output_tokens_mean=_mean(successes, "output_tokens", "output_len"),
        request_throughput_per_s=number(throughput, "requests_per_sec"),
        input_token_throughput_per_s=number(throughput, "input_tokens_per_sec"),
        output_token_throughput_per_s=number(throughput, "output_tokens_per_sec"),
        total_token_throughput_per_s=number(throughput, "total_tokens_per_sec"),
        prefix_hit_share=_hit_share(part(successes, "prompt_tokens")),
        ttft=found.get("ttft"),
        tpot=found.get("tpot"),
        itl=found.get("itl"),
        e2e=found.get("e2e"),
        extra=known(
            achieved_rate=number(load, "achieved_rate"),
            input_tokens_p50=number(part(successes, "prompt_len") or part(successes, "prompt_tokens"), "median"),
            schedule_delay_mean_s=number(delay, "mean"),
            schedule_delay_p99_s=number(delay, "p99"),
        )
        | own_latency("e2e_per_output_token", per_token.get("per_token")),
        flags=() if of_stage or _is_one_stage(load) else ("mixed_stages",),
    )


def _is_one_stage(load: JsonObject) -> bool:
    """Of recent versions only the report of a stage says which load was asked for; of others its name tells."""
    return any(key in load for key in ("requested_rate", "achieved_rate", "send_duration", "concurrency"))


def _hit_share(prompt_tokens: JsonObject) -> float | None:
    """Cached prompt tokens as servers report them; many report 0 for "not said", so 0 is not known."""
    cached, total = number(prompt_tokens, "cached"), number(prompt_tokens, "total")
    return per(cached, total) if cached else None


def _server_run(item: JsonObject, *, pooled: bool) -> BenchmarkRun:
    """What Prometheus said over the same time; its token counts are not lengths of requests."""
    successes = part(item, "successes")
    found = _latencies(successes, _LATENCIES)
    figures = {key: number(part(successes, key), "mean") for key in _NO_UNIT_SAID}
    hit, usage = figures["prefix_cache_hit_percent"], _usage_share(figures["kv_cache_usage_percentage"])
    parts = _latencies(successes, _SERVER_PARTS)
    zero = any(value == 0 for value in figures.values()) or _zero_latency(successes)
    named = {"server_side": True, "zero_may_be_missing": zero, "mixed_stages": pooled}
    return BenchmarkRun(
        tool="inference-perf (server side)",
        completed=count(successes, "count"),
        request_throughput_per_s=number(successes, "rate"),
        input_token_throughput_per_s=number(part(successes, "prompt_len"), "rate"),
        output_token_throughput_per_s=number(part(successes, "output_len"), "rate"),
        prefix_hit_share=hit / 100 if hit else None,
        kv_usage_share=usage or None,
        ttft=found.get("ttft"),
        tpot=found.get("tpot"),
        itl=found.get("itl"),
        e2e=found.get("e2e"),
        extra=known(
            prefix_cache_hit_pct=hit,
            kv_usage_pct=None if usage is None else usage * 100,
            preemptions=figures["num_preemptions_total"],
            queue_len_mean=number(part(successes, "queue_len"), "mean"),
        )
        | {key: value for name, stats in parts.items() for key, value in own_latency(name, stats).items()},
        flags=tuple(code for code, fires in named.items() if fires),
    )


def _usage_share(usage: float | None) -> float | None:
    """The engine's gauge runs from 0 to 1, whatever the name says; a server that counts per cent goes beyond."""
    return usage / 100 if usage is not None and usage > 1 else usage


def _zero_latency(successes: JsonObject) -> bool:
    return any(number(part(successes, key), "mean") == 0 for key in _LATENCIES.values())


def _latencies(item: JsonObject, names: dict[str, str]) -> dict[str, LatencyStats]:
    """Latencies that were measured; without streaming the tool writes null for TTFT, TPOT and ITL."""
    found = {ours: latency(part(item, theirs), NAMES, 1.0) for ours, theirs in names.items()}
    return {ours: stats for ours, stats in found.items() if stats is not None}


def _mean(successes: JsonObject, *names: str) -> float | None:
    found = (number(part(successes, name), "mean") for name in names)
    return next((value for value in found if value is not None), None)


def _sum(completed: int | None, failed: int | None) -> int | None:
    return None if completed is None or failed is None else completed + failed
