"""The readers against real result files of the tools, when the folder of observations is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calc.errors import UnreadableFile
from data.formats import read, records

WITHIN = 0.01
NOT_IN_THE_FILE = {
    "evalscope_1.14.1_p2_benchmark_summary.json": {"tool_version"},
    "nvidia_smi_query_units.csv": {"temp_c_max"},
}
"""Facts that only the name of the file tells, and a maximum of 73 where the second reading is 74."""
RAISES_MORE = {
    "vllm_sweep_v0.25.1_summary.csv": {"runs_differ"},
    "llmperf_bedrock_70b_summary.json": {"failed_requests"},
    "llmperf_fireworks_70b_individual.json": {"itl_includes_ttft"},
    "guidellm_0.8.0dev18_report.json": {"prompts_shared"},
    "guidellm_0.8.1_multirow_header.csv": {"prompts_shared", "rate_not_reached"},
    "guidellm_0.3.1_concurrent_mock.csv": {"incomplete_requests"},
    "aiperf_2025_10_records_gptoss20b.json": {"start_burst"},
    "aiperf_0.13_records_mock.jsonl": {"failed_requests"},
    "genai_perf_0.0.16_profile_export_genai_perf.csv": {"throughput_inconsistent"},
    "inference_perf_eagle_stage3_lifecycle.json": {"throughput_inconsistent"},
    "locust_2.47_llm_stats.csv": {"no_token_metrics"},
    "llmd_benchmark_report_v0.1.yaml": {"incomplete_requests", "throughput_inconsistent", "prefill_above_roofline"},
}
"""Two runs of one setting differ by a factor of two; 49 of 150 requests failed; an ITL that
counts TTFT there as in the summary; prompts of two turns with a prefix; 0.4
of 2 requests a second; 1 of 17 requests cut off; 100 requests of 100 users; 1 of 12 failed; E2E ten times what its
parts make; a TPOT of chunks, two a token; no tokens at all; an example whose numbers were put together."""
SAY_WHAT_IS_MISSING = {
    "model_missing",
    "failures_unknown",
    "lengths_missing",
    "few_requests",
    "p99_missing",
    "few_samples",
}
"""Codes the list of a file need not name: each follows from a field that is not there or a count that is small."""


def expected_of(cases_dir: Path) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((cases_dir / "formats" / "EXPECTED.json").read_text(encoding="utf-8"))
    return table


def differences(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    return [
        f"{key}: expected {value}, got {got.get(key)}"
        for key, value in expected.items()
        if not same(value, got.get(key))
    ]


def same(expected: Any, got: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(got, dict) and not differences(expected, got)
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return bool(got == pytest.approx(expected, rel=WITHIN))
    return bool(expected == got)


def test_every_value_of_a_real_result_file_is_read_within_one_percent(cases_dir: Path) -> None:
    off: dict[str, list[str]] = {}
    for name, entry in expected_of(cases_dir).items():
        result = read((cases_dir / "formats" / name).read_bytes(), name)
        got = records(result)
        assert (result.format, len(got)) == (entry["format"], entry["n_records"]), name
        absent = NOT_IN_THE_FILE.get(name, set())
        wanted = [{key: value for key, value in each.items() if key not in absent} for each in entry["records"]]
        wrong = [line for want, have in zip(wanted, got, strict=True) for line in differences(want, have)]
        off |= {name: wrong} if wrong else {}
    assert not off


def test_a_real_result_file_raises_its_validity_codes_and_no_other_finding(cases_dir: Path) -> None:
    for name, entry in expected_of(cases_dir).items():
        result = read((cases_dir / "formats" / name).read_bytes(), name)
        codes = [warning.code for warning in result.warnings]
        expected, allowed = set(entry["warnings"]), RAISES_MORE.get(name, set()) | SAY_WHAT_IS_MISSING
        assert expected <= set(codes) <= expected | allowed, name
        assert len(codes) == len(set(codes)), name


@pytest.mark.parametrize(
    ("tool", "content"),
    [
        ("perf_analyzer", b'{"experiments": [{"requests": []}], "version": "2.50", "service_kind": "openai"}'),
        ("AIPerf", b"Timeslice,Metric,Unit,Stat,Value\n0,Request Latency,ms,avg,12\n"),
    ],
)
def test_a_tool_without_a_reader_is_named_and_never_guessed_at(tool: str, content: bytes) -> None:
    """One of them has nanoseconds without saying so; read as somebody's own table it would be wrong a millionfold."""
    with pytest.raises(UnreadableFile, match=tool):
        read(content, "x")


def test_the_name_of_a_file_decides_nothing(cases_dir: Path) -> None:
    content = (cases_dir / "formats" / "vllm_serve_v0.25.1_basic.json").read_bytes()
    assert read(content, "table.csv").format == read(content, "holiday.png").format == "vllm_bench_serve_json"


def test_a_shortened_array_does_not_speak_for_the_run(cases_dir: Path) -> None:
    """The file's ITL arrays were cut; percentiles the summary lacks come from the whole TTFT array only."""
    content = (cases_dir / "formats" / "vllm_serve_2024_llama3_8b_h100_detailed.json").read_bytes()
    run = read(content, "x").runs[0]
    assert run.ttft is not None
    assert run.ttft.p95_s == pytest.approx(0.063255, rel=1e-3)
    assert run.itl is not None
    assert run.itl.p95_s is None
