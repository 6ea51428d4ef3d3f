"""The command line: one JSON line per input, in order; errors in place; nothing else on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import ROOT

import cli

ESTIMATE = {"id": "a", "model": "meta-llama/Meta-Llama-3.1-8B-Instruct", "gpu": "h100-sxm", "max_model_len": 8192}
PREDICT = {
    "id": "b",
    "model": "Qwen/Qwen3-14B",
    "gpu": "h100-sxm",
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 500, "p95": 1500},
        "output_tokens": {"distribution": "fixed", "value": 100},
        "arrivals": {"kind": "poisson", "rate_per_s": 4},
        "num_requests": 300,
    },
}
BAD = {"id": "bad", "model": "no/such-model", "gpu": "h100-sxm"}
ESTIMATE_KEYS = {
    "num_blocks",
    "kv_pool_bytes_per_gpu",
    "non_torch_bytes_per_gpu",
    "kv_pool_band_bytes",
    "block_size_tokens",
    "notes",
    "fits",
    "over_bytes",
    "kv_bytes_per_token_per_gpu",
    "weights_bytes_per_gpu",
    "activation_bytes_per_gpu",
    "kv_tokens",
    "max_concurrency",
    "graph_bytes_per_gpu",
}
PREDICT_KEYS = {
    "ttft_ms",
    "itl_ms",
    "tpot_ms",
    "e2e_ms",
    "queue_ms",
    "prefill_ms",
    "decode_ms",
    "network_ms",
    "request_rate_per_s",
    "output_tokens_per_s",
    "kv_usage",
    "preemptions",
    "bound",
    "saturated",
    "max_rate_per_s",
    "calibration",
    "notes",
}
DECIDE_KEYS = {
    "outcome", "bottleneck", "diagnosis", "runner_up", "flips_when", "first_lever", "first_lever_title", "findings",
    "missing", "conditions_outcome", "what_ifs_outcome", "layers",
}  # fmt: skip
OUTCOMES = {"optimise-cache", "add-memory", "re-architect", "tune-scheduling", "no-change", "measure-first"}


def run(*arguments: str, text: str | bytes = "") -> Result:
    return CliRunner().invoke(cli.main, list(arguments), input=text, catch_exceptions=False)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def json_lines(*cases: Any) -> str:
    return "\n".join(json.dumps(case) for case in cases)


def test_an_estimate_has_every_promised_key_and_echoes_its_id() -> None:
    result = run("estimate", "-", text=json.dumps(ESTIMATE))
    (answer,) = lines(result)
    assert result.exit_code == 0
    assert answer["id"] == "a"
    assert answer.keys() >= ESTIMATE_KEYS
    # 32 layers · 8 KV heads · 128 · K and V · 2 bytes
    assert answer["kv_bytes_per_token_per_gpu"] == 131_072
    assert answer["kv_pool_band_bytes"][0] <= answer["kv_pool_bytes_per_gpu"] <= answer["kv_pool_band_bytes"][1]


def test_a_prediction_has_every_promised_key_and_adds_up() -> None:
    (answer,) = lines(run("predict", "-", text=json.dumps(PREDICT)))
    assert answer.keys() >= PREDICT_KEYS
    for latency in ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms"):
        assert set(answer[latency]) == {"mean", "p50", "p90", "p95", "p99"}
        assert answer[latency]["p50"] <= answer[latency]["p90"] <= answer[latency]["p95"] <= answer[latency]["p99"]
    parts = sum(answer[f"{part}_ms"] for part in ("queue", "prefill", "decode", "network"))
    assert parts == pytest.approx(answer["e2e_ms"]["mean"], rel=1e-3)
    assert answer["requests"] == 300


def test_a_load_without_end_beyond_stability_says_where_it_saturates_and_gives_no_latency() -> None:
    load = {**PREDICT["workload"], "arrivals": {"kind": "poisson", "rate_per_s": 500}, "num_requests": None}
    (answer,) = lines(run("predict", "-", text=json.dumps({**PREDICT, "workload": load})))
    assert answer["saturated"] is True
    assert answer["max_rate_per_s"] < 500
    assert answer["ttft_ms"]["p95"] is None
    assert answer["e2e_ms"]["mean"] is None
    assert answer["queue_ms"] is None
    assert any(note.startswith("Saturated at") for note in answer["notes"])


def test_the_same_case_gives_the_same_prediction() -> None:
    assert run("predict", "-", text=json.dumps(PREDICT)).stdout == run("predict", "-", text=json.dumps(PREDICT)).stdout


def test_a_case_that_cannot_be_answered_gives_its_error_in_place_and_the_others_are_answered() -> None:
    result = run("estimate", "-", text=json_lines(ESTIMATE, BAD, ESTIMATE | {"id": "c"}))
    first, second, third = lines(result)
    assert result.exit_code == 1
    assert ("kv_tokens" in first, "kv_tokens" in third) == (True, True)
    assert set(second) == {"id", "error"}
    assert "no/such-model" in second["error"]
    assert [line["id"] for line in (first, second, third)] == ["a", "bad", "c"]


@pytest.mark.parametrize(
    "text",
    [
        json_lines(ESTIMATE, ESTIMATE),
        json.dumps([ESTIMATE, ESTIMATE]),
        json.dumps([ESTIMATE, ESTIMATE], indent=2),
        "\n\n" + json_lines(ESTIMATE, ESTIMATE).replace("\n", "\r\n") + "\r\n",
        ("\ufeff" + json_lines(ESTIMATE, ESTIMATE)).encode(),
    ],
    ids=["lines", "array", "indented", "windows", "bom"],
)
def test_an_array_and_json_lines_are_read_alike(text: str | bytes) -> None:
    assert [line["id"] for line in lines(run("estimate", "-", text=text))] == ["a", "a"]


def test_a_file_is_read_like_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    file.write_text(json.dumps(ESTIMATE, indent=1), encoding="utf-8")
    assert run("estimate", str(file)).stdout == run("estimate", "-", text=json.dumps(ESTIMATE)).stdout


def test_a_broken_line_costs_only_its_own_answer() -> None:
    result = run("estimate", "-", text=json.dumps(ESTIMATE) + '\n{"id": \n' + json.dumps(ESTIMATE))
    first, second, third = lines(result)
    assert ("error" in first, "error" in third) == (False, False)
    assert "Line 2" in second["error"]


@pytest.mark.parametrize("text", ["", "  \n ", "hello", "{", "[" * 100_000, b"\xff\xfe\x00", "9" * 5000])
def test_input_that_is_no_json_gives_one_error(text: str | bytes) -> None:
    result = run("predict", "-", text=text)
    assert result.exit_code == 1
    (answer,) = lines(result)
    assert set(answer) == {"error"}


@pytest.mark.parametrize("value", [3, None, "x", [], True])
def test_an_input_that_is_no_object_is_an_error_in_place(value: Any) -> None:
    result = run("estimate", "-", text=json.dumps([value, ESTIMATE]))
    first, second = lines(result)
    assert "JSON object" in first["error"]
    assert second["id"] == "a"


def test_nan_in_a_case_is_refused_and_never_printed() -> None:
    text = json.dumps(ESTIMATE | {"memory_fraction": float("nan")})
    (answer,) = lines(run("estimate", "-", text=text))
    assert "memory_fraction" in answer["error"]


def test_a_given_pool_is_counted_out_as_blocks_tokens_and_sequences() -> None:
    case = ESTIMATE | {"kv_pool_bytes_per_gpu": 20 * 2**30, "engine_version": "0.32.0"}
    (answer,) = lines(run("estimate", "-", text=json.dumps(case)))
    # 20 GiB / (131,072 bytes · 16 tokens) = 10,240 blocks = 163,840 tokens = 20 sequences of 8,192
    assert (answer["num_blocks"], answer["kv_tokens"], answer["max_concurrency"]) == (10_240, 163_840, 20.0)


def test_a_deployment_that_does_not_fit_is_an_answer() -> None:
    case = {"model": "meta-llama/Llama-3.3-70B-Instruct", "gpu": "l4"}
    (answer,) = lines(run("estimate", "-", text=json.dumps(case)))
    assert answer["fits"] is False
    assert answer["over_bytes"] > 0


def test_a_decision_on_a_scenario_names_one_of_six_outcomes() -> None:
    (answer,) = lines(run("decide", "-", text=json.dumps({"id": 7, "scenario": PREDICT})))
    assert answer["id"] == 7
    assert answer.keys() >= DECIDE_KEYS
    assert answer["outcome"] in OUTCOMES


def test_a_decision_on_evidence_alone_keeps_every_figure_with_its_origin() -> None:
    evidence = {
        "kv_usage_max_share": {"value": 97, "unit": "%", "provenance": "measured", "source": "engine metrics"},
        "waiting": {"value": 12, "unit": "count", "provenance": "measured"},
        "hit_rate_share": 0.02,
        "colour": {"value": "red"},
    }
    (answer,) = lines(run("decide", "-", text=json.dumps({"evidence": evidence})))
    assert answer["outcome"] in OUTCOMES
    assert any("colour" in note for note in answer["notes"])
    seen = {e["metric"]: e for finding in answer["findings"] for e in finding["evidence"]}
    assert seen["kv_usage_max_share"]["value"] == pytest.approx(0.97)
    assert seen["kv_usage_max_share"]["provenance"] == "measured"


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"evidence": {}},
        {"evidence": [1]},
        {"evidence": {"waiting": {"value": 3, "unit": "furlong"}}},
        {"evidence": {"waiting": {"value": 3, "provenance": "hearsay"}}},
        {"scenario": BAD},
    ],
)
def test_evidence_that_cannot_be_used_is_an_error(asked: Any) -> None:
    result = run("decide", "-", text=json.dumps(asked))
    assert result.exit_code == 1
    assert "error" in lines(result)[0]


@pytest.fixture
def result_file(tmp_path: Path) -> Path:
    """What ``vllm bench serve --save-result`` writes, with round numbers."""
    percentiles = {
        f"{stat}_{latency}_ms": value
        for latency, value in (("ttft", 100.0), ("tpot", 10.0), ("itl", 10.0))
        for stat in ("mean", "median", "p99")
    }
    content = {
        "date": "20261130-120000",
        "endpoint_type": "vllm",
        "model_id": "Qwen/Qwen3-14B",
        "tokenizer_id": "Qwen/Qwen3-14B",
        "num_prompts": 2000,
        "request_rate": 4.0,
        "burstiness": 1.0,
        "max_concurrency": None,
        "duration": 500.0,
        "completed": 2000,
        "failed": 0,
        "total_input_tokens": 1_000_000,
        "total_output_tokens": 200_000,
        "request_throughput": 4.0,
        "output_throughput": 400.0,
        "total_token_throughput": 2400.0,
        **percentiles,
        **{f"std_{latency}_ms": 1.0 for latency in ("ttft", "tpot", "itl")},
    }
    file = tmp_path / "result.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_result_files_of_other_tools_are_read_one_line_each(result_file: Path) -> None:
    first, second = lines(run("read", str(result_file), str(result_file)))
    assert first == second
    assert {"file", "format", "records", "warnings", "notes"} <= first.keys()
    (record,) = first["records"]
    assert record["model"] == "Qwen/Qwen3-14B"
    assert record["ttft_ms"]["mean"] == pytest.approx(100)
    assert record["output_token_throughput"] == pytest.approx(400)
    for warning in first["warnings"]:
        assert {"code", "text", "fields"} <= warning.keys()


def test_a_file_that_cannot_be_read_is_an_error_in_place(result_file: Path, tmp_path: Path) -> None:
    poem = tmp_path / "poem.txt"
    poem.write_text("not a benchmark", encoding="utf-8")
    result = run("read", str(tmp_path / "none.json"), str(poem), str(result_file))
    missing, unknown, good = lines(result)
    assert result.exit_code == 1
    assert "none.json" in missing["error"]
    assert "error" in unknown
    assert "format" in good


def test_the_same_file_twice_has_the_same_id(
    result_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    once, twice = lines(run("ingest", str(result_file), str(result_file)))
    assert once["ids"] == twice["ids"] != []
    assert (once["already_there"], twice["already_there"]) == (False, True)


def test_a_probe_line_is_stored_like_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    file = tmp_path / "probe.json"
    file.write_text('{"tool": "plimsoll-probe", "started_at": "2026-11-30T12:00:00Z"}\n', encoding="utf-8")
    once, twice = lines(run("ingest", str(file), str(file)))
    assert once["ids"] == twice["ids"] != []


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize(("ending", "beginning"), [("pdf", b"%PDF-"), ("html", b"<!"), ("md", b"#")])
def test_the_example_sheet_is_written_in_either_language(
    tmp_path: Path, language: str, ending: str, beginning: bytes
) -> None:
    output = tmp_path / f"sheet.{ending}"
    result = run("sheet", "--example", "--language", language, "-o", str(output))
    assert lines(result) == [{"file": str(output), "language": language}]
    assert output.read_bytes().lstrip().startswith(beginning)


def test_a_sheet_wants_one_scenario_and_a_known_ending(tmp_path: Path) -> None:
    assert run("sheet", "-o", str(tmp_path / "a.pdf")).exit_code == 2
    assert run("sheet", "--example", "-o", str(tmp_path / "a.docx")).exit_code != 0
    assert run("sheet", "-", "-o", str(tmp_path / "a.pdf"), text=json.dumps(BAD)).exit_code == 1


def test_the_simulators_speed_is_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from data import questions

    short = {**questions.BENCH_CASE, "workload": {**questions.BENCH_CASE["workload"], "num_requests": 200}}
    monkeypatch.setattr(questions, "BENCH_CASE", short)
    answer = lines(run("bench-simulator"))[-1]
    assert answer["requests_per_s"] > 0
    assert len(answer["seconds"]) == 5


def test_asking_for_help_loads_nothing_heavy() -> None:
    heavy = "{'streamlit', 'numba', 'duckdb', 'pandas', 'plotly', 'torch', 'typst'}"
    code = f"import sys, cli; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "verb", ["estimate", "predict", "read", "ingest", "decide", "sheet", "probe", "bench-simulator"]
)
def test_every_verb_explains_itself(verb: str) -> None:
    assert verb in run("--help").stdout
    if verb != "probe":
        assert len(run(verb, "--help").stdout) > 80


def test_a_case_too_large_for_this_machine_costs_only_its_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(case: Any) -> dict[str, Any]:
        if case["id"] == "huge":
            raise MemoryError
        return {"fine": True}

    monkeypatch.setattr("data.questions.predict", answer)
    huge, other = lines(run("predict", "-", text=json_lines({"id": "huge"}, {"id": "other"})))
    assert "needs more memory" in huge["error"]
    assert other["fine"]
