"""``vllm bench serve`` files in all their shapes, against what the tool's own arithmetic says they mean."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from calc.errors import UnreadableFile
from data.formats import read, to_record
from data.formats.vllm_details import from_details

SUMMARY: dict[str, Any] = {
    "date": "20260101-000000",
    "backend": "openai",
    "model_id": "m",
    "num_prompts": 200,
    "request_rate": 4.0,
    "max_concurrency": None,
    "duration": 50.0,
    "completed": 200,
    "total_input_tokens": 20_000,
    "total_output_tokens": 40_000,
    "request_throughput": 4.0,
    "output_throughput": 800.0,
    "mean_ttft_ms": 100.0,
    "median_ttft_ms": 90.0,
    "p99_ttft_ms": 300.0,
    "mean_tpot_ms": 10.0,
    "median_tpot_ms": 10.0,
    "p99_tpot_ms": 12.0,
}


def as_bytes(*runs: Any) -> bytes:
    return "\n".join(json.dumps(run) for run in runs).encode()


def codes(content: bytes) -> set[str]:
    return {warning.code for warning in read(content, "x.json").warnings}


def test_milliseconds_become_seconds_and_the_total_throughput_follows_from_its_definition() -> None:
    run = read(as_bytes(SUMMARY), "x.json").runs[0]
    assert run.ttft is not None
    assert run.ttft.p99_s == pytest.approx(0.3)
    assert run.total_token_throughput_per_s == pytest.approx(60_000 / 50)
    assert (run.failed, run.input_tokens_mean, run.output_tokens_mean) == (0, 100, 200)
    assert to_record(run)["ttft_ms"] == pytest.approx({"mean": 100, "p50": 90, "p99": 300})


def test_a_clean_run_raises_nothing() -> None:
    counts = {"num_prompts": 1000, "completed": 1000, "total_input_tokens": 100_000, "total_output_tokens": 200_000}
    assert codes(as_bytes(SUMMARY | counts | {"duration": 250.0})) == set()


def test_json_lines_hold_one_run_a_line_and_a_broken_line_is_named() -> None:
    content = as_bytes(SUMMARY, SUMMARY | {"request_rate": "inf", "max_concurrency": 8}) + b'\n{"date": "2026'
    result = read(content, "x.jsonl")
    assert [run.request_rate_is_infinite for run in result.runs] == [False, True]
    assert [run.line for run in result.runs] == [1, 2]
    assert [problem.line for problem in result.problems] == [3]


def test_indented_objects_one_after_another_are_all_read() -> None:
    content = "\n".join(json.dumps(SUMMARY, indent=2) for _ in range(3)).encode()
    assert len(read(content, "x.json").runs) == 3


def test_nan_and_infinity_mean_not_known() -> None:
    text = as_bytes(SUMMARY).decode().replace("300.0", "NaN").replace('"request_rate": 4.0', '"request_rate": Infinity')
    run = read(text.encode(), "x.json").runs[0]
    assert run.request_rate_is_infinite
    assert run.ttft is not None
    assert run.ttft.p99_s is None


def test_latencies_of_a_run_without_answers_are_missing_not_zero() -> None:
    zeros = {key: 0.0 for key in SUMMARY if key.endswith("_ms")}
    failed = SUMMARY | zeros | {"completed": 0, "total_output_tokens": 0, "output_throughput": 0.0}
    result = read(as_bytes(failed | {"request_throughput": 0.0}), "x.json")
    assert result.runs[0].ttft is None
    assert result.runs[0].failed == 200
    assert "all_failed" in {warning.code for warning in result.warnings}


def test_a_latency_of_zero_is_left_out_and_said() -> None:
    one_token = SUMMARY | {"mean_tpot_ms": 0.0, "median_tpot_ms": 0.0, "p99_tpot_ms": 0.0}
    result = read(as_bytes(one_token), "x.json")
    assert result.runs[0].tpot is None
    assert "zero_may_be_missing" in {warning.code for warning in result.warnings}


def test_gaps_of_an_early_version_hold_the_first_token_and_those_of_a_later_one_do_not() -> None:
    mixed = SUMMARY | {"mean_itl_ms": 12.0, "median_itl_ms": 10.0, "p99_itl_ms": 250.0}
    clean = mixed | {"p99_itl_ms": 14.0}
    assert "itl_includes_ttft" in codes(as_bytes(mixed | {"date": "20240612-101010"}))
    assert "itl_includes_ttft" not in codes(as_bytes(clean | {"date": "20240612-101010"}))
    assert "itl_includes_ttft" not in codes(as_bytes(mixed | {"date": "20250612-101010"}))


def test_a_trailing_colon_in_a_key_is_stripped() -> None:
    run = read(as_bytes(SUMMARY | {"request_goodput:": 3.5}), "x.json").runs[0]
    assert run.extra["request_goodput"] == 3.5


def test_prompts_answers_and_errors_are_dropped() -> None:
    secret = SUMMARY | {
        "generated_texts": ["the answer is 42"] * 200,
        "errors": ["Traceback: the answer is 42"],
        "note": "the answer is 42" * 50,
    }
    result = read(as_bytes(secret), "x.json")
    assert "the answer is 42" not in str(result)


def test_percentiles_the_summary_lacks_come_from_the_arrays_that_agree_with_it() -> None:
    rng = np.random.default_rng(7)
    ttfts = rng.gamma(4.0, 0.025, 500)
    gaps = [rng.gamma(9.0, 0.001, 19).tolist() for _ in range(500)]
    kept = {key: value for key, value in SUMMARY.items() if not key.startswith(("median", "p99"))}
    run = kept | {
        "num_prompts": 500,
        "completed": 500,
        "input_lens": [100] * 500,
        "output_lens": [20] * 500,
        "ttfts": ttfts.tolist(),
        "itls": gaps,
        "mean_ttft_ms": float(ttfts.mean() * 1000),
        "mean_tpot_ms": float(np.mean([sum(g) / 19 for g in gaps]) * 1000),
    }
    got = read(as_bytes(run), "x.json").runs[0]
    assert got.ttft is not None
    assert got.ttft.p95_s == pytest.approx(np.percentile(ttfts, 95))
    assert got.tpot is not None
    assert got.tpot.p90_s == pytest.approx(np.percentile([sum(g) / 19 for g in gaps], 90))
    assert got.e2e is not None
    assert got.e2e.mean_s == pytest.approx(np.mean([t + sum(g) for t, g in zip(ttfts, gaps, strict=True)]))
    assert got.extra["input_tokens_p99"] == 100


def test_failed_requests_are_left_out_of_the_arrays() -> None:
    details = from_details({"output_lens": [5, 0, 5], "ttfts": [0.1, 0.0, 0.3], "input_lens": [1, 1, 1]})
    assert details.seconds["ttft"].tolist() == [0.1, 0.3]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mean_ttft_ms": -5.0}, "negative"),
        ({"median_ttft_ms": 400.0}, "P50"),
        ({"mean_e2el_ms": 50.0}, "TTFT mean"),
        ({"max_concurrency": 10**7}, "concurrency"),
        ({"completed": "many"}, "completed"),
        ({"completed": None}, "completed"),
        ({"total_input_tokens": 10**30}, "total_input_tokens"),
        ({"duration": [1, 2]}, "duration"),
        ({"failed": 900}, "failed"),
    ],
)
def test_a_run_that_cannot_be_is_refused_with_its_reason(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        read(as_bytes(SUMMARY | change), "x.json")


def test_one_bad_run_does_not_cost_the_others() -> None:
    result = read(as_bytes(SUMMARY, SUMMARY | {"mean_ttft_ms": -1.0}, SUMMARY), "x.jsonl")
    assert len(result.runs) == 2
    assert [problem.line for problem in result.problems] == [2]


def test_repeats_that_disagree_are_named_and_swept_options_are_not_repeats() -> None:
    twice = [SUMMARY | {"run_number": 0}, SUMMARY | {"run_number": 1, "request_throughput": 2.0, "duration": 100.0}]
    assert "runs_differ" in codes(json.dumps(twice).encode())
    swept = [run | {"max_num_seqs": 4 * (index + 1)} for index, run in enumerate(twice)]
    assert "runs_differ" not in codes(json.dumps(swept).encode())
