"""Stored runs show what the checks say of them, what files leave out is asked for, and refusals keep figures out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sheet_samples as samples
from conftest import ROOT
from streamlit.testing.v1 import AppTest

from calc.evidence import Provenance
from calc.judge.decide import decide
from calc.messages import msg
from calc.poc.cells import CacheStrategy
from data.answers import decision_answer
from data.records import BenchmarkRun, LatencyStats, ReadResult, RunDeclaration, RunWarning
from data.run_evidence import decisive_run, evidence_of_run, is_comparable, refused_runs
from data.store import Store, StoredRun
from ui import resources
from ui.sheet.review import Kind
from ui.story import about_facts, about_validity

FAILED = BenchmarkRun(
    tool="vllm bench serve", model="Qwen/Qwen3-32B", backend="vllm", request_rate_per_s=3.0, num_prompts=2000,
    completed=1500, failed=500, input_tokens_mean=4000.0, output_tokens_mean=400.0,
    ttft=LatencyStats(mean_s=0.5, p50_s=0.4, p99_s=0.9),
)  # fmt: skip
FEW = RunWarning(code="few_requests", severity="W", text=msg("80 requests: a P99 needs 1,000. Run longer."))


def stored(run: BenchmarkRun, *warnings: RunWarning, run_id: str = "r") -> StoredRun:
    return StoredRun(
        run_id=run_id, file_id="f", run_index=0, uploaded_at="2026-11-21T10:00", provenance="measured",
        warnings=warnings, run=run,
    )  # fmt: skip


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    path = tmp_path / "store.duckdb"
    monkeypatch.setenv("PLIMSOLL_STORE", str(path))
    with Store(path) as store:
        result = ReadResult(file="h200_tp2_vllm.json", format="f", runs=(FAILED, replace(FAILED, failed=0)))
        store.add_file(result, file_id="file", size_bytes=1)
    started = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    started.query_params["benchmarks_view"] = "stored"
    yield started.run().switch_page("pages/benchmarks.py").run()
    resources.close_store()


def test_missing_facts_are_asked_with_suggestions_and_declared_for_a_whole_file(app: AppTest) -> None:
    assert not app.exception
    boxes = {box.key.split("_")[1]: box for box in app.selectbox if box.key and box.key.startswith("facts_")}
    assert boxes["gpu"].value == "h200", "the name of the file says so"
    count = next(one for one in app.number_input if one.key and one.key.startswith("facts_gpu_count"))
    assert count.value == 2
    flags = next(one for one in app.text_input if one.key and one.key.startswith("facts_engine_flags"))
    flags.set_value("--no-enable-prefix-caching").run()
    strategy = next(one for one in app.selectbox if one.key and one.key.startswith("facts_strategy"))
    assert strategy.value == CacheStrategy.PER_REQUEST.value
    app.text_input(key="declared_by").set_value("Ada")
    next(one for one in app.button if one.key and one.key.startswith("facts_save")).click().run()
    assert not app.exception
    for run in resources.store().runs():
        assert (run.run.gpu, run.run.gpu_count) == ("h200", 2)
        assert run.declaration is not None
        assert run.declaration.declared_by == "Ada"
        assert run.declaration.declaration.strategy is CacheStrategy.PER_REQUEST


def test_a_badge_says_whether_a_run_counts() -> None:
    error = RunWarning(code="failed_requests", severity="E", text=msg("x"))
    assert "not used" in about_validity.badge(stored(FAILED, error))
    assert about_validity.badge(stored(FAILED, FEW)) == "! few requests"
    assert "no warning" in about_validity.badge(stored(FAILED))
    assert about_validity.left_out([stored(FAILED, FEW)]) == []
    assert "failed requests" in about_validity.left_out([stored(FAILED, error)])[0]


def test_only_what_is_missing_is_asked() -> None:
    known = replace(FAILED, gpu="h200", gpu_count=2, engine="vllm")
    assert "gpu" not in about_facts.missing([stored(known)])
    assert "gpu" in about_facts.missing([stored(known), stored(FAILED)])
    told = about_facts.from_name({"gpu": "h100", "tensor_parallel": 4}, {"h100-sxm": "H100"})
    assert told == {"gpu_count": 4}, "H100 may be any of three"


def test_the_newest_usable_run_at_the_planned_load_gives_evidence() -> None:
    scenario = samples.scenario()
    run = samples.run()
    assert is_comparable(run, scenario)
    error = RunWarning(code="unit_implausible", severity="E", text=msg("x"))
    newer = stored(replace(run, date="2026-11-25"), error, run_id="new")
    kept = [stored(run, FEW, run_id="old"), newer, stored(replace(run, gpu="a100-80-sxm"), run_id="other")]
    decisive = decisive_run(kept, scenario)
    assert decisive is not None
    assert decisive.run_id == "old"
    assert [one.run_id for one in refused_runs(kept, scenario)] == ["new"]


def test_a_caveat_goes_with_the_figure_into_findings_risks_and_json() -> None:
    evidence = evidence_of_run(stored(samples.run(), FEW))
    assert evidence["ttft_p99_s"].provenance is Provenance.MEASURED
    assert "itl_mean_s" not in evidence, "the run does not state it"
    targets = {"ttft_slo_s": replace(evidence["ttft_p95_s"], metric="ttft_slo_s", value=1.0, caveats=())}
    decision = decide({**evidence, **targets})
    assert any("80 requests" in str(risk) for risk in decision.risks)
    told = [one for finding in decision_answer(decision)["findings"] for one in finding["evidence"]]
    assert any("80 requests" in text for one in told for text in one.get("caveats", []))


def test_a_latency_without_its_tail_is_no_evidence_beside_a_simulated_one() -> None:
    half = replace(samples.run(), ttft=LatencyStats(mean_s=0.5, p50_s=0.4))
    assert not [metric for metric in evidence_of_run(stored(half)) if metric.startswith("ttft")]


def test_the_sheet_says_which_warnings_its_figures_carry() -> None:
    review = samples.review(runs=(samples.run(),), caveats=((FEW,),))
    says = next(str(proof.says) for proof in review.proofs if proof.kind is Kind.RUNTIME)
    assert "few requests" in says
    refused = samples.review(runs=(), refused=2)
    assert "Refused by a check: 2" in next(str(one.says) for one in refused.proofs if one.kind is Kind.RUNTIME)
    clean = samples.review(runs=(samples.run(),), caveats=((),))
    assert "Warnings" not in next(str(proof.says) for proof in clean.proofs if proof.kind is Kind.RUNTIME)


def test_a_declaration_is_named_as_such() -> None:
    from data.store import StoredDeclaration

    told = StoredDeclaration(
        declaration_id="d", run_id="r", declared_by="Ada", declared_at="2026-11-30T10:00",
        declaration=RunDeclaration(gpu="h200"),
    )  # fmt: skip
    said = about_validity.provenance(replace(stored(FAILED), declaration=told, declared=("gpu",)))
    assert said == ["Declared by Ada on 2026-11-30: GPU."]
