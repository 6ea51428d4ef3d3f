"""A measured start in place of the estimate: when it stands, what it replaces, and what it says when it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import cli
from calc.deployment import Deployment
from calc.errors import InputError
from calc.judge.decide import scenario_decision
from calc.judge.gather import evidence_of
from calc.memory import MemoryReport, estimate_memory
from calc.startup.comparison import compare_log
from calc.startup.match import choose_log, is_named, matches
from calc.startup.measured import MeasuredMemory
from calc.startup.start import measured_start
from calc.units import GIB
from data import catalogue
from data.case import example_case, read_case, read_deployment, write_case
from data.case_measured import measured_of_text, measured_text, parse_measured, write_measured
from data.case_of_log import case_of_log
from data.formats.startup_log import read_startup_log
from data.store import Store
from ui import fields

CASE = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm",
    "engine": "vllm",
    "engine_version": "0.19.0",
    "memory_fraction": 0.95,
    "max_model_len": 8192,
}
LOG = """(APIServer pid=1) INFO vLLM API server version 0.19.1
(APIServer pid=1) non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', 'max_model_len': 8192,\
 'gpu_memory_utilization': 0.95}
(EngineCore pid=2) Model loading took 14.99 GiB memory and 5.4 seconds
(EngineCore pid=2) Available KV cache memory: 57.90 GiB
(EngineCore pid=2) GPU KV cache size: 474,320 tokens
(EngineCore pid=2) Graph capturing finished in 7 secs, took 0.89 GiB
"""
FULL = LOG + (
    "Free memory on device (78.68/79.19 GiB) on startup. Desired GPU memory utilization is (0.95, 75.23 GiB). Actual "
    "usage is 14.99 GiB for weight, 2.09 GiB for peak activation, 0.25 GiB for non-torch memory, and 0.89 GiB for "
    "CUDAGraph memory.\n"
)


def deployment(**changes: Any) -> Deployment:
    return read_deployment({**CASE, **changes})[0]


def start(text: str = LOG, **changes: Any) -> MeasuredMemory:
    """The measured start of a log pasted beside the scenario."""
    found = measured_start(read_startup_log(text), deployment(), log_id="0123456789abcdef", date="2026-11-30").memory
    return replace(found, **changes)


def measured(log: MeasuredMemory, **changes: Any) -> MemoryReport:
    return estimate_memory(replace(deployment(**changes), measured_memory=log))


def texts(report: MemoryReport) -> str:
    return " ".join(str(note) for note in report.notes)


def test_a_matching_start_replaces_what_it_measured() -> None:
    report = measured(start())
    assert report.kv_pool_bytes == round(57.9 * GIB)
    assert report.kv_tokens == 474_320
    assert report.weights_bytes == round(14.99 * GIB)
    assert report.kv_pool_band_bytes == (report.kv_pool_bytes, report.kv_pool_bytes)
    assert {part: report.origin(part) for part in ("weights", "kv_pool", "graphs", "activation", "non_torch")} == {
        "weights": "measured",
        "kv_pool": "measured",
        "graphs": "measured",
        "activation": "estimated",
        "non_torch": "estimated",
    }
    assert (report.log_id, report.log_date) == ("0123456789abcdef", "2026-11-30")
    assert "does not name: activations, libraries and buffers" in texts(report)


@pytest.mark.parametrize("text", [LOG, FULL])
def test_parts_add_up_to_the_gpus_memory_and_to_the_budget(text: str) -> None:
    report = measured(start(text))
    parts = report.weights_bytes + report.runtime_bytes + report.kv_pool_bytes + report.margin_bytes
    assert parts == report.total_bytes
    inside = report.weights_bytes + report.activation_bytes + report.non_torch_bytes + report.kv_pool_bytes
    assert inside == pytest.approx(report.budget_bytes, abs=0.02 * GIB)


def test_without_a_log_nothing_changes() -> None:
    plain = estimate_memory(deployment())
    assert plain.provenance == {}
    assert plain.log_id == ""


OTHER: dict[str, dict[str, Any]] = {
    "model": {"model": "Qwen/Qwen3-8B"},
    "GPU": {"gpu": "a100-80-sxm"},
    "TP": {"tp": 2},
    "PP": {"pp": 2},
    "version": {"engine_version": "0.21.0"},
    "engine": {"engine": "sglang", "engine_version": "0.5.3"},
    "fraction": {"memory_fraction": 0.9},
    "batched tokens": {"max_num_batched_tokens": 2048},
    "sequences": {"max_num_seqs": 64},
    "KV dtype": {"kv_dtype": "fp8"},
    "weight dtype": {"weight_dtype": "fp8"},
}


@pytest.mark.parametrize("what", OTHER)
def test_another_start_is_estimated_again(what: str) -> None:
    changed = measured(start(), **OTHER[what])
    assert changed.provenance == {}
    assert changed.kv_pool_bytes == estimate_memory(deployment(**OTHER[what])).kv_pool_bytes
    similar = what not in ("model", "engine")
    assert ("similar start" in texts(changed)) is similar
    assert ("gives a KV pool" in texts(changed)) is (similar and what not in ("GPU", "version", "weight dtype"))


@pytest.mark.parametrize("changes", [{"engine_version": "0.19.2"}, {"enable_prefix_caching": False}, {"replicas": 3}])
def test_what_changes_no_memory_keeps_the_log(changes: dict[str, Any]) -> None:
    assert measured(start(), **changes).origin("kv_pool") == "measured"


def test_another_maximum_length_only_counts_the_pool_anew() -> None:
    report = measured(start(), max_model_len=4096)
    assert report.kv_pool_bytes == round(57.9 * GIB)
    assert report.max_concurrency == pytest.approx(2 * measured(start()).max_concurrency, rel=1e-3)


def test_the_team_can_ask_for_the_estimate_again() -> None:
    report = measured(start(used=False))
    assert report.kv_pool_bytes == estimate_memory(deployment()).kv_pool_bytes
    assert "you asked for the estimate" in texts(report)


def test_a_pool_the_user_gave_stays_the_users() -> None:
    report = measured(start(), kv_tokens=100_000)
    assert report.kv_tokens == 100_000
    assert report.origin("kv_pool") == "estimated"
    assert report.origin("weights") == "measured"


def test_the_case_carries_the_measured_start_everywhere() -> None:
    scenario, told = read_case({**example_case(), **CASE, "tp": 1, "measured_memory": write_measured(start())})
    assert scenario.deployment.measured_memory == start()
    again, notes = read_case(json.loads(json.dumps(write_case(scenario))))
    assert again.deployment == scenario.deployment
    assert notes == told
    values = fields.to_values(write_case(scenario))
    linked, problems = fields.from_link(fields.to_link(values, fields.to_values(example_case())))
    assert not problems
    assert linked["measured"] == values["measured"] == measured_text(start())
    assert fields.to_case(values)["measured_memory"] == write_measured(start())


@given(
    st.text(max_size=60) | st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5).map(json.dumps)
)
@settings(max_examples=60, deadline=None)
def test_any_other_text_in_a_link_gets_a_sentence(text: str) -> None:
    try:
        measured_of_text(text)
    except InputError as error:
        assert str(error)  # noqa: PT017
    _, problems = fields.from_link({"measured": text})
    assert len(problems) == (1 if text else 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights_bytes": "many"}, {"weights_bytes": -1}, {"kv_pool_bytes": 10**18}, {"tp": 0}, {"kv_tokens": 0},
        {"memory_fraction": 2}, {"used": "yes"}, {"engine": None}, {"log_id": 7},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_figure_in_a_case_gets_one_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        parse_measured({**write_measured(start()), **wrong})


def test_the_command_line_gives_the_same_numbers(tmp_path: Path) -> None:
    case = {**CASE, "id": "a", "measured_memory": write_measured(start())}
    result = CliRunner().invoke(cli.main, ["estimate", "-"], input=json.dumps(case))
    answer = json.loads(result.output.splitlines()[0])
    assert answer["kv_tokens"] == 474_320
    assert answer["provenance"]["kv_pool"] == "measured"
    assert answer["log_id"] == "0123456789abcdef"


def test_read_and_ingest_know_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    path = tmp_path / "server.txt"
    path.write_text(FULL, encoding="utf-8")
    read = json.loads(CliRunner().invoke(cli.main, ["read", str(path)]).output)
    assert read["format"] == "vllm_log"
    assert read["startup_log"]["figures"]["kv_tokens"]["value"] == 474_320
    estimated = CliRunner().invoke(
        cli.main, ["estimate", "-"], input=json.dumps({**CASE, "measured_memory": read["measured_memory"]})
    )
    assert json.loads(estimated.output.splitlines()[0])["provenance"]["activation"] == "measured"
    first, second = (json.loads(CliRunner().invoke(cli.main, ["ingest", str(path)]).output) for _ in range(2))
    assert first["id"] == second["id"]
    assert (first["already_there"], second["already_there"]) == (False, True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store(tmp_path / "store.duckdb") as opened:
        yield opened


def test_a_stored_log_comes_back_can_be_removed_and_exported(store: Store) -> None:
    answer = {"engine": "vllm", "figures": {}}
    added = store.add_startup_log(answer, write_measured(start()), name="a.log")
    assert store.add_startup_log(answer, write_measured(start()), name="b.log").already_there
    (row,) = store.startup_logs()
    assert parse_measured(row.measured) == start()
    assert (row.name, row.model, row.read) == ("a.log", CASE["model"], answer)
    assert b"0123456789abcdef" in store.export_csv("startup_log")
    gone = store.delete("startup_log", added.file_id)
    assert store.startup_logs() == ()
    store.undo(gone)
    assert len(store.startup_logs()) == 1


def test_the_log_that_matches_is_chosen_before_one_that_is_only_similar() -> None:
    near, other = start(max_num_seqs=64, log_id="near"), start(model="Qwen/Qwen3-8B", log_id="other")
    here = deployment()
    assert choose_log(None, [other, near, start()], here) == start()
    assert choose_log(None, [other, near], here) == near
    assert choose_log(None, [other], here) is None
    assert choose_log(start(used=False), [start()], here) == start(used=False)
    unnamed = replace(start(), gpu=None, gpu_memory_bytes=None)
    assert not is_named(unnamed)
    assert choose_log(None, [unnamed], here) is None
    assert matches(unnamed, here)


def test_every_decision_and_evidence_says_measured() -> None:
    scenario, _ = read_case({**example_case(), **CASE, "tp": 1, "measured_memory": write_measured(start(FULL))})
    evidence = evidence_of(scenario, memory=estimate_memory(scenario.deployment, scenario.workload))
    for metric in ("weights_bytes", "kv_pool_bytes", "kv_tokens", "gpu_memory_bytes"):
        assert (evidence[metric].provenance, evidence[metric].date) == ("measured", "2026-11-30"), metric
        assert "01234567" in evidence[metric].source
    assert evidence["runtime_share"].provenance == "estimated"
    decision = scenario_decision(scenario, tuple(catalogue.gpus().values()))
    used = [one for finding in decision.findings for one in finding.evidence if one.metric == "kv_pool_bytes"]
    assert all(one.provenance == "measured" for one in used)


COMPARED = {
    "parts not named": LOG,
    "every part": FULL,
    "only a pool": "Available KV cache memory: 20.9 GiB",
    "another fraction": FULL.replace("0.95", "0.9").replace("75.23", "71.27").replace("57.90", "53.94"),
    "another batch budget": FULL.replace("'max_model_len': 8192", "'max_num_batched_tokens': 2048"),
    "two ranks": FULL + "(Worker_TP1) Available KV cache memory: 57.70 GiB\n",
    "a V0 log": LOG.replace("0.19.1", "0.6.5") + "GiB; the rest of the memory reserved for KV Cache is 50.00GiB.",
    "refused": LOG.replace("57.90", "-2.81"),
}


@pytest.mark.parametrize("what", COMPARED)
def test_the_parts_effects_add_up_to_the_pools_difference(what: str) -> None:
    log = read_startup_log(COMPARED[what])
    compared = compare_log(log, start(COMPARED[what]), deployment())
    assert compared.pool.difference_bytes is not None
    assert sum(part.effect_bytes for part in compared.parts) == compared.pool.difference_bytes
    assert compared.pool.estimated_bytes == estimate_memory(deployment()).kv_pool_bytes


def test_every_part_of_a_full_log_is_explained_to_the_rounding() -> None:
    compared = compare_log(read_startup_log(FULL), start(FULL), deployment())
    (rest,) = [part for part in compared.parts if part.part == "rest"]
    assert abs(rest.effect_bytes) <= 0.03 * GIB
    assert all(part.why for part in compared.parts if part.part not in ("budget",))


def reasons(what: str) -> str:
    compared = compare_log(read_startup_log(COMPARED[what]), start(COMPARED[what]), deployment())
    rows = (*compared.parts, compared.pool)
    return " ".join(str(why) for row in rows for why in row.why)


def test_differences_are_put_down_to_what_made_them() -> None:
    assert "started with 90 %, here it is 95 %" in reasons("another fraction")
    assert "2,048 batched tokens" in reasons("another batch budget")
    assert "Ranks had 57.70 to 57.90 GiB left" in reasons("two ranks")
    assert "Captured outside the budget" in reasons("every part")
    assert "does not say which share" in reasons("only a pool")


def test_graphs_count_against_the_pool_only_where_the_log_shows_it() -> None:
    text = (
        FULL.replace("0.19.1", "0.32.0").replace("took 0.89", "took 0.23").replace("0.89 GiB for C", "0.23 GiB for C")
    )
    here = deployment(engine_version="0.32.0")
    log = read_startup_log(text)
    outside = measured_start(log, here, log_id="a", date="").memory
    assert outside.graphs_in_budget is False
    inside = text.replace("57.90", "57.67")
    assert measured_start(read_startup_log(inside), here, log_id="a", date="").memory.graphs_in_budget is True


def test_what_the_log_does_not_say_is_taken_from_the_scenario_and_told() -> None:
    found = measured_start(read_startup_log("Available KV cache memory: 8.11 GiB"), deployment(), log_id="a", date="")
    assert "engine version, model, GPU, parallel split, memory fraction" in str(found.note)
    assert found.memory.max_num_batched_tokens == 8192
    alone = measured_start(read_startup_log("Available KV cache memory: 8.11 GiB"), None, log_id="a", date="")
    assert (alone.memory.model, alone.memory.memory_fraction, alone.note) == ("", None, None)


def test_a_log_becomes_the_scenario_with_its_own_arguments() -> None:
    text = FULL.replace("meta-llama/Llama-3.1-8B-Instruct", "/mnt/Qwen3-8B").replace("79.19", "139.80")
    names = {"qwen3-8b"}
    log = measured_start(read_startup_log(text), deployment(), log_id="a", date="", known_models=names).memory
    case = case_of_log({**CASE, "tp": 4, "max_num_seqs": 7, "price": 1}, log, deployment().gpu)
    assert (case["model"], case["gpu"], case["tp"]) == ("Qwen/Qwen3-8B", "h200", 1)
    assert (case["max_model_len"], case["price"]) == (8192, 1)
    assert "max_num_seqs" not in case


def log_of(truth: dict[str, Any]) -> str:
    """What vLLM 0.19 logs of a recorded start."""
    return (
        f"Memory profiling takes 7.2 seconds. Total non KV cache memory: 9.99GiB; torch peak memory increase: "
        f"{truth['activation_memory_gib']}GiB; non-torch forward increase memory: {truth['non_torch_forward_gib']}GiB; "
        f"weights memory: {truth['weight_memory_gib']}GiB.\n"
        f"Available KV cache memory: {truth['kv_cache_memory_gib']} GiB\n"
        f"GPU KV cache size: {truth['kv_cache_tokens']:,} tokens\n"
    )


def test_recorded_starts_come_back_exactly_once_their_log_is_known(cases_dir: Path) -> None:
    path = cases_dir / "memory" / "estimate_cases.jsonl"
    if not path.exists():
        pytest.skip("the recorded starts are not here")
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(cases) >= 30
    for case in cases:
        here, truth = read_deployment(case["case"])[0], case["truth"]
        log = read_startup_log(log_of(truth))
        found = measured_start(log, here, log_id="a", date="").memory
        report = estimate_memory(replace(here, measured_memory=found))
        assert report.kv_tokens == truth["kv_cache_tokens"], case["id"]
        assert report.kv_pool_bytes == pytest.approx(truth["kv_cache_memory_gib"] * GIB, abs=2)
        assert report.activation_bytes == pytest.approx(truth["activation_memory_gib"] * GIB, abs=2)
        compared = compare_log(log, found, here)
        assert sum(part.effect_bytes for part in compared.parts) == compared.pool.difference_bytes


def test_a_log_with_absurd_figures_is_compared_but_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    text = FULL.replace("'max_model_len': 8192", "'max_num_seqs': 999999999, 'tensor_parallel_size': 3")
    text = text.replace("57.90", "99999999999.0")
    log = read_startup_log(text)
    compared = compare_log(log, start(text), deployment())
    assert sum(part.effect_bytes for part in compared.parts) == compared.pool.difference_bytes
    path = tmp_path / "a.log"
    path.write_text(text, encoding="utf-8")
    assert "error" in json.loads(CliRunner().invoke(cli.main, ["ingest", str(path)]).output)


def test_ranks_of_dp_add_up_in_the_replica() -> None:
    log = start(dp=2)
    report = measured(log, dp=2)
    assert report.kv_tokens == 2 * 474_320
    assert report.kv_pool_bytes == round(57.9 * GIB)
