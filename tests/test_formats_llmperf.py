"""llmperf's summaries and single responses: counts per minute, texts for numbers, an ITL with the first token in it."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest

from calc.errors import UnreadableFile
from data.formats import read
from data.records import BenchmarkRun, LatencyStats, ReadResult

LLMPERF: dict[str, Any] = {
    "version": "2023-08-31",
    "model": "m",
    "num_concurrent_requests": 5,
    "results_ttft_s_mean": 0.5,
    "results_ttft_s_quantiles_p50": 0.5,
    "results_inter_token_latency_s_mean": 0.025,
    "results_end_to_end_latency_s_mean": 2.5,
    "results_request_output_throughput_token_per_s_mean": 40.0,
    "results_number_input_tokens_mean": "550",
    "results_number_output_tokens_mean": 100.0,
    "results_number_output_tokens_stddev": 0.0,
    "results_num_requests_started": 60,
    "results_number_errors": 10,
    "results_error_code_frequency": "{429: 10}",
    "results_num_completed_requests": 50,
    "results_num_completed_requests_per_min": 120.0,
    "results_mean_output_throughput_token_per_s": 200.0,
    "timestamp": 1_730_000_000,
}


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def only(value: Any) -> BenchmarkRun:
    return read(as_json(value), "x").runs[0]


def codes(result: ReadResult) -> set[str]:
    return {warning.code for warning in result.warnings}


def mean_s(stats: LatencyStats | None) -> float | None:
    return None if stats is None else stats.mean_s


def test_llmperf_counts_per_minute_and_its_itl_is_computed_again_without_the_first_token() -> None:
    result = read(as_json(LLMPERF), "x")
    run = result.runs[0]
    assert (run.request_throughput_per_s, run.duration_s) == (2.0, 25.0)
    assert (run.num_prompts, run.completed, run.failed, run.input_tokens_mean) == (60, 50, 10, 550)
    assert mean_s(run.tpot) == pytest.approx(2.0 / 99)
    assert "itl_includes_ttft" in codes(result)
    assert "throughput_inconsistent" not in codes(result)


def test_an_itl_without_the_first_token_and_a_throughput_of_chunks_are_told_apart() -> None:
    changed = {
        "results_inter_token_latency_s_mean": 0.02,
        "results_request_output_throughput_token_per_s_mean": 13.0,
    }
    found = codes(read(as_json(LLMPERF | changed), "x"))
    assert "itl_includes_ttft" not in found
    assert "throughput_inconsistent" in found


def test_answers_of_uneven_length_have_no_tpot_from_means() -> None:
    assert only(LLMPERF | {"results_number_output_tokens_stddev": 60.0}).tpot is None


def test_llmperf_results_below_one_key_are_read_alike() -> None:
    nested = {
        "model": "m",
        "num_concurrent_requests": 5,
        "results": {
            "ttft_s": {"mean": 0.5, "quantiles": {"p50": 0.4}},
            "end_to_end_latency_s": {"mean": 2.5},
            "num_completed_requests": 50,
            "num_completed_requests_per_min": 120.0,
        },
    }
    run = only(nested)
    assert run.ttft == LatencyStats(mean_s=0.5, p50_s=0.4)
    assert (run.completed, run.request_throughput_per_s) == (50, 2.0)


def response(**changed: Any) -> dict[str, Any]:
    return {
        "error_code": None,
        "inter_token_latency_s": 0.03,
        "ttft_s": 0.5,
        "end_to_end_latency_s": 2.5,
        "number_input_tokens": 100,
        "number_output_tokens": 101,
        "request_output_throughput_token_per_s": 40.4,
    } | changed


def test_single_responses_of_llmperf_are_summed_up_and_errors_are_failures() -> None:
    failed = response(error_code=429, ttft_s=0, end_to_end_latency_s=0, number_output_tokens=0)
    result = read(json.dumps([response(), response(ttft_s=0.7), failed]).encode(), "x")
    run = result.runs[0]
    assert (run.num_prompts, run.completed, run.failed, run.output_tokens_mean) == (3, 2, 1, 101)
    assert (mean_s(run.ttft), mean_s(run.tpot)) == pytest.approx((0.6, (2.0 + 1.8) / 2 / 100))
    assert "throughput_inconsistent" not in codes(result)
    chunks = [response(request_output_throughput_token_per_s=11.0, inter_token_latency_s=[0.5, 0.2])] * 2
    result = read(json.dumps(chunks).encode(), "x")
    assert "throughput_inconsistent" in codes(result)
    assert mean_s(result.runs[0].itl) == pytest.approx(0.35)


def test_responses_that_all_failed_leave_no_latency() -> None:
    result = read(json.dumps([response(error_code=500, ttft_s=0)] * 3).encode(), "x")
    assert (result.runs[0].completed, result.runs[0].ttft) == (0, None)
    assert "all_failed" in codes(result)


@pytest.mark.parametrize("value", [None, "many", [], {}, True, -1, 10**400, math.nan, "1,5"])
def test_a_field_that_is_nonsense_is_left_out_or_refused_in_a_sentence(value: Any) -> None:
    for raw in (LLMPERF, response()):
        for key in raw:
            with contextlib.suppress(UnreadableFile):
                assert read(as_json([raw | {key: value}]), "x").format
