"""Readers of load generators and GPU tools on small made-up files: other versions, other units, and what goes wrong."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from typing import Any

import pytest

from calc.errors import UnreadableFile
from data.formats import read, records
from data.records import BenchmarkRun, GpuLog, ReadResult


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def table(*rows: list[Any], ending: str = "\n") -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=ending).writerows(rows)
    return text.getvalue().encode()


def one(content: bytes) -> BenchmarkRun:
    result = read(content, "x")
    assert len(result.runs) == 1, [str(problem.reason) for problem in result.problems]
    return result.runs[0]


def codes(result: ReadResult) -> set[str]:
    return {warning.code for warning in result.warnings}


def refused(content: bytes) -> str:
    with pytest.raises(UnreadableFile) as error:
        read(content, "x")
    return str(error.value)


def ms(seconds: float | None) -> float:
    assert seconds is not None
    return seconds * 1e3


# GuideLLM


def spread(mean: float, *, count: int = 40, p99: float | None = None) -> dict[str, Any]:
    high = mean * 2 if p99 is None else p99
    percentiles = {"p50": mean, "p90": mean * 1.2, "p95": mean * 1.5, "p99": high, "p999": high}
    return {"mean": mean, "median": mean, "std_dev": mean / 10, "count": count, "percentiles": percentiles}


def by_outcome(mean: float, **more: Any) -> dict[str, Any]:
    return {"successful": spread(mean, **more), "errored": spread(0.0, count=0), "total": spread(mean * 3)}


GUIDELLM_METRICS = {
    "requests_per_second": by_outcome(2.0),
    "request_concurrency": by_outcome(1.64),
    "request_latency": by_outcome(0.82),
    "prompt_token_count": by_outcome(256.0),
    "output_token_count": by_outcome(64.0),
    "time_to_first_token_ms": by_outcome(64.0),
    "time_per_output_token_ms": by_outcome(12.8),
    "inter_token_latency_ms": by_outcome(12.0),
    "output_tokens_per_second": by_outcome(128.0),
    "tokens_per_second": by_outcome(640.0),
}


def guidellm(strategy: dict[str, Any], **benchmark: Any) -> dict[str, Any]:
    """A benchmark as 0.2 and 0.3 wrote it."""
    return {
        "benchmarks": [
            {
                "args": {"strategy": strategy, "profile": {"type_": strategy["type_"]}},
                "run_stats": {"requests_made": {"successful": 41, "errored": 2, "incomplete": 0, "total": 43}},
                "worker": {"backend_model": "acme/chat-7b", "backend_type": "openai_http"},
                "request_loader": {"data": "prompt_tokens=256,output_tokens=64"},
                "start_time": 1_700_000_000.0,
                "end_time": 1_700_000_020.0,
                "metrics": GUIDELLM_METRICS,
                "request_totals": {"successful": 40, "errored": 2, "incomplete": 1, "total": 43},
            }
            | benchmark
        ]
    }


def test_an_early_guidellm_report_gives_its_itl_as_tpot_and_no_figure_as_itl() -> None:
    run = one(as_json(guidellm({"type_": "constant", "rate": 2.0})))
    assert (run.model, run.completed, run.failed, run.incomplete, run.num_prompts) == ("acme/chat-7b", 40, 2, 1, 43)
    assert (run.request_rate_per_s, run.max_concurrency, run.duration_s) == (2.0, None, 20.0)
    assert run.tpot is not None
    assert ms(run.tpot.mean_s) == pytest.approx(12.0)
    assert run.itl is None
    assert run.e2e is not None
    assert run.e2e.mean_s == 0.82
    record = records(read(as_json(guidellm({"type_": "constant", "rate": 2.0})), "x"))[0]
    assert record["itl_ms"]["p90"] == pytest.approx(14.4)
    assert record["guidellm_tpot_incl_first_ms"]["mean"] == pytest.approx(12.8)


@pytest.mark.parametrize(
    ("strategy", "rate", "all_at_once", "users"),
    [
        ({"type_": "concurrent", "streams": 8}, None, False, 8),
        ({"type_": "synchronous"}, None, False, 1),
        ({"type_": "throughput", "max_concurrency": 512}, None, True, None),
        ({"type_": "poisson", "rate": 3.5}, 3.5, False, None),
        ({"type_": "async", "rate": 4}, 4.0, False, None),
    ],
)
def test_a_guidellm_strategy_says_how_requests_arrive(
    strategy: dict[str, Any], rate: float | None, all_at_once: bool, users: int | None
) -> None:
    run = one(as_json(guidellm(strategy)))
    assert (run.request_rate_per_s, run.request_rate_is_infinite, run.max_concurrency) == (rate, all_at_once, users)


def test_a_guidellm_report_in_yaml_is_the_same_report() -> None:
    content = b"""
metadata:
  version: 2
  guidellm_version: 0.8.1
benchmarks:
  - type_: generative_benchmark
    config:
      strategy: {type_: concurrent, streams: 4}
      backend: {kind: openai_http, model: acme/chat-7b}
    duration: 30.5
    metrics:
      request_totals: {successful: 120, errored: 0, incomplete: 4, total: 124}
      time_to_first_token_ms:
        successful: {mean: 90.0, median: 80.0, count: 120}
      request_latency:
        successful: {mean: 1.0, median: 0.9, count: 120}
"""
    result = read(content, "x")
    run = result.runs[0]
    assert (result.format, run.tool_version, run.max_concurrency, run.incomplete) == ("guidellm_json_v2", "0.8.1", 4, 4)
    assert run.ttft is not None
    assert ms(run.ttft.p50_s) == pytest.approx(80)
    assert "incomplete_requests" in codes(result)


def test_a_guidellm_run_without_answers_has_no_latency() -> None:
    nothing = {"request_totals": {"successful": 0, "errored": 9, "incomplete": 0, "total": 9}}
    zeros = {key: {"successful": spread(0.0, count=0)} for key in GUIDELLM_METRICS}
    result = read(as_json(guidellm({"type_": "constant", "rate": 1.0}, metrics=zeros, **nothing)), "x")
    run = result.runs[0]
    assert (run.ttft, run.tpot, run.e2e, run.output_tokens_mean) == (None, None, None, None)
    assert "all_failed" in codes(result)


def test_turns_and_prefixes_of_guidellm_are_shared_prompts() -> None:
    plain = read(as_json(guidellm({"type_": "constant", "rate": 2.0})), "x")
    loader = {"data": "prompt_tokens=256,output_tokens=64,turns=3"}
    assert "prompts_shared" not in codes(plain)
    assert "prompts_shared" in codes(
        read(as_json(guidellm({"type_": "constant", "rate": 2}, request_loader=loader)), "x")
    )


VECTOR = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"


def test_a_guidellm_table_of_one_header_row_keeps_its_percentiles_in_a_cell() -> None:
    header = [
        "Type",
        "Name",
        "Duration",
        "Successful Requests",
        "Successful Requests per second mean",
        "Successful Request latency mean",
        "Successful Time to first token ms mean",
        "Successful Time to first token ms median",
        f"Successful Time to first token ms {VECTOR}",
        "Errored Requests",
        "Incomplete Requests",
        "Args",
    ]
    row = ["generative_benchmark", "throughput", 10, 300, 30, 1.5, 50, 45]
    content = table(header, [*row, "[1, 2, 3, 4, 5, 6, 60, 70, 80, 90, 95]", 0, 0, "{not json"])
    run = one(content)
    assert (run.request_rate_is_infinite, run.completed, run.failed, run.extra["name"]) == (True, 300, 0, "throughput")
    assert run.ttft is not None
    assert [ms(run.ttft.p50_s), ms(run.ttft.p90_s), ms(run.ttft.p99_s)] == pytest.approx([45, 70, 90])
    assert run.e2e is not None
    assert run.e2e.mean_s == 1.5


def test_a_guidellm_table_of_three_header_rows_takes_the_first_column_of_a_name() -> None:
    triples = [
        ("Run Info", "Run ID", "", "r"),
        ("Run Info", "Backend", "", '{"model": "acme/chat-7b"}'),
        ("Run Info", "Run Index", "", 1),
        ("Run Info", "Profile", "", '{"type_": "concurrent", "streams": [4, 16]}'),
        ("Benchmark", "Strategy", "", "concurrent"),
        ("Timings", "Duration", "Sec", 60),
        ("Request Counts", "Successful", "", 600),
        ("Request Counts", "Errored", "", 12),
        ("Request Latency", "Successful Sec", "Mean", 2.0),
        ("Time to First Token", "Successful ms", "Mean", 100),
        ("Time to First Token", "Successful ms", "Percentiles", "[1, 1, 1, 1, 1, 1, 150, 200, 250, 300, 310]"),
        ("Time to First Token", "Errored ms", "Mean", 9999),
        ("Inter Token Latency", "Successful ms", "Mean", 20),
        ("Token Metrics", "Successful Output Tokens", "Mean", 96),
        ("Time to First Token", "Successful ms", "Mean", 7777),
    ]
    run = one(table(*[list(row) for row in zip(*triples, strict=True)], ending="\r\n"))
    assert (run.model, run.failed, run.num_prompts, run.output_tokens_mean) == ("acme/chat-7b", 12, 612, 96)
    assert (run.max_concurrency, run.extra["strategy"]) == (16, "concurrent")
    assert run.ttft is not None
    assert [ms(run.ttft.mean_s), ms(run.ttft.p95_s)] == pytest.approx([100, 250])


# AIPerf and genai-perf


def metric(unit: str, avg: float, **more: float) -> dict[str, Any]:
    return {"unit": unit, "avg": avg, **more}


GENAI = {
    "request_throughput": metric("requests/sec", 4.0),
    "request_latency": metric("ms", 2000.0, p50=1900.0, p90=2300.0, p99=2500.0, std=90.0),
    "request_count": metric("count", 400.0),
    "time_to_first_token": metric("ms", 100.0, p50=95.0, p99=180.0),
    "inter_token_latency": metric("ms", 19.0, p50=18.5, p99=25.0),
    "output_token_throughput": metric("tokens/sec", 404.0),
    "output_sequence_length": metric("tokens", 101.0),
    "input_sequence_length": metric("tokens", 550.0),
}


def test_genai_perf_json_names_model_and_concurrency_in_its_settings() -> None:
    settings = {"model": ["acme/chat-7b"], "concurrency": 8, "backend": "tensorrtllm", "formatted_model_name": "a"}
    result = read(as_json(GENAI | {"input_config": settings}), "x")
    run = result.runs[0]
    assert (result.format, run.tool, run.model, run.max_concurrency) == (
        "genai_perf_json",
        "genai-perf",
        "acme/chat-7b",
        8,
    )
    assert run.tpot is not None
    assert ms(run.tpot.mean_s) == pytest.approx(19)
    assert run.itl is None


def test_a_later_genai_perf_keeps_its_load_below_perf_analyzer() -> None:
    settings = {"model_names": ["acme/chat-7b"], "perf_analyzer": {"stimulus": {"request_rate": 2.5}}}
    run = one(as_json(GENAI | {"input_config": settings}))
    assert (run.tool, run.model, run.request_rate_per_s) == ("genai-perf", "acme/chat-7b", 2.5)


def test_units_of_metrics_are_read_and_never_assumed() -> None:
    nanoseconds = GENAI | {
        "request_latency": metric("ns", 2.0e9, p99=2.5e9),
        "time_to_first_token": metric("us", 100_000.0),
        "inter_token_latency": metric("sec", 0.019),
    }
    run = one(as_json(nanoseconds | {"input_config": {}}))
    assert run.e2e is not None
    assert run.ttft is not None
    assert run.tpot is not None
    assert [run.e2e.mean_s, run.ttft.mean_s, run.tpot.mean_s] == pytest.approx([2.0, 0.1, 0.019])
    assert "furlongs" in refused(as_json(GENAI | {"request_latency": metric("furlongs", 3.0)}))


def test_aiperf_settings_of_phases_leave_the_warm_up_out() -> None:
    settings = {
        "models": {"items": [{"name": "acme/chat-7b"}]},
        "phases": [
            {"name": "warmup", "kind": "warmup", "concurrency": 2},
            {"name": "profiling", "kind": "profiling", "type": "poisson", "rate": 5.0, "concurrency": 64},
        ],
    }
    telemetry = {
        "endpoints": {"n:9400": {"gpus": {"gpu_0": {"gpu_name": "NVIDIA H100"}, "gpu_1": {"gpu_name": "NVIDIA H100"}}}}
    }
    item = GENAI | {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0",
        "input_config": settings,
        "telemetry_data": telemetry,
        "error_summary": [{"error_details": {}, "count": 3}, {"count": 5}],
        "was_cancelled": True,
    }
    result = read(as_json(item), "x")
    run = result.runs[0]
    assert (run.tool, run.model, run.request_rate_per_s, run.max_concurrency) == ("aiperf", "acme/chat-7b", 5.0, 64)
    assert (run.completed, run.failed, run.num_prompts, run.gpu, run.gpu_count) == (400, 8, 408, "NVIDIA H100", None)
    assert {"coordinated_omission", "incomplete_requests", "failed_requests"} <= codes(result)


def test_an_old_genai_perf_table_counts_nanoseconds_with_thousands_separators() -> None:
    header = ["Metric", "avg", "min", "max", "p99", "p95", "p90", "p75", "p50", "p25"]
    latency = [
        "2,000,000,000.00",
        "1",
        "2",
        "2,500,000,000.00",
        "2,400,000,000.00",
        "2,300,000,000.00",
        "1",
        "1,900,000,000.00",
        "1",
    ]
    content = table(
        header,
        [
            "Time To First Token (ns)",
            "100,000,000",
            "1",
            "2",
            "180,000,000",
            "170,000,000",
            "160,000,000",
            "1",
            "95,000,000",
            "1",
        ],
        [
            "Inter Token Latency (ns)",
            "19,000,000",
            "1",
            "2",
            "25,000,000",
            "24,000,000",
            "23,000,000",
            "1",
            "18,500,000",
            "1",
        ],
        ["Request Latency (ns)", *latency],
        ["Num Output Token", "101", "99", "103", "103", "103", "102", "101", "101", "100"],
        ["Num Input Token", "550", "550", "550", "550", "550", "550", "550", "550", "550"],
        [],
        ["Metric", "Value"],
        ["Output Token Throughput (per sec)", "404.00"],
        ["Request Throughput (per sec)", "4.00"],
    )
    result = read(content, "x")
    run = result.runs[0]
    assert (result.format, run.tool, run.request_throughput_per_s) == ("genai_perf_csv", "genai-perf", 4.0)
    assert (run.input_tokens_mean, run.output_tokens_mean) == (550, 101)
    assert run.e2e is not None
    assert [run.e2e.mean_s, run.e2e.p50_s, run.e2e.p99_s] == pytest.approx([2.0, 1.9, 2.5])
    assert "thousands_separators" in result.notes
    assert "unit_implausible" not in codes(result)


def test_an_aiperf_table_has_columns_in_any_order_empty_cells_and_gpu_readings_behind() -> None:
    content = table(
        ["Metric", "std", "p99", "p50", "avg", "min", "max"],
        ["Time to First Token (ms)", "", "180", "95", "100", "1", "200"],
        ["Request Latency (error-adjusted) (ms)", "", "9", "9", "9", "9", "9"],
        ["Request Latency (ms)", "90", "2500", "1900", "2000", "1", "2600"],
        [],
        ["Metric", "Value"],
        ["Goodput (requests/sec)", "N/A"],
        ["Benchmark Duration (sec)", "100.00"],
        ["Completed Requests (Success + Error)", "410"],
        ["Request Count", "400"],
        [],
        ["Endpoint", "GPU_Index", "GPU_Name", "Metric", "avg"],
        ["n:9400", "0", "NVIDIA H100", "Request Count", "7"],
        ending="\r\n",
    )
    run = one(content)
    assert (run.tool, run.completed, run.failed, run.num_prompts, run.duration_s) == ("aiperf", 400, 10, 410, 100)
    assert run.ttft is not None
    assert run.ttft.std_s is None
    assert run.e2e is not None
    assert run.e2e.p99_s == 2.5


def aiperf_line(phase: str = "profiling", key: str = "benchmark_phase", error: Any = None, **metrics: Any) -> str:
    metadata = {"x_request_id": "1", "request_start_ns": 10**18, "request_end_ns": 10**18 + 10**9, key: phase}
    return json.dumps({"metadata": metadata, "metrics": metrics, "error": error})


def test_aiperf_records_leave_out_warm_up_and_count_errors() -> None:
    answered = {
        "ttft": {"value": 100.0, "unit": "ms"},
        "request_latency": {"value": 1.0, "unit": "sec"},
        "inter_chunk_latency": {"value": [10.0, 20.0], "unit": "ms"},
        "input_sequence_length": {"value": 500, "unit": "tokens"},
        "output_sequence_length": {"value": 11, "unit": "tokens"},
    }
    lines = [
        aiperf_line("warmup", **answered),
        aiperf_line("warmup", key="credit_phase", **answered),
        aiperf_line(**answered),
        aiperf_line(**(answered | {"ttft": {"value": 300.0, "unit": "ms"}})),
        aiperf_line(error={"code": 499, "type": "RequestCancellationError"}, error_isl={"value": 5, "unit": "tokens"}),
    ]
    result = read("\n".join(lines).encode(), "x")
    run = result.runs[0]
    assert (result.format, run.num_prompts, run.completed, run.failed) == ("aiperf_records_jsonl", 3, 2, 1)
    assert run.ttft is not None
    assert run.itl is not None
    assert run.tpot is not None
    assert [ms(run.ttft.mean_s), ms(run.itl.mean_s)] == pytest.approx([200, 15])
    assert ms(run.tpot.mean_s) == pytest.approx(80)  # (1000 - 100) / 10 and (1000 - 300) / 10
    assert (run.input_tokens_mean, run.output_tokens_total) == (500, 22)


def test_aiperf_records_of_failures_only_have_no_latency() -> None:
    result = read((aiperf_line(error={"code": 503}) + "\n" + aiperf_line(error={"code": 503})).encode(), "x")
    assert (result.runs[0].completed, result.runs[0].failed, result.runs[0].ttft) == (0, 2, None)
    assert "all_failed" in codes(result)


def test_an_aiperf_sweep_is_one_load_point_a_combination() -> None:
    def metrics(rate: float) -> dict[str, Any]:
        return {
            "request_throughput_avg": {"mean": rate, "std": 1, "unit": "requests/sec"},
            "time_to_first_token_avg": {"mean": 100.0, "unit": "ms"},
            "time_to_first_token_p99": {"mean": 120.0, "unit": "ms"},
            "request_latency_p50": {"mean": 900.0, "unit": "ms"},
        }

    sweep = {
        "aggregation_type": "sweep",
        "metadata": {"num_combinations": 2},
        "per_combination_metrics": [
            {"parameters": {"phases.profiling.concurrency": 10, "isl": 512}, "metrics": metrics(8.0)},
            {"parameters": {"concurrency": 20, "request_rate": 40}, "metrics": metrics(12.0)},
        ],
    }
    result = read(as_json(sweep), "x")
    assert result.format == "aiperf_sweep_json"
    assert [(run.max_concurrency, run.request_throughput_per_s) for run in result.runs] == [(10, 8.0), (20, 12.0)]
    assert result.runs[0].extra == {"isl": 512}
    assert result.runs[1].request_rate_per_s == 40
    assert result.runs[0].ttft is not None
    assert ms(result.runs[0].ttft.p99_s) == pytest.approx(120)


def test_the_table_of_an_aiperf_sweep_ends_at_the_empty_line() -> None:
    names = ("request_throughput_avg", "time_to_first_token_p99")
    header = [
        "concurrency",
        *(f"{name}_{statistic}" for name in names for statistic in ("mean", "std", "min", "max", "cv")),
    ]
    content = table(
        header,
        [10, 8.0, 1, 7, 9, 0.1, 120.0, 1, 2, 3, 0.1],
        [20, 12.0, 1, 7, 9, 0.1, 150.0, 1, 2, 3, 0.1],
        [],
        ["Best Configurations"],
        ["Configuration", "concurrency", "Metric", "Unit"],
    )
    result = read(content, "x")
    assert result.format == "aiperf_sweep_csv"
    assert [(run.max_concurrency, ms(run.ttft.p99_s)) for run in result.runs if run.ttft] == [(10, 120), (20, 150)]


# inference-perf and llm-d


def stage(**changes: Any) -> dict[str, Any]:
    figures = {"mean": 0.1, "median": 0.09, "p90": 0.15, "p95": 0.2, "p99": 0.3, "p99.9": 0.4}
    latency = {
        "request_latency": {"mean": 2.0, "median": 1.9, "p99": 2.9},
        "normalized_time_per_output_token": {"mean": 0.02},
        "time_per_output_token": {"mean": 0.019, "median": 0.019},
        "time_to_first_token": figures,
        "inter_token_latency": {"mean": 0.019, "median": 0.018},
    }
    return {
        "benchmark_time_seconds": 62.0,
        "load_summary": {
            "count": 500,
            "send_duration": 60.0,
            "requested_rate": 8.0,
            "achieved_rate": 8.1,
            "schedule_delay": {"mean": 0.001, "p99": 0.004},
        },
        "successes": {
            "count": 496,
            "latency": latency,
            "throughput": {"requests_per_sec": 8.0, "output_tokens_per_sec": 808.0, "total_tokens_per_sec": 4808.0},
            "prompt_tokens": {"total": 248_000.0, "cached": 62_000.0, "mean": 500.0},
            "output_tokens": {"total": 50_096.0, "mean": 101.0},
        },
        "failures": {"count": 4, "request_latency": None},
    } | changes


def test_a_newer_inference_perf_stage_knows_its_time_and_what_the_server_cached() -> None:
    result = read(as_json(stage()), "x")
    run = result.runs[0]
    assert (run.num_prompts, run.completed, run.failed, run.duration_s) == (500, 496, 4, 62.0)
    assert (run.input_tokens_mean, run.output_tokens_mean, run.prefix_hit_share) == (500, 101, 0.25)
    assert run.ttft is not None
    assert run.ttft.p99_s == 0.3
    assert records(result)[0]["schedule_delay_p99_ms"] == pytest.approx(4)
    assert records(result)[0]["e2e_per_output_token_ms"] == pytest.approx({"mean": 20})
    assert "mixed_stages" not in codes(result)


def test_concurrency_of_an_inference_perf_stage_is_no_rate() -> None:
    run = one(as_json(stage(load_summary={"count": 500, "requested_rate": 500.0, "concurrency": 16})))
    assert (run.max_concurrency, run.request_rate_per_s) == (16, None)


def test_without_streaming_inference_perf_has_only_whole_requests() -> None:
    successes = stage()["successes"]
    nulls = dict.fromkeys(("time_to_first_token", "time_per_output_token", "inter_token_latency"))
    run = one(as_json(stage(successes=successes | {"latency": successes["latency"] | nulls})))
    assert (run.ttft, run.tpot, run.itl) == (None, None, None)
    assert run.e2e is not None


def test_a_client_behind_its_schedule_and_stages_in_one_report_are_said() -> None:
    load = {"count": 500, "schedule_delay": {"mean": 3.0, "p99": 20.0}}
    assert {"mixed_stages", "rate_not_reached"} <= codes(read(as_json(stage(load_summary=load)), "x"))


def test_single_requests_of_inference_perf_are_summed_up_in_both_shapes() -> None:
    early = {
        "start_time": 10.0,
        "end_time": 11.0,
        "request": '{"prompt": "secret"}',
        "response": "answer",
        "info": {"input_tokens": 500, "output_tokens": 4, "output_token_times": [10.1, 10.4, 10.7, 11.0]},
        "error": None,
    }
    newer = {
        "start_time": 11.0,
        "end_time": 12.0,
        "info": {
            "request_metrics": {"text": {"input_tokens": 300}},
            "response_metrics": {"output_tokens": 4, "output_token_times": [11.2, 11.4, 11.6, 12.0]},
        },
        "error": None,
    }
    failed = {"start_time": 12.0, "end_time": 12.5, "info": {}, "error": {"error_type": "HTTP Error 503"}}
    result = read(as_json([early, newer, failed]), "x")
    run = result.runs[0]
    assert (result.format, run.completed, run.failed, run.num_prompts) == ("inference_perf_per_request", 2, 1, 3)
    assert (run.input_tokens_mean, run.output_tokens_total, run.duration_s) == (400, 8, 2.0)
    assert run.ttft is not None
    assert run.tpot is not None
    assert [ms(run.ttft.mean_s), ms(run.tpot.mean_s)] == pytest.approx([150, (300 + 800 / 3) / 2])
    assert "secret" not in str(result)


LLMD = """
version: '0.2.1'
run:
  time: {duration: PT1M20.5S, start: '2026-03-01T10:00:00Z'}
scenario:
  load:
    standardized: {tool: inference-perf, tool_version: 0.3.0, rate_qps: 10.0, concurrency: .inf, stage: 3}
  stack:
    - standardized: {kind: inference_engine, tool: vllm, replicas: 2, model: {name: acme/chat-7b},
                     accelerator: {model: H100, count: 4}}
    - standardized: {kind: generic, tool: router}
results:
  request_performance:
    aggregate:
      requests:
        total: 800
        failures: 8
        incomplete: 2
        input_length: {units: count, mean: 500.0}
        output_length: {units: count, mean: 101.0}
      latency:
        time_to_first_token: {units: ms, mean: 100.0, p50: 95.0, p99: 300.0}
        time_per_output_token: {units: s/token, mean: 0.019}
        request_latency: {units: s, mean: 2.0, p50: 1.9, p99: 2.9}
      throughput:
        request_rate: {units: queries/s, mean: 9.8}
        output_token_rate: {units: tokens/s, mean: 991.0}
"""


def test_a_report_of_llm_d_names_the_unit_of_every_statistic() -> None:
    result = read(LLMD.encode(), "x")
    run = result.runs[0]
    assert result.format == "llmd_benchmark_report_v0.2"
    assert (run.num_prompts, run.completed, run.failed, run.incomplete) == (800, 790, 8, 2)
    assert (run.duration_s, run.request_rate_per_s, run.max_concurrency) == (80.5, 10.0, None)
    assert (run.gpu, run.gpu_count, run.model, run.engine) == ("H100", 8, "acme/chat-7b", "vllm")
    assert run.ttft is not None
    assert run.tpot is not None
    assert run.e2e is not None
    assert [run.ttft.p99_s, run.tpot.mean_s, run.e2e.p50_s] == pytest.approx([0.3, 0.019, 1.9])
    assert "unit_implausible" not in codes(result)
    assert "fortnight" in refused(LLMD.replace("units: ms", "units: fortnight").encode())


def test_seconds_that_are_labelled_as_milliseconds_are_noticed() -> None:
    assert "unit_implausible" in codes(
        read(LLMD.replace("s/token, mean: 0.019", "ms/token, mean: 0.019").encode(), "x")
    )


# perf_analyzer, k6, Locust


def test_perf_analyzer_counts_microseconds_also_for_a_request_rate() -> None:
    header = [
        "Request Rate",
        "Inferences/Second",
        "Client Send",
        "Server Queue",
        "p50 latency",
        "p99 latency",
        "Avg latency",
    ]
    result = read(table(header, [50, 49.5, 200, 1500, 20_000, 45_000, 21_000], [100, 80, 1, 2, 1, 1, "garbage"]), "x")
    run = result.runs[0]
    assert (result.format, run.request_rate_per_s, run.max_concurrency) == ("perf_analyzer_csv", 50, None)
    assert run.e2e is not None
    assert [ms(run.e2e.mean_s), ms(run.e2e.p99_s)] == pytest.approx([21, 45])
    assert records(result)[0]["server_queue_ms"] == pytest.approx(1.5)


def k6(duration: Any, requests: Any, failures: Any, **more: Any) -> bytes:
    return as_json(
        {"metrics": {"http_req_duration": duration, "http_reqs": requests, "http_req_failed": failures}} | more
    )


def test_the_older_k6_summary_has_no_values_and_counts_failures_as_passes() -> None:
    content = k6(
        {"avg": 800.0, "med": 700.0, "p(90)": 1200.0, "p(95)": 1500.0, "thresholds": {"p(95)<2000": False}},
        {"count": 600, "rate": 10.0},
        {"passes": 30, "fails": 570, "value": 0.05},
        root_group={"name": ""},
    )
    result = read(content, "x")
    run = result.runs[0]
    assert (run.num_prompts, run.failed, run.completed, run.duration_s) == (600, 30, 570, 60.0)
    assert run.e2e is not None
    assert [ms(run.e2e.p50_s), ms(run.e2e.p95_s)] == pytest.approx([700, 1500])
    assert {"failed_requests", "failures_in_percentiles", "no_token_metrics", "p99_missing"} <= codes(result)


@pytest.mark.parametrize("deep", [True, False])
def test_a_k6_summary_flattened_by_powershell_is_read(deep: bool) -> None:
    figures = (
        "@{avg=800.5; min=1; med=700; p(95)=1500; p(99)=1900}",
        "@{count=600; rate=10}",
        "@{passes=0; fails=600}",
    )
    wrapped = [{"type": "trend", "values": each} if deep else each for each in figures]
    run = one(k6(*wrapped, state={"testRunDurationMs": 60_000.0}))
    assert (run.num_prompts, run.failed, run.duration_s) == (600, 0, 60.0)
    assert run.e2e is not None
    assert [ms(run.e2e.mean_s), ms(run.e2e.p99_s)] == pytest.approx([800.5, 1900])


LOCUST = [
    "Type", "Name", "Request Count", "Failure Count", "Median Response Time", "Average Response Time",
    "Min Response Time", "Max Response Time", "Average Content Size", "Requests/s", "Failures/s",
    "50%", "90%", "95%", "99%", "100%",
]  # fmt: skip


def locust_row(kind: str, name: str, sent: int, failed: int, median: float) -> list[Any]:
    percentiles = [median, median * 2, median * 3, median * 4, median * 5]
    return [kind, name, sent, failed, median, median * 1.1, 1, 99, 5, 7.5, 0, *percentiles]


def test_one_endpoint_of_locust_is_a_load_point_and_nothing_is_mixed() -> None:
    rows = [locust_row("POST", "/v1/completions", 900, 0, 1200), locust_row("None", "Aggregated", 900, 0, 1200)]
    result = read(table(LOCUST, *rows), "x")
    first = result.runs[0]
    assert (first.completed, first.request_throughput_per_s, first.extra["row"]) == (900, 7.5, "POST /v1/completions")
    assert first.e2e is not None
    assert first.e2e.p99_s == pytest.approx(4.8)
    assert result.runs[1].extra["row"] == "Aggregated"
    assert not codes(result) & {"mixed_stages", "failures_in_percentiles", "headers_only"}


def test_a_locust_row_faster_than_its_first_token_timed_headers_only() -> None:
    rows = [
        locust_row("POST", "/v1/chat", 500, 20, 6),
        locust_row("TTFT", "ttft", 480, 0, 150),
        locust_row("", "Aggregated", 980, 20, 90),
    ]
    result = read(table(LOCUST, *rows), "x")
    assert result.runs[0].e2e is None
    assert result.runs[1].ttft is not None
    assert {"headers_only", "mixed_stages", "failures_in_percentiles", "failed_requests"} <= codes(result)


def test_an_early_locust_table_and_a_row_without_requests_are_read() -> None:
    header = [
        "Method",
        "Name",
        "# requests",
        "# failures",
        "Median response time",
        "Average response time",
        "Requests/s",
        "50%",
    ]
    result = read(
        table(header, ["GET", "/", 40, 1, 30, 33.5, 2.5, "N/A"], ["GET", "/never", 0, 0, "N/A", 0, 0, "N/A"]), "x"
    )
    assert result.runs[0].e2e is not None
    assert ms(result.runs[0].e2e.p50_s) == pytest.approx(30)
    assert (result.runs[1].completed, result.runs[1].e2e) == (0, None)


@pytest.mark.parametrize(
    ("code", "header"),
    [
        ("locust_failures", ["Method", "Name", "Error", "Occurrences"]),
        ("locust_exceptions", ["Count", "Message", "Traceback", "Nodes"]),
        (
            "locust_stats_history",
            ["Timestamp", "User Count", "Type", "Name", "Requests/s", "Total Median Response Time"],
        ),
    ],
)
def test_the_other_tables_of_locust_belong_to_the_statistics(code: str, header: list[str]) -> None:
    result = read(table(header), "x")
    assert (result.format, result.runs, "companion_file" in result.notes) == (code, (), True)


# GPU tools


def log(content: bytes) -> tuple[GpuLog, set[str]]:
    result = read(content, "x")
    assert result.runs == ()
    return result.gpu_logs[0], codes(result)


def test_nvidia_smi_without_units_in_cells_tells_gpus_apart_by_second() -> None:
    lines = ["timestamp, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"]
    for second in range(12):
        for gpu, (busy, used) in enumerate(((90, 70_000), (40, 30_000))):
            lines.append(f"2026/03/01 10:00:{second:02}.{gpu}17, NVIDIA H100, {busy}, {used}, 81559, [N/A]")
    found, warned = log("\n".join(lines).encode())
    assert (found.samples, found.gpus, found.names) == (12, 2, ("NVIDIA H100",))
    assert found.busy_shares == pytest.approx((0.9, 0.4))
    assert found.memory_used_peak_bytes == 70_000 * 2**20
    assert found.power_max_w is None
    assert warned == {"imbalanced_gpus"}


@pytest.mark.parametrize("cell", ["[N/A]", "[Not Supported]", "N/A", "-", "[Unknown Error]", "9223372036854775794", ""])
def test_what_a_gpu_does_not_report_is_not_known_and_never_zero(cell: str) -> None:
    content = f"index, utilization.gpu [%], memory.used [MiB], temperature.gpu\n0, {cell}, {cell}, {cell}\n".encode()
    found, _ = log(content)
    assert (found.busy_share_max, found.memory_used_peak_bytes, found.temperature_max_c) == (None, None, None)
    assert (found.samples, found.gpus) == (1, 1)


def test_nvidia_smi_without_a_header_is_asked_for_again() -> None:
    assert "noheader" in refused(b"2026/03/01 10:00:00.000, 95 %, 7650 MiB, 81.25 W\n")
    assert "no reading" in refused(b"timestamp, utilization.gpu [%], memory.used [MiB]\n")


DMON = """#Date       Time        gpu   pwr gtemp mtemp    sm   mem    fb
#YYYYMMDD   HH:MM:SS    Idx     W     C     C     %     %    MB
 20260301   10:00:00      0   300    60     -    95    60  7000
 20260301   10:00:00      1   290    61    70    93    55  7100
#Date       Time        gpu   pwr gtemp mtemp    sm   mem    fb
#YYYYMMDD   HH:MM:SS    Idx     W     C     C     %     %    MB
 20260301   10:00:01      0   310    62     -    97    61  7200
 20260301   10:00:01      1     -    61    71    91    54  7100
"""


@pytest.mark.parametrize("separator", [" ", ","])
def test_dmon_repeats_its_header_and_means_bandwidth_by_mem(separator: str) -> None:
    text = DMON if separator == " " else "\n".join(", ".join(line.split()) for line in DMON.splitlines())
    found, warned = log(text.replace("#Date,", "# Date,").encode())
    assert (found.samples, found.gpus) == (2, 2)
    assert found.memory_busy_share_max == pytest.approx(0.61)
    assert found.memory_used_peak_bytes == 7200 * 2**20
    assert (found.power_max_w, found.memory_temperature_max_c) == (310, 71)
    assert "few_samples" in warned


def test_gpustat_drops_who_used_the_gpu() -> None:
    def moment(busy: int | None) -> dict[str, Any]:
        process = {"username": "somebody", "command": "python3", "full_command": ["python3", "secret.py"]}
        gpu = {"index": 0, "name": "NVIDIA H100", "utilization.gpu": busy, "memory.used": 500, "memory.total": 81559}
        return {"hostname": "n", "query_time": "2026-03-01", "gpus": [gpu | {"processes": [process]}]}

    result = read("\n".join(json.dumps(moment(busy)) for busy in (50, None, 70)).encode(), "x")
    assert "somebody" not in str(result)
    assert "secret" not in str(result)
    assert (result.gpu_logs[0].samples, result.gpu_logs[0].busy_share_mean) == (3, pytest.approx(0.6))
    assert "cumulative_counters" not in codes(result)


# Whose file is it?


def test_somebodys_own_table_of_metrics_is_not_taken_for_a_tool() -> None:
    own = table(["Metric", "avg", "min", "max"], ["TTFT (ms)", 100, 1, 2], ["E2E (ms)", 2000, 1, 2], ["QPS", 4, 1, 9])
    assert read(own, "x").format == "generic_csv"


def test_a_guidellm_table_cut_to_some_columns_still_has_its_latency() -> None:
    header = ["Name", "Successful Requests per second mean", "Successful Time to first token ms mean"]
    run = one(table(header, ["constant@2.00", 1.9, 55]))
    assert (run.completed, run.request_rate_per_s) == (None, 2.0)
    assert run.ttft is not None
    assert ms(run.ttft.mean_s) == pytest.approx(55)


# Hostile files


def broken(item: dict[str, Any], path: tuple[str, ...], value: Any) -> bytes:
    copy: dict[str, Any] = json.loads(json.dumps(item))
    place = copy
    for key in path[:-1]:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[path[-1]] = value
    return as_json(copy)


PLACES = [
    (guidellm({"type_": "constant", "rate": 2.0}), ("benchmarks", "0", "request_totals", "successful")),
    (guidellm({"type_": "constant", "rate": 2.0}), ("benchmarks", "0", "metrics", "request_latency")),
    (guidellm({"type_": "constant", "rate": 2.0}), ("benchmarks", "0", "args")),
    (GENAI | {"input_config": {}}, ("request_latency", "avg")),
    (GENAI | {"input_config": {}}, ("request_latency", "unit")),
    (GENAI | {"input_config": {"phases": []}}, ("input_config", "phases")),
    (stage(), ("load_summary", "schedule_delay")),
    (stage(), ("successes", "latency", "request_latency", "mean")),
    (stage(), ("successes", "count")),
]


@pytest.mark.parametrize("value", [None, "twelve", [1], {"a": 1}, True, -5, 10**400, 1e300, float("nan"), float("inf")])
@pytest.mark.parametrize(("item", "path"), PLACES)
def test_a_wrong_value_ends_in_a_result_or_one_sentence(
    item: dict[str, Any], path: tuple[str, ...], value: Any
) -> None:
    with contextlib.suppress(UnreadableFile):
        json.dumps(records(read(broken(item, path, value), "x")), allow_nan=False)
