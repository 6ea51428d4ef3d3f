"""Reports of GuideLLM as JSON or YAML, 0.2 to today: one load point a benchmark of its sweep.

Keys ending in ``_ms`` are milliseconds, ``request_latency`` seconds. Statistics are those of successful requests; the
median of a rate is one of instants, so only its mean is taken. Requests with their texts are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from calc.units import MILLI
from data.formats.collect import below, first_text, known, own_latency, utc_text
from data.formats.document import Document
from data.formats.guidellm_terms import flags_of, is_prefix_shared, load_of
from data.formats.json_fields import count, number, text
from data.formats.json_objects import JsonObject, first_objects, latency, objects, part
from data.formats.pieces import read_pieces
from data.records import BenchmarkRun, LatencyStats, ReadResult

_NAMES = {"mean_s": "mean", "p50_s": "median", "p90_s": "p90", "p95_s": "p95", "p99_s": "p99", "std_s": "std_dev"}


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """One benchmark and the report it stands in."""

    benchmark: JsonObject
    report: JsonObject


def looks_like(document: Document) -> bool:
    """True when a benchmark of the file splits its time to first token by success."""
    return next(_pieces(first_objects(document)), None) is not None


def read(document: Document) -> ReadResult:
    """Every benchmark of the report."""
    recent = any(_is_recent(piece) for _, piece in _pieces(objects(document)))
    code = "guidellm_json_v2" if recent else "guidellm_json_v1"
    return read_pieces(document, code, _pieces(objects(document)), _run)


def _is_recent(piece: _Piece) -> bool:
    """As the report numbers itself; without a number, benchmarks with a ``config`` are of the second kind."""
    version = part(piece.report, "metadata").get("version")
    return version != 1 if version in (1, 2) else "config" in piece.benchmark


def _pieces(reports: Iterable[tuple[int, JsonObject]]) -> Iterator[tuple[int, _Piece]]:
    for line, report in reports:
        benchmarks = report.get("benchmarks")
        for benchmark in benchmarks if isinstance(benchmarks, list) else ():
            if "successful" in below(benchmark, "metrics", "time_to_first_token_ms"):
                yield line, _Piece(benchmark=benchmark, report=report)


def _run(piece: _Piece) -> BenchmarkRun:
    benchmark, metrics = piece.benchmark, part(piece.benchmark, "metrics")
    totals = _totals(benchmark)
    completed, failed, incomplete = (count(totals, key) for key in ("successful", "errored", "incomplete"))
    strategy = below(benchmark, "config", "strategy") or below(benchmark, "args", "strategy")
    profile = below(benchmark, "config", "profile") or below(benchmark, "args", "profile")
    load = load_of(
        text(strategy, "type_") or text(strategy, "kind") or "",
        rate=number(strategy, "rate"),
        streams=count(strategy, "streams"),
        cap=count(profile, "max_concurrency"),
    )
    found = _latencies(metrics) if completed != 0 else {}
    including_first = found.pop("guidellm_tpot_incl_first", None)
    return BenchmarkRun(
        tool="guidellm",
        tool_version=text(part(piece.report, "metadata"), "guidellm_version"),
        model=_model(piece),
        backend=first_text(*(below(benchmark, "config", "backend").get(key) for key in ("kind", "type_"))),
        date=utc_text(benchmark.get("start_time")),
        request_rate_per_s=load.rate_per_s,
        request_rate_is_infinite=load.all_at_once,
        max_concurrency=load.concurrency,
        num_prompts=_sum(completed, failed, incomplete),
        completed=completed,
        failed=failed,
        incomplete=incomplete,
        duration_s=_duration(benchmark),
        input_tokens_total=count(_successful(metrics, "prompt_token_count"), "total_sum"),
        output_tokens_total=count(_successful(metrics, "output_token_count"), "total_sum"),
        input_tokens_mean=_mean(metrics, "prompt_token_count"),
        output_tokens_mean=_mean(metrics, "output_token_count"),
        achieved_concurrency=_mean(metrics, "request_concurrency"),
        request_throughput_per_s=_mean(metrics, "requests_per_second"),
        input_token_throughput_per_s=_mean(metrics, "prompt_tokens_per_second"),
        output_token_throughput_per_s=_mean(metrics, "output_tokens_per_second"),
        total_token_throughput_per_s=_mean(metrics, "tokens_per_second"),
        ttft=found.get("ttft"),
        tpot=found.get("tpot"),
        e2e=found.get("e2e"),
        extra={"strategy": load.strategy}
        | known(input_tokens_p50=number(_successful(metrics, "prompt_token_count"), "median"))
        | own_latency("itl", found.get("tpot"))
        | own_latency("guidellm_tpot_incl_first", including_first),
        flags=flags_of(including_first is not None, shared=is_prefix_shared(_data(piece))),
    )


def _latencies(metrics: JsonObject) -> dict[str, LatencyStats]:
    found = {
        "ttft": _latency(metrics, "time_to_first_token_ms", MILLI),
        "tpot": _latency(metrics, "inter_token_latency_ms", MILLI),
        "e2e": _latency(metrics, "request_latency", 1.0),
        "guidellm_tpot_incl_first": _latency(metrics, "time_per_output_token_ms", MILLI),
    }
    return {name: stats for name, stats in found.items() if stats is not None}


def _latency(metrics: JsonObject, key: str, unit_s: float) -> LatencyStats | None:
    found = _successful(metrics, key)
    percentiles = part(found, "percentiles")
    return latency({"median": percentiles.get("p50"), **percentiles, **found}, _NAMES, unit_s)


def _successful(metrics: JsonObject, key: str) -> JsonObject:
    return below(metrics, key, "successful")


def _mean(metrics: JsonObject, key: str) -> float | None:
    """The mean over successful requests; a mean over none is written as 0 and is not known."""
    found = _successful(metrics, key)
    return None if found.get("count") == 0 else number(found, "mean")


def _totals(benchmark: JsonObject) -> JsonObject:
    """Requests by outcome, where this version writes them."""
    places = (
        below(benchmark, "metrics", "request_totals"),
        below(benchmark, "request_totals"),
        below(benchmark, "scheduler_metrics", "requests_made"),
        below(benchmark, "run_stats", "requests_made"),
    )
    return next((place for place in places if "successful" in place), {})


def _sum(*counts: int | None) -> int | None:
    known = [value for value in counts if value is not None]
    return sum(known) if known else None


def _duration(benchmark: JsonObject) -> float | None:
    """As written, else from the first start to the last end."""
    written = number(benchmark, "duration")
    start, end = number(benchmark, "start_time"), number(benchmark, "end_time")
    if written is not None or start is None or end is None or end <= start:
        return written
    return end - start


def _model(piece: _Piece) -> str | None:
    return first_text(
        below(piece.benchmark, "config", "backend").get("model"),
        part(piece.benchmark, "worker").get("backend_model"),
        below(piece.report, "config", "spec", "backend").get("model"),
        part(piece.report, "args").get("model"),
    )


def _data(piece: _Piece) -> Any:
    """Where the prompts came from: a list of sources, one source, or its short text form."""
    report, benchmark = piece.report, piece.benchmark
    places = (
        below(report, "config", "spec").get("data"),
        part(report, "args").get("data"),
        part(benchmark, "request_loader").get("data"),
    )
    return next((place for place in places if place), None)
