"""Evidence in the matrix: cells filled by declared runs, contradictions, gains against the baseline, the four steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit
from conftest import PATIENCE_S, ROOT
from streamlit.testing.v1 import AppTest

from calc.checks.prefill import prefill_above_roofline
from calc.checks.run_facts import RunFacts
from calc.evidence import Percentiles
from calc.poc.cells import CacheStrategy, Cell, Repetition
from calc.poc.coverage import CellState, PlacedRun, contradiction, evidence_of, gains, refusal
from calc.poc.effect import Basis, Summary
from calc.poc.place import Gap
from calc.poc.status import Watched, gap, status
from data.formats import read
from data.placed_runs import known_runs, placed_runs
from data.records import RunDeclaration
from data.store import Store, content_id
from ui.charts.frame import Tones
from ui.charts.poc import latency_over_load, pareto, throughput_over_load
from ui.story import about_compare, about_poc

BASE, PREFIX = CacheStrategy.PER_REQUEST, CacheStrategy.PREFIX


def _cell(strategy: CacheStrategy = BASE, level: Repetition = Repetition.MEDIUM, users: int = 16) -> Cell:
    return Cell(strategy=strategy, repetition=level, context_tokens=2048, concurrency=users)


def _run(cell: Cell | tuple[Gap, ...], ttft_s: float = 1.0, **facts: Any) -> PlacedRun:
    users = cell.concurrency if isinstance(cell, Cell) else 16
    known: dict[str, Any] = {
        "model": "m", "max_concurrency": users, "completed": 1000, "num_prompts": 1000, "failed": 0,
        "request_throughput_per_s": 10.0, "output_token_throughput_per_s": 1000.0,
        "input_tokens_mean": 2048.0, "output_tokens_mean": 100.0,
        "ttft": Percentiles(mean_s=ttft_s, p50_s=ttft_s, p99_s=2 * ttft_s), "tpot": Percentiles(mean_s=0.02),
        "e2e": Percentiles(p50_s=3.0, p95_s=4.0, p99_s=5.0),
    }  # fmt: skip
    stated = Summary(requests=1000, mean_s=ttft_s, std_s=0.3 * ttft_s, percentiles_s={"p50": ttft_s, "p99": 2 * ttft_s})
    return PlacedRun(
        run_id=f"{cell}{ttft_s}{facts}", facts=RunFacts(**{**known, **facts}), place=cell, latencies={"ttft": stated}
    )


def test_a_cell_says_what_its_runs_are_worth() -> None:
    good, other = _run(_cell()), _run(_cell(PREFIX))
    states = {
        CellState.MISSING: [],
        CellState.MEASURED: [good],
        CellState.WARNED: [replace(good, warned=True)],
        CellState.DOUBTFUL: [replace(good, usable=False)],
        CellState.CONTRADICTING: [good, _run(_cell(), request_throughput_per_s=13.0)],
    }
    for state, runs in states.items():
        first, *rest = evidence_of([_cell()], [*runs, other])
        assert first.state is state
        assert [one.cell for one in rest] == [_cell(PREFIX)], "a cell outside the plan shows too"
        assert about_poc.badge(first).count("[") == 1


def test_only_runs_that_may_be_compared_contradict_each_other() -> None:
    at_rate = _run(_cell(), request_throughput_per_s=20.0, request_rate_per_s=20.0, max_concurrency=None)
    assert contradiction([_run(_cell()), at_rate]) is None
    assert contradiction([_run(_cell()), _run(_cell(), request_throughput_per_s=11.9)]) is None


def test_a_strategy_is_held_against_the_baseline_of_the_very_same_load() -> None:
    runs = [
        _run(_cell(), 1.0),
        _run(_cell(PREFIX), 0.8),
        _run(_cell(PREFIX, Repetition.HIGH), 0.2),
        _run(_cell(PREFIX, users=32), 0.9),
    ]
    medium, alone, high = gains(runs, "ttft", "mean")
    assert medium.effect is not None
    assert medium.effect.change_share == pytest.approx(-0.2)
    assert medium.effect.basis is Basis.REQUESTS
    assert medium.effect.certain
    assert alone.cell.concurrency == 32
    assert alone.effect is None
    assert high.effect is None, "no baseline of that repetition was measured"
    told = about_compare.headline(gains(runs, "ttft", "mean"), "ttft", "mean")
    assert "medium" in told
    assert "-20.0 %" in told
    assert "no gain may be quoted" in about_compare.headline([high], "ttft", "mean").lower()
    assert len(about_compare.gain_rows(gains(runs, "ttft", "p99"), "ttft")) == 3


def test_repeats_on_both_sides_give_the_interval() -> None:
    runs = [*(_run(_cell(), s) for s in (1.0, 1.02, 0.98)), *(_run(_cell(PREFIX), s) for s in (0.8, 0.81, 0.79))]
    (found,) = gains(runs, "ttft", "p50")
    assert found.effect is not None
    assert found.effect.basis is Basis.REPEATS
    assert found.effect.certain


def test_prompts_found_in_a_cache_that_was_declared_are_no_impossible_prefill() -> None:
    fast = RunFacts(input_tokens_mean=4000.0, ttft=Percentiles(p50_s=0.1), prefill_limit_tokens_per_s=20_000.0)
    assert prefill_above_roofline(fast) is not None
    assert prefill_above_roofline(replace(fast, reuse_declared=False)) is not None
    assert prefill_above_roofline(replace(fast, reuse_declared=True)) is None
    assert prefill_above_roofline(replace(fast, reuse_declared=True, prefix_hit_share=0.8)) is None
    assert prefill_above_roofline(replace(fast, reuse_declared=True, prefix_hit_share=0.1)) is not None


@pytest.mark.parametrize(("other", "word"), [
    (_run(_cell(PREFIX), input_tokens_mean=1500.0), "lengths"),
    (_run(_cell(PREFIX, users=32)), "in flight"),
    (_run(_cell(PREFIX, Repetition.HIGH)), "repeat"),
    (_run(_cell(PREFIX), request_rate_per_s=4.0), "rate"),
    (_run((Gap.STRATEGY,), output_tokens_mean=None), "not known"),
    (_run((Gap.STRATEGY,), max_concurrency=None, e2e=Percentiles()), "not known"),
])  # fmt: skip
def test_what_must_not_be_compared_says_what_differs(other: PlacedRun, word: str) -> None:
    assert word in str(refusal(_run(_cell()), other))
    assert refusal(_run(_cell()), _run(_cell(PREFIX))) is None


def test_the_four_steps_count_what_is_there() -> None:
    nothing = status([], Watched())
    assert not [one.code for one in nothing if one.measured]
    assert "TTFT of a single request" in str(gap(nothing)[0])
    runs = [
        *(_run(_cell(users=users)) for users in (1, 16, 32)),
        *(_run(_cell(strategy, level)) for strategy in (BASE, PREFIX) for level in Repetition),
        _run(_cell(), request_rate_per_s=10.0, max_concurrency=None),
        _run((Gap.STRATEGY,)),
    ]
    seen = Watched(memory_peak_bytes=1.0, compute_share=0.5, gpu_hour_price=2.0, hit_share=0.3, kv_usage_share=0.8)
    assert [one.code for one in status(runs, seen) if not one.measured] == []
    assert gap(status(runs, seen)) == ()
    unplaced = status([_run((Gap.STRATEGY,))], Watched())
    assert not [one.code for one in unplaced if one.measured], "a run without a place is no evidence of the evaluation"


def test_pictures_show_every_strategy_once() -> None:
    runs = [_run(_cell(strategy, users=users)) for strategy in (BASE, PREFIX) for users in (1, 16)]
    tones = Tones.of(dark=False)
    for figure in (
        latency_over_load(about_compare.latency_series(runs, "ttft", "p99"), "ttft", "P99", tones),
        throughput_over_load(about_compare.throughput_series(runs), tones),
    ):
        assert [trace.name for trace in figure.data if trace.mode == "markers"] == ["Per request", "Prefix reuse"]
    front = pareto(about_compare.pareto_series(runs, 2), tones)
    assert list(front.data[1].y) == [500.0, 500.0], "per GPU"
    assert list(front.data[1].x) == [50.0, 50.0]


def _result(strategy: str, ttft_ms: float, seed: int) -> bytes:
    latencies = {
        f"{statistic}_{metric}_ms": value
        for metric, value in (("ttft", ttft_ms), ("tpot", 40.0), ("itl", 40.0), ("e2el", ttft_ms + 412 * 40.0))
        for statistic in ("mean", "median", "p95", "p99")
    }
    run = {
        "date": f"20261130-1200{seed:02d}", "backend": "vllm", "model_id": "Qwen/Qwen3-32B", "tokenizer_id": strategy,
        "num_prompts": 1000, "request_rate": "inf", "max_concurrency": 55, "duration": 310.0 + seed, "completed": 1000,
        "failed": 0, "total_input_tokens": 3_520_000, "total_output_tokens": 413_000, "request_throughput": 3.2,
        "output_throughput": 1321.0, "total_token_throughput": 12585.0, **latencies,
        **{f"std_{metric}_ms": 100.0 for metric in ("ttft", "tpot", "itl", "e2el")},
    }  # fmt: skip
    return json.dumps(run).encode()


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store with two runs of two strategies, and one of which nobody said anything."""
    path = tmp_path / "store.duckdb"
    with Store(path) as store:
        for number, strategy in enumerate((BASE, BASE, PREFIX, PREFIX, None)):
            content = _result(str(strategy), 1000.0 - 100 * number, number)
            stored = store.add_file(
                read(content, f"run-{number}.json"), file_id=content_id(content), size_bytes=len(content)
            )
            if strategy is not None:
                told = RunDeclaration(
                    gpu="h100-sxm", gpu_count=2, engine="vllm", strategy=strategy, repetition=Repetition.MEDIUM
                )
                store.declarations.declare(stored.stored_ids, told, by="somebody")
    return path


def test_stored_runs_find_their_places_by_what_was_declared(filled: Path) -> None:
    with Store(filled) as store:
        placed = placed_runs(known_runs(store.runs()), (3520,), (1, 55))
    assert [run.place for run in placed if run.cell is None] == [(Gap.STRATEGY, Gap.REPETITION)]
    assert {run.cell for run in placed if run.cell} == {
        Cell(strategy=strategy, repetition=Repetition.MEDIUM, context_tokens=3520, concurrency=55)
        for strategy in (BASE, PREFIX)
    }
    assert all(run.latencies["ttft"].percentiles_s.keys() == {"p50", "p95", "p99"} for run in placed)


@pytest.fixture
def app(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("PLIMSOLL_STORE", str(filled))
    streamlit.cache_resource.clear()
    yield AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S).run()
    streamlit.cache_resource.clear()


def _said(app: AppTest) -> str:
    kinds = ("markdown", "caption", "info", "warning", "code")
    texts = [block.value for kind in kinds for block in getattr(app, kind)]
    return " ".join([*texts, *(table.value.to_string() for table in app.table)])


def test_the_views_of_the_page_show_cells_commands_gains_and_what_is_stored(app: AppTest) -> None:
    app.switch_page("../pages/benchmarks.py").run()
    app.segmented_control(key="benchmarks_view").set_value("matrix").run()
    assert not app.exception, app.exception
    assert "2 runs" in _said(app)
    assert "missing" in _said(app)
    app.segmented_control(key="poc_show").set_value("commands").run()
    app.text_input(key="poc_url").set_value("http://server:9000").run()
    assert "--no-enable-prefix-caching" in _said(app)
    assert "http://server:9000/reset_prefix_cache" in _said(app)
    app.text_input(key="poc_url").set_value("$(id)").run()
    assert not app.exception
    assert "must be like http" in " ".join(error.value for error in app.error)
    app.segmented_control(key="benchmarks_view").set_value("compare").run()
    for look in ("gain", "beside", "load", "model"):
        app.segmented_control(key="bench_look").set_value(look).run()
        assert not app.exception, (look, app.exception)
        if look == "gain":
            assert "Prefix reuse at medium repetition" in _said(app)
    app.segmented_control(key="benchmarks_view").set_value("stored").run()
    assert app.metric[0].value == "5"
    app.button(key="stored_remove").click().run()
    assert app.metric[0].value == "4"
    app.button(key="stored_undo").click().run()
    assert not app.exception, app.exception
    assert app.metric[0].value == "5"
