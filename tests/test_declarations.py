"""What people say about runs: it fills gaps visibly, never overrides a file, and reveals what the file alone hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT

from calc.checks.prefill import prefill_limit_tokens_per_s
from calc.errors import InputError, PlimsollError, StoreError
from calc.poc.cells import CacheStrategy, Repetition
from data import catalogue
from data.catalogue import gpus_named, model_named
from data.declared import apply, merged
from data.engine_flags import flag_hints
from data.formats.judge import facts_of
from data.prefill_limits import prefill_limit
from data.questions import ingest
from data.records import BenchmarkRun, LatencyStats, ReadResult, RunDeclaration
from data.store import Store, default_path

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
FAST = BenchmarkRun(
    tool="vllm bench serve",
    model=LLAMA,
    max_concurrency=8,
    num_prompts=2000,
    completed=2000,
    failed=0,
    input_tokens_mean=8000.0,
    output_tokens_mean=100.0,
    ttft=LatencyStats(mean_s=0.03, p50_s=0.03, p99_s=0.05),
)
"""8,000 prompt tokens in 30 ms: 267,000 tokens/s, four times what the peak of an H100 allows an 8B model."""


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as opened:
        yield opened


def add(store: Store, *runs: BenchmarkRun) -> tuple[str, ...]:
    result = ReadResult(file="x.json", format="f", runs=runs)
    return store.add_file(result, file_id="file", size_bytes=1).stored_ids


def test_the_floor_of_prefill_is_the_peak_over_two_flops_a_parameter() -> None:
    """8.03 B parameters less the 0.53 B of input embedding and output head each: 6.98 B pass; 989 TFLOP/s / 13.96 G."""
    model, gpu = catalogue.model(LLAMA).spec(), catalogue.gpu("h100-sxm")
    assert prefill_limit_tokens_per_s(model, gpu, 1) == pytest.approx(989e12 / (2 * 6.98e9), rel=0.01)
    limit = prefill_limit_tokens_per_s(model, gpu, 2)
    assert limit == pytest.approx(2 * 989e12 / (2 * 6.98e9), rel=0.01)


def test_a_mixture_of_experts_is_bounded_by_the_parameters_a_token_passes() -> None:
    model, gpu = catalogue.model("mistralai/Mixtral-8x7B-Instruct-v0.1").spec(), catalogue.gpu("h100-sxm")
    limit = prefill_limit_tokens_per_s(model, gpu, 1)
    assert limit == pytest.approx(989e12 / (2 * 12.6e9), rel=0.05)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("NVIDIA H100 80GB HBM3", {"h100-sxm"}),
        ("NVIDIA H100 PCIe", {"h100-pcie"}),
        ("NVIDIA A100-SXM4-80GB", {"a100-80-sxm"}),
        ("H100", {"h100-sxm", "h100-pcie", "h100-nvl"}),
        ("NVIDIA GeForce RTX 4090", {"rtx4090"}),
        ("Tesla T4", {"t4"}),
        ("TPU v5e", set()),
    ],
)
def test_names_that_drivers_and_people_write_find_their_gpus(text: str, ids: set[str]) -> None:
    assert {gpu.id for gpu in gpus_named(text)} == ids


def test_a_model_is_found_in_the_hubs_cache_folder() -> None:
    entry = model_named("/models/models--openai--gpt-oss-120b/snapshots/b5c939de/")
    assert entry is not None
    assert entry.id == "openai/gpt-oss-120b"
    assert model_named("/data/my-own-finetune") is None


def test_nothing_is_said_of_prefill_where_anything_about_it_is_unknown() -> None:
    known = replace(FAST, gpu="h100-sxm", gpu_count=1)
    assert prefill_limit(known) is not None
    for gap in ({"gpu": None}, {"gpu_count": None}, {"model": "my-own"}, {"gpu": "TPU v5e"}):
        assert prefill_limit(replace(known, **gap)) is None
    assert prefill_limit(known, RunDeclaration(engine_flags="--quantization fp8")) is None
    assert prefill_limit(replace(known, gpu="H100")) == prefill_limit(known), "the fastest that the name may mean"


@pytest.mark.parametrize(
    ("flags", "strategy", "reuse"),
    [
        ("--no-enable-prefix-caching", CacheStrategy.PER_REQUEST, False),
        ("--disable-radix-cache --tp 4", CacheStrategy.PER_REQUEST, False),
        ("vllm serve x --enable-prefix-caching", CacheStrategy.PREFIX, True),
        ("--enable-prefix-caching=false", CacheStrategy.PER_REQUEST, False),
        ("--kv-offloading-size 64", CacheStrategy.OFFLOAD, True),
        ('--kv-transfer-config {"kv_connector":"NixlConnector"}', None, None),
        ("--max-num-seqs 64", None, None),
        ("", None, None),
    ],
)
def test_start_options_hint_at_the_strategy(flags: str, strategy: CacheStrategy | None, reuse: bool | None) -> None:
    found = flag_hints(flags)
    assert (found.strategy, found.reuse) == (strategy, reuse)


def test_start_options_hint_at_the_number_of_gpus() -> None:
    assert flag_hints("--tensor-parallel-size 4 --pipeline_parallel_size=2").gpu_count == 8
    assert flag_hints("--max-num-seqs 64").gpu_count is None


def test_what_a_file_says_stands_and_the_contradiction_is_told() -> None:
    run = replace(FAST, gpu="NVIDIA H100 80GB HBM3", gpu_count=None)
    applied = apply(run, RunDeclaration(gpu="a100-80-sxm", gpu_count=2, model=LLAMA.upper()))
    assert (applied.run.gpu, applied.run.gpu_count, applied.declared) == ("NVIDIA H100 80GB HBM3", 2, ("gpu_count",))
    assert len(applied.contradictions) == 1
    assert "a100-80-sxm" in str(applied.contradictions[0])
    assert apply(run, RunDeclaration(gpu="h100-sxm")).contradictions == (), "the same GPU under its other name"


def test_a_later_declaration_adds_to_an_earlier_one() -> None:
    before = RunDeclaration(gpu="h100-sxm", strategy=CacheStrategy.PREFIX)
    now = merged(before, RunDeclaration(strategy=CacheStrategy.OFFLOAD, repetition=Repetition.LOW))
    assert now == RunDeclaration(gpu="h100-sxm", strategy=CacheStrategy.OFFLOAD, repetition=Repetition.LOW)


def test_declared_facts_come_back_with_the_run_and_reveal_what_it_cannot_mean(store: Store) -> None:
    first, second = add(store, FAST, FAST)
    assert store.runs()[0].is_evidence
    store.declarations.declare([first, second], RunDeclaration(gpu="h100-sxm", gpu_count=1), by="Ada")
    for stored in store.runs():
        assert (stored.run.gpu, stored.run.gpu_count, stored.declared) == ("h100-sxm", 1, ("gpu", "gpu_count"))
        assert [one.code for one in stored.refusals] == ["prefill_above_roofline"]
        assert stored.declaration is not None
        assert stored.declaration.declared_by == "Ada"
    store.declarations.declare([first], RunDeclaration(gpu_count=8), by="Bob")
    assert store.runs()[0].is_evidence, "eight GPUs can"
    assert [row.declared_by for row in store.declarations.history(first)] == ["Bob", "Ada"]


def test_hits_in_a_run_declared_without_reuse_are_a_warm_cache(store: Store) -> None:
    (run_id,) = add(store, replace(FAST, prefix_hit_share=0.4))
    assert not [one for one in store.runs()[0].warnings if one.code == "warm_cache"]
    store.declarations.declare([run_id], RunDeclaration(engine_flags="--no-enable-prefix-caching"), by="Ada")
    assert [one for one in store.runs()[0].warnings if one.code == "warm_cache"]


def test_a_declared_model_answers_the_question_for_it_and_finds_the_run(store: Store) -> None:
    (run_id,) = add(store, replace(FAST, model=None))
    assert [one for one in store.runs()[0].warnings if one.code == "model_missing"]
    store.declarations.declare([run_id], RunDeclaration(model=LLAMA), by="Ada")
    found = store.runs(model=LLAMA)
    assert [run.run_id for run in found] == [run_id]
    assert not [one for one in found[0].warnings if one.code == "model_missing"]


def test_a_refused_run_counts_again_on_somebodys_word_until_it_is_taken_back(store: Store) -> None:
    (run_id,) = add(store, replace(FAST, failed=400))
    refused = store.runs()[0]
    assert [one.code for one in refused.refusals] == ["failed_requests"]
    store.declarations.confirm(run_id, [one.code for one in refused.refusals], by="Ada", reason="one bad prompt")
    stored = store.runs()[0]
    assert stored.is_evidence
    assert [one.code for one in stored.caveats] == ["failed_requests"], "its figures still say so"
    assert stored.confirmation is not None
    assert (stored.confirmation.confirmed_by, stored.confirmation.reason) == ("Ada", "one bad prompt")
    store.declarations.declare([run_id], RunDeclaration(gpu="h100-sxm", gpu_count=1), by="Bob")
    assert [one.code for one in store.runs()[0].refusals] == ["prefill_above_roofline"], "nobody confirmed that"
    store.declarations.withdraw(run_id, by="Ada", reason="it was the server")
    assert len(store.runs()[0].refusals) == 2


def test_a_word_without_name_or_reason_and_one_on_an_unknown_run_are_refused(store: Store) -> None:
    (run_id,) = add(store, FAST)
    with pytest.raises(InputError):
        store.declarations.confirm(run_id, ["failed_requests"], by=" ", reason="x")
    with pytest.raises(StoreError):
        store.declarations.declare([run_id, "nobody"], RunDeclaration(gpu_count=1), by="Ada")
    assert store.declarations.newest() == {}, "whole or not at all"


def test_an_own_gpu_bounds_a_run_like_a_shipped_one(store: Store) -> None:
    (run_id,) = add(store, FAST)
    store.add_gpu("small", {"memory_gib": 16, "bandwidth_gb_per_s": 300, "bf16_tflops": 50}, source="ours")
    store.declarations.declare([run_id], RunDeclaration(gpu="small", gpu_count=1), by="Ada")
    assert [one.code for one in store.runs()[0].refusals] == ["prefill_above_roofline"]


def test_warnings_that_take_several_runs_stay_with_each_of_them(store: Store) -> None:
    slow = replace(FAST, request_throughput_per_s=4.0)
    add(store, slow, replace(slow, request_throughput_per_s=9.0), replace(slow, max_concurrency=64))
    differ = [any(one.code == "runs_differ" for one in stored.warnings) for stored in store.runs()]
    assert differ == [True, True, False]


def test_repeats_given_as_separate_files_are_looked_at_together(store: Store) -> None:
    """The second run of a day met the first one's prompts in the cache; another day or strategy is another matter."""
    cold = replace(FAST, date="20261101-100000", ttft=LatencyStats(mean_s=0.9, p50_s=0.9, p99_s=1.0))
    warm = replace(cold, date="20261101-110000", ttft=LatencyStats(mean_s=0.2, p50_s=0.2, p99_s=0.3))
    later = replace(warm, date="20271101-110000")
    for name, run in (("a", warm), ("b", cold), ("c", later)):
        store.add_file(ReadResult(file=name, format="f", runs=(run,)), file_id=name, size_bytes=1)
    told = {one.file_id: {w.code for w in one.warnings} for one in store.runs()}
    assert "warm_cache" in told["a"]
    assert "warm_cache" not in told["b"] | told["c"]
    ids = {one.file_id: one.run_id for one in store.runs()}
    store.declarations.declare([ids["a"]], RunDeclaration(strategy=CacheStrategy.PREFIX), by="Ada")
    store.declarations.declare([ids["b"]], RunDeclaration(strategy=CacheStrategy.PER_REQUEST), by="Ada")
    assert not [one for one in store.runs() if any(w.code == "warm_cache" for w in one.warnings)]


def test_declarations_can_be_taken_away_as_a_table(store: Store) -> None:
    (run_id,) = add(store, FAST)
    store.declarations.declare([run_id], RunDeclaration(note="=cmd|calc"), by="Ada")
    assert b"'=cmd" in store.export_csv("declaration")


def test_saying_the_same_again_adds_nothing(store: Store) -> None:
    (run_id,) = add(store, FAST)
    facts = RunDeclaration(gpu="h100-sxm", strategy=CacheStrategy.PREFIX)
    assert len(store.declarations.declare([run_id], facts, by="CI")) == 1
    assert store.declarations.declare([run_id], RunDeclaration(gpu="h100-sxm"), by="CI") == ()
    assert len(store.declarations.history(run_id)) == 1


def test_a_declaration_made_by_mistake_can_be_taken_back(store: Store) -> None:
    (run_id,) = add(store, FAST)
    (first,) = store.declarations.declare([run_id], RunDeclaration(gpu="h100-sxm"), by="Ada")
    (second,) = store.declarations.declare([run_id], RunDeclaration(gpu="h200"), by="Bob")
    removed = store.delete("declaration", second.declaration_id)
    assert store.runs()[0].run.gpu == "h100-sxm"
    store.undo(removed)
    assert store.runs()[0].run.gpu == "h200"
    assert first.declaration.gpu == "h100-sxm"


def test_the_rules_see_a_declared_strategy() -> None:
    declared = RunDeclaration(strategy=CacheStrategy.PAGED)
    assert facts_of(FAST, declared).reuse_declared is False
    assert facts_of(FAST, RunDeclaration(strategy=CacheStrategy.PREFIX)).reuse_declared is True
    assert facts_of(FAST).reuse_declared is None


def test_facts_come_with_the_upload_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "s.duckdb"))
    facts = tmp_path / "facts.json"
    facts.write_text('{"gpu": "H100-SXM", "gpu_count": 2, "strategy": "prefix", "declared_by": "CI"}')
    answer = ingest(ROOT / "data" / "samples" / "sample-vllm-serve.json", facts)
    with Store(default_path()) as opened:
        stored = opened.runs()[0]
    assert [stored.run_id] == answer["ids"]
    assert (stored.run.gpu, stored.run.gpu_count) == ("h100-sxm", 2)
    assert stored.declaration is not None
    assert (stored.declaration.declared_by, stored.declaration.declaration.strategy) == ("CI", CacheStrategy.PREFIX)


@pytest.mark.parametrize(
    "facts",
    ['{"gpu": "h10"}', '{"gpu_count": 0}', '{"strategy": "fast"}', '{"gpus": 1}', "{}", '{"note": "%s"}' % ("x" * 600)],
)
def test_facts_that_cannot_be_are_refused_and_nothing_is_stored(
    facts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "s.duckdb"))
    path = tmp_path / "facts.json"
    path.write_text(facts)
    with pytest.raises(PlimsollError):
        ingest(ROOT / "data" / "samples" / "sample-vllm-serve.json", path)
    with Store(default_path()) as opened:
        assert opened.files() == ()
