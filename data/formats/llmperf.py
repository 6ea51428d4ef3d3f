"""Results of llmperf's token benchmark: the summary and the individual responses, all in seconds.

Its inter-token latency is the mean over all chunks from the start of the request, so it counts the first token (until
a change that no release has). TPOT is computed again: (E2E - TTFT) / (output tokens - 1). Its throughput of a single
request counts chunks in the releases of 2023, so it disagrees with tokens / E2E.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from calc.units import SECONDS_PER_MINUTE
from data.formats.document import Document
from data.formats.json_fields import count, number, text
from data.formats.json_objects import JsonObject, any_object, facts, has_all, latency, objects, part, per, read_runs
from data.formats.request_columns import RequestColumns
from data.formats.request_figures import column, figure, summed_up
from data.formats.result import finish
from data.formats.row_checks import RefusedRow, check_row
from data.records import BenchmarkRun, LatencyStats, ReadResult, RowProblem

CHUNKS_COUNTED_UNTIL = datetime(2024, 1, 1, tzinfo=UTC)
"""Runs before this date come from a release whose per-request throughput counts chunks."""
THROUGHPUT_TOLERANCE = 0.05
"""Relative difference between a request's throughput times its E2E and its tokens."""
FIRST_TOKEN_TOLERANCE = 0.03
"""ITL x output tokens reaches E2E within this when the first token is counted."""
EQUAL_LENGTHS = 0.05
"""Spread of the output length (standard deviation / mean) below which means give the mean TPOT."""
_QUANTILES = {
    "mean_s": "mean",
    "p50_s": "quantiles_p50",
    "p90_s": "quantiles_p90",
    "p95_s": "quantiles_p95",
    "p99_s": "quantiles_p99",
    "std_s": "stddev",
}
_REQUEST = ("ttft_s", "end_to_end_latency_s", "number_output_tokens")
_COLUMNS = {
    "ttft_s": "ttft_s",
    "e2e_s": "end_to_end_latency_s",
    "input_tokens": "number_input_tokens",
    "output_tokens": "number_output_tokens",
}
_FACTS = {
    "input_tokens_nominal": "mean_input_tokens",
    "output_tokens_nominal": "mean_output_tokens",
    "model_size": "model_size",
}


def is_summary(document: Document) -> bool:
    """True for the summary of a run."""
    return any_object(document, _has_summary)


def read_summary(document: Document) -> ReadResult:
    """The load point of a summary."""
    return read_runs(document, "llmperf_summary", signature=_has_summary, run=_summary)


def is_individual(document: Document) -> bool:
    """True for the list of single responses."""
    return any_object(document, _is_request)


def read_individual(document: Document) -> ReadResult:
    """Single responses, summed up into their load point."""
    run = _individual(item for _, item in objects(document) if _is_request(item))
    problems: list[RowProblem] = list(document.problems)
    runs: list[BenchmarkRun] = []
    try:
        check_row(run)
        runs.append(run)
    except RefusedRow as refused:
        problems.append(RowProblem(line=1, reason=refused.reason))
    return finish(document, "llmperf_individual", runs, problems, ("per_request_file",))


def _has_summary(item: JsonObject) -> bool:
    return "results_ttft_s_mean" in item or "results_end_to_end_latency_s_mean" in item or "ttft_s" in _nested(item)


def _nested(item: JsonObject) -> JsonObject:
    """Some collections keep ``results`` as an object instead of flattening it."""
    return part(item, "results")


def _is_request(item: JsonObject) -> bool:
    return has_all(item, _REQUEST)


def _summary(item: JsonObject) -> BenchmarkRun:
    item = _flat(item)
    completed = count(item, "results_num_completed_requests")
    per_minute = number(item, "results_num_completed_requests_per_min")
    rate = None if per_minute is None else per_minute / SECONDS_PER_MINUTE
    latencies = {
        name: latency(item, {ours: f"results_{key}_{theirs}" for ours, theirs in _QUANTILES.items()}, 1.0)
        for name, key in {"ttft": "ttft_s", "itl": "inter_token_latency_s", "e2e": "end_to_end_latency_s"}.items()
    }
    tokens = number(item, "results_number_output_tokens_mean")
    run = BenchmarkRun(
        tool="llmperf",
        model=text(item, "model"),
        engine=text(item, "framework"),
        max_concurrency=count(item, "num_concurrent_requests"),
        num_prompts=count(item, "results_num_requests_started"),
        completed=completed,
        failed=count(item, "results_number_errors"),
        duration_s=per(completed, rate),
        input_tokens_mean=number(item, "results_number_input_tokens_mean"),
        output_tokens_mean=tokens,
        request_throughput_per_s=rate,
        output_token_throughput_per_s=number(item, "results_mean_output_throughput_token_per_s"),
        extra=facts(item, _FACTS),
        ttft=latencies["ttft"],
        itl=latencies["itl"],
        e2e=latencies["e2e"],
        tpot=_mean_tpot(item, latencies["ttft"], latencies["e2e"], tokens),
    )
    per_request = number(item, "results_request_output_throughput_token_per_s_mean")
    return replace(run, flags=_flags(run, per_request, counts_chunks=_of_chunk_counting_release(item)))


def _flat(item: JsonObject) -> JsonObject:
    """``results`` below the summary written as the flattened keys of the tool's own file."""
    flat = dict(item)
    for name, value in _nested(item).items():
        if not isinstance(value, dict):
            flat[f"results_{name}"] = value
            continue
        for key, inner in value.items():
            below = inner if isinstance(inner, dict) else {}
            flat |= {f"results_{name}_{key}_{last}": number for last, number in below.items()}
            flat[f"results_{name}_{key}"] = inner
    return flat


def _mean_tpot(
    item: JsonObject, ttft: LatencyStats | None, e2e: LatencyStats | None, tokens: float | None
) -> LatencyStats | None:
    """From the means, which is exact for answers of one length; otherwise unknown."""
    spread = number(item, "results_number_output_tokens_stddev")
    if ttft is None or e2e is None or ttft.mean_s is None or e2e.mean_s is None or spread is None:
        return None
    if tokens is None or tokens <= 1 or spread > EQUAL_LENGTHS * tokens or ttft.mean_s > e2e.mean_s:
        return None
    return LatencyStats(mean_s=(e2e.mean_s - ttft.mean_s) / (tokens - 1))


def _flags(run: BenchmarkRun, per_request: float | None, *, counts_chunks: bool = False) -> tuple[str, ...]:
    """``per_request``: the tool's mean throughput of a single request, tokens per second."""
    flags = ["itl_includes_ttft"] if _includes_first(run.itl, run.e2e, run.output_tokens_mean) else []
    if counts_chunks or _disagrees(per_request, run.e2e, run.output_tokens_mean):
        flags.append("throughput_inconsistent")
    return tuple(flags)


def _includes_first(itl: LatencyStats | None, e2e: LatencyStats | None, tokens: float | None) -> bool:
    if itl is None or e2e is None or not itl.mean_s or not e2e.mean_s or not tokens:
        return False
    return abs(itl.mean_s * tokens - e2e.mean_s) < FIRST_TOKEN_TOLERANCE * e2e.mean_s


def _of_chunk_counting_release(item: JsonObject) -> bool:
    started = number(item, "timestamp")
    return started is not None and 0 < started < CHUNKS_COUNTED_UNTIL.timestamp()


def _disagrees(per_request: float | None, e2e: LatencyStats | None, tokens: float | None) -> bool:
    if per_request is None or e2e is None or not e2e.mean_s or not tokens:
        return False
    return abs(per_request * e2e.mean_s - tokens) > THROUGHPUT_TOLERANCE * tokens


def _individual(rows: Iterable[JsonObject]) -> BenchmarkRun:
    columns, rates = RequestColumns(_COLUMNS), array("d")
    for row in rows:
        if row.get("error_code") is not None:
            columns.failed += 1
            continue
        columns.add(**{ours: row.get(theirs) for ours, theirs in _COLUMNS.items()})
        gaps = row.get("inter_token_latency_s")
        if isinstance(gaps, list):
            columns.add_gaps(column(gaps))  # early files
        else:
            columns.add_gap(gaps)
        rates.append(figure(row.get("request_output_throughput_token_per_s")))
    run = summed_up(columns.figures(), BenchmarkRun(tool="llmperf"))
    return replace(run, flags=_flags(run, float(np.mean(rates)))) if rates else run
