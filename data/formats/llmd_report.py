"""Benchmark reports of llm-d, versions 0.1 and 0.2, as YAML or JSON: every statistic names its unit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from calc.messages import msg
from calc.units import MILLI, SECONDS_PER_HOUR, SECONDS_PER_MINUTE
from data.formats.collect import below, first_text, known, own_latency, utc_text
from data.formats.document import Document
from data.formats.guidellm_terms import flags_of
from data.formats.json_fields import MAX_TEXT, count, number, text
from data.formats.json_objects import JsonObject, any_object, latency, objects, part
from data.formats.pieces import read_pieces
from data.formats.row_checks import RefusedRow
from data.records import BenchmarkRun, LatencyStats, ReadResult

_UNIT_S = {"ms": MILLI, "s": 1.0, "ms/token": MILLI, "s/token": 1.0}
_NAMES = {"mean_s": "mean", "p50_s": "p50", "p90_s": "p90", "p95_s": "p95", "p99_s": "p99", "std_s": "stddev"}
_LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "e2e": "request_latency",
    "e2e_per_output_token": "normalized_time_per_output_token",
}
_TPOT_WITH_FIRST = "guidellm"
"""A load generator whose TPOT is E2E over all tokens; its ITL is the usual TPOT."""
_MODEL_PLACES = (
    ("server", "model_name"),
    ("endpoint", "model_names"),
    ("spec", "backend", "model"),
    ("args", "model"),
    ("model",),
)
"""Where the load generators' own settings name the model: inference-perf, AIPerf, GuideLLM (two), vLLM."""
_DURATION = re.compile(r"^P(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)$")


@dataclass(frozen=True, kw_only=True)
class _Stack:
    """What served the requests."""

    model: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    gpu: str | None = None
    gpu_count: int | None = None


def looks_like(document: Document) -> bool:
    """True when an object is a report of one of these versions."""
    return any_object(document, lambda item: _version(item) is not None)


def read(document: Document) -> ReadResult:
    """One load point a report."""
    pieces = [(line, item) for line, item in objects(document) if _version(item) is not None]
    code = f"llmd_benchmark_report_v{_version(pieces[0][1])}"
    return read_pieces(document, code, pieces, _run)


def _version(item: JsonObject) -> str | None:
    """``0.1`` or ``0.2``; a report without results of requests is none."""
    version = str(item.get("version"))[:3]
    if version == "0.1" and part(item, "metrics") and "scenario" in item:
        return version
    return version if version == "0.2" and below(item, "results", "request_performance", "aggregate") else None


def _run(item: JsonObject) -> BenchmarkRun:
    recent = _version(item) == "0.2"
    figures = below(item, "results", "request_performance", "aggregate") if recent else part(item, "metrics")
    time = below(item, "run", "time") if recent else part(figures, "time")
    load, stack = below(item, "scenario", "load"), _stack_2(item) if recent else _stack_1(item)
    asked, requests = part(load, "standardized"), part(figures, "requests")
    total, failed, incomplete = (count(requests, key) for key in ("total", "failures", "incomplete"))
    completed = _completed(total, failed, incomplete)
    found = dict(_latencies(part(figures, "latency"))) if completed != 0 else {}
    tool = _harness(load)
    including_first = tool is not None and _TPOT_WITH_FIRST in tool and "tpot" in found
    gaps = found.pop("itl", None)
    if including_first:
        found["e2e_per_output_token"] = found.pop("tpot")
    tpot, itl = (gaps, None) if including_first else (found.get("tpot"), gaps)
    rates, rate = part(figures, "throughput"), asked.get("rate_qps")
    return BenchmarkRun(
        tool="llm-d-benchmark",
        model=stack.model or _native_model(load),
        engine=stack.engine,
        gpu=stack.gpu,
        gpu_count=stack.gpu_count,
        date=utc_text(time.get("start")) or utc_text(time.get("end")),
        request_rate_per_s=number(asked, "rate_qps"),
        request_rate_is_infinite=_is_unlimited(rate),
        max_concurrency=_users(asked),
        num_prompts=total,
        completed=completed,
        failed=failed,
        incomplete=incomplete,
        duration_s=_duration(time),
        input_tokens_mean=number(part(requests, "input_length"), "mean"),
        output_tokens_mean=number(part(requests, "output_length"), "mean"),
        request_throughput_per_s=_rate(rates, "request_rate", "requests_per_sec"),
        input_token_throughput_per_s=_rate(rates, "input_token_rate", "input_tokens_per_sec"),
        output_token_throughput_per_s=_rate(rates, "output_token_rate", "output_tokens_per_sec"),
        total_token_throughput_per_s=_rate(rates, "total_token_rate", "total_tokens_per_sec"),
        ttft=found.get("ttft"),
        tpot=tpot,
        itl=itl,
        e2e=found.get("e2e"),
        extra=_further(load)
        | known(engine_version=stack.engine_version, input_tokens_p50=number(part(requests, "input_length"), "p50"))
        | own_latency("itl", gaps if including_first else None)
        | own_latency("e2e_per_output_token", found.get("e2e_per_output_token")),
        flags=flags_of(including_first, shared=_is_shared(asked)),
    )


def _completed(total: int | None, failed: int | None, incomplete: int | None) -> int | None:
    """The report counts what was sent, what failed and what was cut off."""
    if total is None or failed is None:
        return None
    completed = total - failed - (incomplete or 0)
    return completed if completed >= 0 else None


def _latencies(item: JsonObject) -> Iterator[tuple[str, LatencyStats]]:
    for ours, theirs in _LATENCIES.items():
        statistics = part(item, theirs)
        stats = latency(statistics, _NAMES, _unit_s(statistics, theirs)) if statistics else None
        if stats is not None:
            yield ours, stats


def _unit_s(statistics: JsonObject, name: str) -> float:
    unit = str(statistics.get("units"))
    if unit not in _UNIT_S:
        raise RefusedRow(
            msg(
                "{name} has the unit {unit!r}: ms or s was expected, write the report again.",
                name=name,
                unit=unit[:MAX_TEXT],
            )
        )
    return _UNIT_S[unit]


def _rate(throughput: JsonObject, *names: str) -> float | None:
    """A rate under its name in 0.2, where it has statistics, or in 0.1, where it is a plain number."""
    for name in names:
        if name in throughput:
            return number(part(throughput, name) or {"mean": throughput[name]}, "mean")
    return None


def _users(asked: JsonObject) -> int | None:
    """Concurrency; ``.inf`` is no limit."""
    return None if _is_unlimited(asked.get("concurrency")) else count(asked, "concurrency")


def _is_unlimited(value: Any) -> bool:
    """``.inf``, as a number or in words."""
    return value == inf or (isinstance(value, str) and value.strip(".+").lower() in {"inf", "infinity"})


def _duration(time: JsonObject) -> float | None:
    """Seconds of a number, or of a text such as ``PT1M12.5S``."""
    written = time.get("duration")
    match = _DURATION.match(written) if isinstance(written, str) else None
    if match is None:
        return number(time, "duration")
    hours, minutes, seconds = (float(group) if group else 0.0 for group in match.groups())
    return hours * SECONDS_PER_HOUR + minutes * SECONDS_PER_MINUTE + seconds


def _further(load: JsonObject) -> dict[str, float | str]:
    return known(harness=_harness(load), stage=number(part(load, "standardized"), "stage"))


def _harness(load: JsonObject) -> str | None:
    """The load generator behind the report."""
    tool = first_text(load.get("name"), part(load, "standardized").get("tool"))
    return tool and tool[:MAX_TEXT]


def _native_model(load: JsonObject) -> str | None:
    """The model in the load generator's own settings, when the report does not describe what served."""
    settings = below(load, "native", "config")
    for *way, last in _MODEL_PLACES:
        named = below(settings, *way).get(last)
        model = first_text(*named) if isinstance(named, list) else first_text(named)
        if model is not None:
            return model[:MAX_TEXT]
    return None


def _is_shared(asked: JsonObject) -> bool:
    return bool(part(asked, "prefix")) or part(asked, "multi_turn").get("enabled") is True


def _stack_1(item: JsonObject) -> _Stack:
    """Version 0.1: lists of accelerators and engines, one entry a pod."""
    accelerators = list(_mappings(below(item, "scenario", "host").get("accelerator")))
    engines = list(_mappings(below(item, "scenario", "platform").get("engine")))
    counts = [count(each, "count") for each in accelerators]
    return _Stack(
        model=text(below(item, "scenario", "model"), "name"),
        engine=_one(text(each, "name") for each in engines),
        engine_version=_one(text(each, "version") for each in engines),
        gpu=_one(text(each, "model") for each in accelerators),
        gpu_count=_sum(counts),
    )


def _stack_2(item: JsonObject) -> _Stack:
    """Version 0.2: components, of which the inference engines count with their replicas."""
    parts = [part(each, "standardized") for each in _mappings(part(item, "scenario").get("stack"))]
    engines = [each for each in parts if each.get("kind") == "inference_engine"]
    counts = [(count(part(each, "accelerator"), "count") or 0) * (count(each, "replicas") or 1) for each in engines]
    return _Stack(
        model=_one(text(part(each, "model"), "name") for each in engines),
        engine=_one(text(each, "tool") for each in engines),
        engine_version=_one(text(each, "tool_version") for each in engines),
        gpu=_one(text(part(each, "accelerator"), "model") for each in engines),
        gpu_count=sum(counts) if counts and all(counts) else None,
    )


def _sum(counts: list[int | None]) -> int | None:
    """All of them, when every entry says how many it has."""
    stated = [value for value in counts if value]
    return sum(stated) if stated and len(stated) == len(counts) else None


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    for entry in value if isinstance(value, list) else (value,):
        if isinstance(entry, dict):
            yield entry


def _one(names: Iterator[str | None]) -> str | None:
    """The name, when all agree."""
    found = {name for name in names if name}
    return found.pop() if len(found) == 1 else None
