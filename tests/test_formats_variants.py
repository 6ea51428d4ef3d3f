"""Variants of results between the versions and in the collections people keep, on small made-up files."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml

from calc.errors import UnreadableFile
from data.formats import read
from data.records import BenchmarkRun, ReadResult


def result_of(content: Any, name: str = "x.json") -> ReadResult:
    return read((content if isinstance(content, str) else json.dumps(content)).encode(), name)


def one(content: Any, name: str = "x.json") -> BenchmarkRun:
    result = result_of(content, name)
    assert len(result.runs) == 1, [str(problem.reason) for problem in result.problems]
    return result.runs[0]


def codes(result: ReadResult) -> set[str]:
    return {warning.code for warning in result.warnings}


def report(harness: str, *, native: Any = None, **standardized: Any) -> dict[str, Any]:
    """A report of llm-d 0.2: 101 tokens in 1.2 s, the first after 0.2 s."""
    latency = {
        "time_to_first_token": {"mean": 200.0, "units": "ms"},
        "time_per_output_token": {"mean": 12.0 if harness == "guidellm" else 10.0, "units": "ms/token"},
        "inter_token_latency": {"mean": 10.0, "units": "ms/token"},
        "request_latency": {"mean": 1.2, "units": "s"},
    }
    requests = {"total": 1500, "failures": 0, "input_length": {"mean": 900.0}, "output_length": {"mean": 101.0}}
    return {
        "version": "0.2",
        "results": {"request_performance": {"aggregate": {"latency": latency, "requests": requests}}},
        "run": {"time": {"end": "2026-05-01T10:00:00Z", "duration": "PT2M"}},
        "scenario": {"load": {"native": {"config": native}, "standardized": {"tool": harness, **standardized}}},
    }


def test_a_report_of_llmd_about_guidellm_takes_its_itl_as_tpot() -> None:
    result = result_of(report("guidellm"))
    (run,) = result.runs
    assert run.tpot is not None
    assert run.tpot.mean_s == pytest.approx(0.010)
    assert run.extra["e2e_per_output_token.mean_s"] == pytest.approx(0.012)
    assert "tpot_includes_first_token" in codes(result)
    assert "unit_implausible" not in codes(result)


def test_a_report_of_llmd_about_another_tool_keeps_its_tpot() -> None:
    run = one(report("inference-perf"))
    assert run.tpot is not None
    assert run.tpot.mean_s == pytest.approx(0.010)
    assert run.itl is not None


def test_a_rate_without_limit_and_the_end_as_date_are_read_from_a_report_of_llmd() -> None:
    run = one(yaml.safe_dump(report("inferencemax", rate_qps=math.inf, concurrency=4)), "x.yaml")
    assert run.request_rate_is_infinite
    assert run.request_rate_per_s is None
    assert run.max_concurrency == 4
    assert run.date is not None
    assert run.date.startswith("2026-05-01")


@pytest.mark.parametrize(
    "native",
    [
        {"server": {"model_name": "org/model"}},
        {"endpoint": {"model_names": ["org/model"]}},
        {"spec": {"backend": {"model": "org/model"}}},
        {"args": {"model": "org/model"}},
    ],
)
def test_the_model_is_found_in_the_settings_of_the_load_generator(native: Any) -> None:
    assert one(report("x", native=native)).model == "org/model"


def test_a_report_of_llmd_about_sessions_alone_is_refused_by_name() -> None:
    sessions = report("inference-perf") | {"results": {"session_performance": {"sessions": {"total": 24}}}}
    with pytest.raises(UnreadableFile, match="without latencies of requests"):
        result_of(sessions)


SERVED = {
    "model_id": "org/model",
    "backend": "vllm",
    "num_prompts": 200,
    "request_rate": 1.0,
    **{
        f"{which}_{name}_ms": value for name, value in (("ttft", 100.0), ("tpot", 40.0)) for which in ("mean", "median")
    },
}


def test_a_result_of_vllm_that_was_cut_down_to_its_latencies_is_read() -> None:
    result = result_of(SERVED)
    (run,) = result.runs
    assert run.ttft is not None
    assert run.ttft.mean_s == pytest.approx(0.1)
    assert run.completed is None
    assert run.failed is None
    assert {"lengths_missing", "failures_unknown"} <= codes(result)


def test_a_batch_through_sglangs_server_is_read_without_a_prompt_throughput() -> None:
    batch = {"batch_size": 2, "input_len": 64, "output_len": 16, "latency": 0.5, "output_throughput": 64.0}
    run = one(batch | {"overall_throughput": 320.0, "acc_length": -1})
    assert run.e2e is not None
    assert run.e2e.mean_s == pytest.approx(0.5)
    assert "spec_accept_len" not in run.extra


TRT = {
    "engine": {"model": "org/model", "version": "1.2"},
    "world_info": {"tp_size": 4, "pp_size": 2},
    "request_info": {"num_requests": 1, "avg_input_length": 4000.0, "avg_output_length": 11.0},
    "performance": {"system_output_throughput_tok_s": 10.8, "avg_request_latency_ms": 1020.0},
    "streaming_metrics": {"avg_ttft_ms": 980.0, "avg_tpot_ms": 4.0, "ttft_percentiles": {"p50": 970.0}},
}


def test_a_report_of_trtllm_bench_without_world_size_and_averages_keeps_means_beside_percentiles() -> None:
    run = one(TRT)
    assert run.gpu_count == 8
    assert run.ttft is not None
    assert run.ttft.mean_s == pytest.approx(0.98)
    assert run.ttft.p50_s == pytest.approx(0.97)


def test_a_short_answer_after_a_long_prompt_is_still_a_stream() -> None:
    assert "no_streaming" not in codes(result_of(TRT))
    at_once = TRT | {"streaming_metrics": {"avg_ttft_ms": 1019.0, "avg_tpot_ms": 0.1}}
    assert "no_streaming" in codes(result_of(at_once))


def test_an_itl_that_holds_the_first_token_is_not_called_a_gap_between_chunks() -> None:
    seconds = {"ttft_s": 0.2, "inter_token_latency_s": 0.006, "end_to_end_latency_s": 0.6}
    summary: dict[str, Any] = {f"results_{name}_mean": value for name, value in seconds.items()}
    summary |= {"results_number_output_tokens_mean": 100.0, "results_number_output_tokens_stddev": 0.0}
    warned = codes(result_of(summary))
    assert "itl_includes_ttft" in warned
    assert "itl_is_chunk_gap" not in warned


def stage(**load: float) -> dict[str, Any]:
    latency = {"request_latency": {"mean": 10.0, "p90": 30.0}, "time_to_first_token": {"mean": 2.0, "p90": 5.0}}
    successes = {"count": 1800, "latency": latency, "throughput": {"requests_per_sec": 18.0}}
    return {"load_summary": {"count": 1800, **load}, "successes": successes, "failures": {"count": 0}}


def test_answers_that_come_after_the_last_request_was_sent_contradict_no_throughput() -> None:
    """1,800 requests sent in 80 s, the last answered 20 s later: 18 a second."""
    drained = stage(send_duration=80.0, requested_rate=22.5) | {}
    drained["load_summary"]["schedule_delay"] = {"mean": 0.001}
    assert "throughput_inconsistent" not in codes(result_of(drained))
    drained["successes"]["throughput"]["requests_per_sec"] = 9.0
    assert "throughput_inconsistent" in codes(result_of(drained))


def test_a_stage_whose_report_names_no_rate_is_known_by_its_file() -> None:
    assert "mixed_stages" not in codes(result_of(stage(), "stage_2_lifecycle_metrics.json"))
    assert "mixed_stages" in codes(result_of(stage(), "summary_lifecycle_metrics.json"))


def table(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def test_a_rate_is_read_where_its_name_is_spelled_out_and_offered_rates_stay_offered() -> None:
    text = table(
        "qps,target_rate,request_throughput_rps,out_tok_s,total_tok_per_s,mean_ttft_ms",
        "4,4,3.9,390,1200,110",
    )
    run = one(text, "x.csv")
    assert run.request_throughput_per_s == pytest.approx(3.9)
    assert run.request_rate_per_s == pytest.approx(4.0)
    assert run.output_token_throughput_per_s == pytest.approx(390.0)
    assert run.total_token_throughput_per_s == pytest.approx(1200.0)


def test_the_duration_of_a_run_never_stands_for_the_latency_of_a_request() -> None:
    run = one(table("total_time_ms,e2e_mean,ttft_mean,req_per_s", "60000,1500,200,12"), "x.csv")
    assert run.e2e is not None
    assert run.e2e.mean_s == pytest.approx(1.5)


def test_a_mean_number_of_requests_in_flight_is_no_cap() -> None:
    result = result_of(table("concurrency_mean,rate,rps_mean,ttft_mean_ms", "17.9,5,4.7,80"), "x.csv")
    (run,) = result.runs
    assert run.max_concurrency is None
    assert run.achieved_concurrency == pytest.approx(17.9)
    assert "coordinated_omission" not in codes(result)


def test_mean_lengths_follow_from_totals_and_completed_requests() -> None:
    text = table("Successful Requests,Total Input Tokens,Total Output Tokens,Mean TTFT (ms)", "80,81920,20480,200")
    run = one(text, "x.csv")
    assert run.input_tokens_mean == pytest.approx(1024)
    assert run.output_tokens_mean == pytest.approx(256)


def test_a_table_that_says_of_every_request_whether_it_was_answered_is_one_load_point() -> None:
    text = table("ok,ttft_s,total_s,output_tokens", "True,0.2,2.2,101", "True,0.4,2.4,101", "False,,,0")
    run = one(text, "x.csv")
    assert (run.completed, run.failed) == (2, 1)
    assert run.ttft is not None
    assert run.ttft.mean_s == pytest.approx(0.3)


def test_a_load_sent_at_a_rate_that_never_filled_its_cap_has_no_burst_at_its_start() -> None:
    load = {"max_concurrency": 50, "duration": 200.0, "completed": 200, "request_throughput": 1.0}
    assert "start_burst" not in codes(result_of(SERVED | load | {"max_concurrent_requests": 6}))
    assert "start_burst" in codes(result_of(SERVED | load | {"request_rate": "inf", "max_concurrent_requests": 50}))


@pytest.mark.parametrize(("version", "code"), [(1, "guidellm_json_v1"), (2, "guidellm_json_v2")])
def test_a_report_of_guidellm_is_of_the_kind_it_numbers_itself(version: int, code: str) -> None:
    metrics = {"time_to_first_token_ms": {"successful": {"mean": 60.0, "count": 5}}}
    benchmark = {"config": {"strategy": {"type_": "concurrent", "streams": 4}}, "metrics": metrics}
    assert result_of({"metadata": {"version": version}, "benchmarks": [benchmark]}).format == code


def test_a_tail_of_slow_answers_after_the_last_request_is_no_saturation() -> None:
    """360 requests at 6 a second, all of them on time; the last answer comes 10 s later."""
    report = stage(send_duration=60.0, requested_rate=6.0)
    report["load_summary"] |= {"count": 360, "schedule_delay": {"mean": 0.0003}}
    report["successes"] |= {"count": 360, "throughput": {"requests_per_sec": 360 / 70}}
    assert not {"saturated", "rate_not_reached", "throughput_inconsistent"} & codes(result_of(report))
    report["load_summary"]["requested_rate"] = 12.0
    assert {"saturated", "rate_not_reached"} & codes(result_of(report))


def test_what_the_server_said_over_all_stages_is_pooled() -> None:
    report = {"load_summary": {}, "successes": {"count": 1200, "request_latency": {"mean": 3.0, "p99": 9.0}}}
    assert "mixed_stages" in codes(result_of(report, "summary_prometheus_metrics.json"))
    assert "mixed_stages" not in codes(result_of(report, "stage_2_prometheus_metrics.json"))


def test_a_time_between_tokens_of_all_requests_together_is_no_tpot() -> None:
    """20 requests at a time, 400 tokens/s in all: 2.5 ms between tokens, 50 ms for each request."""
    summary = {"Time taken for tests (s)": 50.0, "Succeed requests": 100, "Number of concurrency": 20}
    rate = {"Throughput(average output tokens per second)": 400.0, "Average time per output token (s)": 0.0025}
    run = one(summary | rate)
    assert run.tpot is None
    assert run.output_token_throughput_per_s == pytest.approx(400.0)
    per_request = one(summary | rate | {"Average time per output token (s)": 0.05})
    assert per_request.tpot is not None


def test_a_column_with_a_decimal_concurrency_holds_means_in_every_row() -> None:
    runs = result_of(table("concurrency,qps,ttft_ms,e2e_ms", "0.5,0.2,80,900", "40,15,200,4000"), "x.csv").runs
    assert [(run.max_concurrency, run.achieved_concurrency) for run in runs] == [(None, 0.5), (None, 40.0)]


def test_an_e2e_without_unit_counts_as_the_ttft_beside_it_does() -> None:
    """74 and 91 are seconds by size alone; beside a TTFT of 72 no answer takes a thousand of them."""
    run = one(table("concurrency,qps,time to first token,total latency", "1,10,72.5,91"), "x.csv")
    assert run.e2e is not None
    assert run.e2e.mean_s == pytest.approx(0.091)
    run = one(table("concurrency,qps,time to first token,total latency", "1,0.1,350,9.5"), "x.csv")
    assert run.e2e is not None
    assert run.e2e.mean_s == pytest.approx(9.5)


def test_a_latency_said_to_be_an_average_goes_before_the_length_of_the_run() -> None:
    header = "num_samples,num_error_samples,total_latency(ms),seq_throughput(seq/sec),avg_sequence_latency(ms)"
    run = one(table(header, "500,2,400000,1.25,8000"), "x.csv")
    assert run.e2e is not None
    assert run.e2e.mean_s == pytest.approx(8.0)
    assert (run.num_prompts, run.failed, run.request_throughput_per_s) == (500, 2, 1.25)


@pytest.mark.parametrize(("written", "share"), [("55.0", 0.55), ("0.55", 0.55), ("1.0", 1.0)])
def test_kv_usage_beyond_one_is_per_cent(written: str, share: float) -> None:
    text = table('vllm:gpu_cache_usage_perc{model_name="m"} ' + written, 'vllm:num_requests_running{model_name="m"} 3')
    (snapshot,) = result_of(text, "metrics.txt").snapshots
    assert snapshot.kv_usage_share == pytest.approx(share)
