"""What engines and their own benchmarks write, in the shapes their sources know; every file here is made up."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import numpy as np
import pytest

from calc.errors import UnreadableFile
from data.formats import read, records
from data.records import BenchmarkRun, LatencyStats, ReadResult

SGLANG: dict[str, Any] = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": 2.0,
    "max_concurrency": None,
    "duration": 100.0,
    "completed": 200,
    "total_input_tokens": 20_000,
    "total_output_tokens": 40_000,
    "median_e2e_latency_ms": 2100.0,
    "mean_e2e_latency_ms": 2100.0,
    "median_ttft_ms": 100.0,
    "median_itl_ms": 10.0,
    "output_throughput": 400.0,
}
ONE_BATCH: dict[str, Any] = {"run_name": "x", "batch_size": 4, "input_len": 100, "output_len": 21}
TRTLLM: dict[str, Any] = {
    "engine": {"model": "m", "version": "1.2.0", "backend": "Pytorch"},
    "machine": None,
    "world_info": {"tp_size": 2, "pp_size": 2, "world_size": 4, "issue_rate": 1e12},
    "request_info": {
        "num_requests": 1000,
        "avg_num_concurrent_requests": 16.0,
        "avg_input_length": 100.0,
        "avg_output_length": 51.0,
    },
    "performance": {
        "total_latency_ms": 50_000.0,
        "avg_request_latency_ms": 800.0,
        "request_throughput_req_s": 20.0,
        "system_output_throughput_tok_s": 1020.0,
        "system_total_throughput_tok_s": 3020.0,
        "request_latency_percentiles_ms": {"p50": 790.0, "p99": 990.0, "average": 800.0, "minimum": 1.0},
    },
}
AGGREGATED: dict[str, Any] = {
    "hw": "b200",
    "conc": 8,
    "model": "m",
    "framework": "vllm",
    "tp": 4,
    "isl": 1024,
    "osl": 512,
    "tput_per_gpu": 300.0,
    "output_tput_per_gpu": 100.0,
    "input_tput_per_gpu": 200.0,
    "mean_ttft": 0.2,
    "median_ttft": 0.19,
    "mean_tpot": 0.01,
    "mean_intvty": 100.0,
    "std_intvty": 1e6,
    "mean_e2el": 5.31,
}


def as_json(*values: Any) -> bytes:
    return "\n".join(json.dumps(value) for value in values).encode()


def only(*values: Any) -> BenchmarkRun:
    return read(as_json(*values), "x").runs[0]


def codes(result: ReadResult) -> set[str]:
    return {warning.code for warning in result.warnings}


def mean_s(stats: LatencyStats | None) -> float | None:
    return None if stats is None else stats.mean_s


def test_an_embedding_run_of_vllm_has_prompts_and_latency_but_no_tokens_out() -> None:
    raw = {
        "model_id": "m",
        "num_prompts": 100,
        "request_rate": "inf",
        "duration": 10.0,
        "completed": 98,
        "total_input_tokens": 9800,
        "total_input_sequences": 98,
        "request_throughput": 9.8,
        "total_token_throughput": 980.0,
        "mean_e2el_ms": 300.0,
        "p99_e2el_ms": 700.0,
    }
    result = read(as_json(raw), "x")
    run = result.runs[0]
    assert (run.failed, run.output_tokens_total, run.ttft) == (2, None, None)
    assert mean_s(run.e2e) == pytest.approx(0.3)
    assert (run.input_tokens_mean, run.extra["total_input_sequences"]) == (100, 98)
    assert "no_token_metrics" in codes(result)


def test_waiting_in_the_client_is_a_latency_of_its_own() -> None:
    raw = {
        "model_id": "m",
        "num_prompts": 100,
        "request_rate": 10.0,
        "max_concurrency": 8,
        "duration": 20.0,
        "completed": 100,
        "request_throughput": 5.0,
        "mean_ttft_ms": 100.0,
        "mean_e2el_ms": 900.0,
        "mean_client_queue_time_ms": 2000.0,
        "p99_client_queue_time_ms": 4000.0,
        "mean_e2el_including_client_queue_ms": 2900.0,
        "spec_decode_acceptance_length": 2.5,
    }
    result = read(as_json(raw), "x")
    record = records(result)[0]
    assert record["client_queue_ms"] == pytest.approx({"mean": 2000.0, "p99": 4000.0})
    assert record["e2e_with_client_queue_ms"]["mean"] == pytest.approx(2900.0)
    assert record["spec_accept_len"] == 2.5
    assert "coordinated_omission" not in codes(result)


def test_a_latency_bench_is_one_batch_in_seconds_and_few_iterations_are_said() -> None:
    latencies = np.linspace(1.0, 2.0, 11).tolist()
    raw = {"avg_latency": 1.5, "latencies": latencies, "percentiles": {"50": 1.5, "90": 1.9, "99": 1.99}}
    result = read(as_json(raw), "x")
    run = result.runs[0]
    assert run.e2e is not None
    assert (run.e2e.p99_s, run.e2e.p95_s) == pytest.approx((1.99, 1.95))
    assert {"not_serving", "few_requests"} <= codes(result)
    plenty = {"avg_latency": 1.5, "latencies": latencies * 30, "percentiles": {}}
    assert "few_requests" not in codes(read(as_json(plenty), "x"))


def test_latencies_that_do_not_make_the_written_mean_add_no_percentile() -> None:
    run = only({"avg_latency": 1.5, "latencies": [9.0] * 40, "percentiles": {"50": 1.4}})
    assert run.e2e == LatencyStats(mean_s=1.5, p50_s=1.4)


def test_a_throughput_bench_counts_prompt_and_output_tokens_together() -> None:
    raw = {"elapsed_time": 20.0, "num_requests": 100, "total_num_tokens": 60_000}
    run = only(raw | {"requests_per_second": 5.0, "tokens_per_second": 3000.0})
    assert (run.request_throughput_per_s, run.total_token_throughput_per_s) == (5.0, 3000.0)
    assert (run.output_token_throughput_per_s, run.duration_s, run.e2e) == (None, 20.0, None)
    assert "not_serving" in run.flags


def test_the_pytorch_twin_of_a_result_is_passed_over_in_words() -> None:
    twin = [{"benchmark": {"name": "vLLM benchmark"}, "model": {"name": "m"}, "metric": {"name": "latency"}}]
    result = read(json.dumps(twin).encode(), "x.pytorch.json")
    assert result.runs == ()
    assert codes(result) == {"needs_companion"}


def test_the_early_schema_of_sglang_has_medians_and_its_rates_follow_from_counts() -> None:
    run = only(SGLANG)
    assert (run.request_throughput_per_s, run.total_token_throughput_per_s) == (2.0, 600.0)
    assert (run.model, run.failed, run.num_prompts, run.tpot) == (None, None, None, None)
    assert run.ttft == LatencyStats(p50_s=0.1)


def test_sglang_appends_runs_with_bare_infinity_and_rates_of_a_trace() -> None:
    runs = read(as_json(SGLANG, SGLANG | {"request_rate": math.inf}, SGLANG | {"request_rate": "trace"}), "x").runs
    assert [run.request_rate_per_s for run in runs] == [2.0, None, None]
    assert [run.request_rate_is_infinite for run in runs] == [False, True, False]
    assert [run.line for run in runs] == [1, 2, 3]
    assert runs[2].extra["arrivals"] == "trace"


def test_details_of_sglang_tell_failures_and_the_percentiles_the_summary_lacks() -> None:
    rng = np.random.default_rng(11)
    sent, failed = 250, 50
    gaps = [rng.gamma(9, 0.001, 19).tolist() for _ in range(sent - failed)]
    ttfts = rng.gamma(4, 0.025, sent - failed)
    raw = {key: value for key, value in SGLANG.items() if "median" not in key and "mean" not in key} | {
        "total_output_tokens_retokenized": 1,
        "mean_ttft_ms": float(ttfts.mean() * 1000),
        "input_lens": [100] * sent,
        "output_lens": [20] * (sent - failed) + [0] * failed,
        "ttfts": [*ttfts.tolist(), *[0.0] * failed],
        "itls": [*gaps, *[[]] * failed],
        "errors": [""] * (sent - failed) + ["boom"] * failed,
        "generated_texts": ["secret"] * sent,
    }
    result = read(as_json(raw), "x")
    run = result.runs[0]
    assert (run.num_prompts, run.completed, run.failed) == (sent, sent - failed, failed)
    assert run.ttft is not None
    assert run.ttft.p99_s == pytest.approx(np.percentile(ttfts, 99))
    assert "failed_requests" in codes(result)
    assert "secret" not in str(result)
    assert "boom" not in str(result)


def test_an_sglang_run_that_answered_nothing_has_no_latency() -> None:
    zeros = {key: 0.0 for key in SGLANG if key.endswith("_ms")}
    run = only(SGLANG | zeros | {"completed": 0, "total_output_tokens": 0, "output_throughput": 0.0})
    assert (run.ttft, run.itl, run.e2e) == (None, None, None)


def test_sglang_names_a_path_on_its_server_and_shared_prefixes_of_its_data_set() -> None:
    server = {"model_path": "/models/m", "tp_size": 4, "internal_states": [{"secret": 1}]}
    run = only(SGLANG | {"dataset_name": "generated-shared-prefix", "server_info": server})
    assert (run.model, run.extra["server_model_path"], run.extra["server_tp_size"]) == (None, "/models/m", 4)
    assert "prompts_shared" in run.flags


def test_one_batch_of_sglang_is_in_seconds_and_its_total_counts_both_kinds_of_tokens() -> None:
    timed = {"prefill_latency": 0.1, "median_decode_latency": 0.01, "total_latency": 0.3, "overall_throughput": 1613.3}
    run = only(ONE_BATCH | timed | {"median_decode_throughput": 400.0})
    assert (mean_s(run.ttft), run.tpot, mean_s(run.e2e)) == (0.1, LatencyStats(p50_s=0.01), 0.3)
    assert run.total_token_throughput_per_s == pytest.approx(4 * 121 / 0.3, rel=1e-3)
    assert run.output_token_throughput_per_s is None
    assert (run.extra["batch_size"], run.extra["decode_token_throughput"]) == (4, 400.0)


@pytest.mark.parametrize("ttft", ["ttft", "last_ttft"])
def test_one_batch_through_the_server_reads_either_name_of_ttft(ttft: str) -> None:
    timed = {"latency": 0.5, "input_throughput": 4000.0, "output_throughput": 210.0, "overall_throughput": 968.0}
    result = read(json.dumps([ONE_BATCH | timed | {ttft: 0.1, "last_gen_throughput": 200.0}]).encode(), "x")
    run = result.runs[0]
    assert (result.format, run.tool) == ("sglang_bench_one_batch_server_jsonl", "sglang bench_one_batch_server")
    assert (mean_s(run.ttft), mean_s(run.e2e), run.extra["decode_token_throughput"]) == (0.1, 0.5, 210.0)
    assert "not_serving" in run.flags


def test_a_trtllm_report_without_streaming_has_no_ttft_and_a_capped_one_is_no_burst() -> None:
    run = only(TRTLLM)
    assert (run.ttft, run.tpot, run.gpu, run.gpu_count, run.flags) == (None, None, None, 4, ())
    assert (mean_s(run.e2e), run.duration_s, run.achieved_concurrency) == pytest.approx((0.8, 50.0, 16.0))
    streamed = {"avg_ttft_ms": 50.0, "avg_tpot_ms": 15.0, "ttft_percentiles": {"p50": 48.0, "average": 50.0}}
    run = only(TRTLLM | {"streaming_metrics": streamed})
    assert (mean_s(run.ttft), mean_s(run.tpot)) == pytest.approx((0.05, 0.015))


def test_requests_that_are_in_flight_for_half_of_a_trtllm_run_were_sent_at_once() -> None:
    info = TRTLLM["request_info"] | {"avg_num_concurrent_requests": 500.0}
    assert only(TRTLLM | {"request_info": info}).flags == ("all_at_once",)


def test_inferencex_is_in_seconds_and_per_gpu() -> None:
    result = read(as_json(AGGREGATED), "x")
    run = result.runs[0]
    assert (run.gpu_count, run.max_concurrency, run.request_rate_is_infinite) == (4, 8, True)
    assert (run.total_token_throughput_per_s, run.output_token_throughput_per_s) == (1200.0, 400.0)
    assert (mean_s(run.ttft), run.input_tokens_mean, run.extra["input_tokens_nominal"]) == (0.2, None, 1024)
    assert "lengths_nominal" in codes(result)
    assert not any("intvty" in key for key in records(result)[0])


def test_pipeline_stages_multiply_the_gpus_and_a_list_holds_many_runs() -> None:
    runs = read(json.dumps([AGGREGATED, AGGREGATED | {"pp": 2, "conc": 16}]).encode(), "x").runs
    assert [run.gpu_count for run in runs] == [4, 8]
    assert runs[1].total_token_throughput_per_s == 2400.0


def test_split_prefill_divides_each_rate_by_its_own_gpus() -> None:
    """3 prefill and 2 decode GPUs at 600 prompt and 400 output tokens/s."""
    split = {key: value for key, value in AGGREGATED.items() if key != "tp"} | {
        "disagg": True,
        "num_prefill_gpu": 3,
        "num_decode_gpu": 2,
        "tput_per_gpu": 200.0,
        "input_tput_per_gpu": 200.0,
    }
    by_half = only(split | {"output_tput_per_gpu": 200.0})
    by_all = only(split | {"output_tput_per_gpu": 80.0})
    for run in (by_half, by_all):
        assert (run.gpu_count, run.total_token_throughput_per_s) == (5, 1000.0)
        assert run.input_token_throughput_per_s == pytest.approx(600.0)
        assert run.output_token_throughput_per_s == pytest.approx(400.0)


def test_rounds_of_a_conversation_share_prefixes_and_rows_without_tokens_failed() -> None:
    header = "prompt_tokens,generation_tokens,ttft,generation_time,user_id,question_id,launch_time,finish_time"
    rows = [f"{100 * (n + 1)},11,0.5,1.0,0,{n},{1000 + 2 * n},{1001.5 + 2 * n}" for n in range(40)]
    result = read("\n".join([header, *rows, "900,0,,,0,40,1080,1081"]).encode(), "x")
    run = result.runs[0]
    assert (run.completed, run.failed, run.num_prompts) == (40, 1, 41)
    assert (run.duration_s, mean_s(run.tpot)) == pytest.approx((79.5, 0.1))
    assert {"prompts_shared", "failed_requests"} <= codes(result)


@pytest.mark.parametrize(
    "raw", [SGLANG, TRTLLM, AGGREGATED, ONE_BATCH | {"prefill_latency": 1, "overall_throughput": 1}]
)
@pytest.mark.parametrize("value", [None, "many", [], {}, True, -1, 10**400, math.nan, "1,5"])
def test_a_field_that_is_nonsense_is_left_out_or_refused_in_a_sentence(raw: dict[str, Any], value: Any) -> None:
    for key in raw:
        with contextlib.suppress(UnreadableFile):
            assert read(as_json(raw | {key: value}), "x").format
