"""Logs of GPU readings end to end: stored once, tied to the runs they watched, and evidence for the decision."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sheet_samples as samples
from click.testing import CliRunner
from conftest import ROOT
from streamlit.testing.v1 import AppTest

from calc.checks.run_facts import RunFacts
from calc.errors import InputError, StoreError
from calc.evidence import Provenance
from calc.judge.decide import decide
from calc.poc.cells import Cell, Repetition
from calc.poc.coverage import BASELINE, PlacedRun
from cli import main
from data.formats import read
from data.formats.bundle import read_files
from data.formats.bundle_files import files_of, given
from data.gpu_evidence import evidence_of_logs, use_of
from data.gpu_ties import other_gpu, overlap
from data.intake import take
from data.records import BenchmarkRun, GpuLog, LatencyStats, ReadResult
from data.run_evidence import evidence_of_run
from data.store import Store, StoredGpuLog, StoredRun, TiedLog, content_id
from ui import resources
from ui.benchmarks.found import Kept
from ui.benchmarks.progress import watched
from ui.sheet.proofs import proofs
from ui.sheet.review import Filing
from ui.story import about_gpu_logs, about_upload

HEADER = (
    "timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%], power.draw [W], "
    "power.limit [W], temperature.gpu"
)


def smi(seconds: int = 120, day: str = "2026/11/20", gpus: tuple[tuple[int, int], ...] = ((90, 70_000),)) -> bytes:
    """Readings every five seconds from ten o'clock; use and memory of each GPU."""
    lines = [HEADER]
    for second in range(0, seconds + 1, 5):
        for gpu, (busy, used) in enumerate(gpus):
            clock = f"10:{second // 60:02}:{second % 60:02}.{gpu}11"
            lines.append(
                f"{day} {clock}, {gpu}, NVIDIA H100 80GB HBM3, {used} MiB, 81559 MiB, {busy} %, 350.00 W, 700.00 W, 61"
            )
    return "\n".join(lines).encode()


RUN = BenchmarkRun(
    tool="vllm bench serve", model="m", date="20261120-100205", duration_s=120.0, completed=1000,
    ttft=LatencyStats(p50_s=0.1, p99_s=0.3),
)  # fmt: skip
LOCUST = b"Method,Name,Error,Occurrences\nPOST,/v1/chat/completions,HTTPError(503),18\n"


def log_of(content: bytes) -> GpuLog:
    return read(content, "gpu.csv").gpu_logs[0]


def watching(store: Store, content: bytes, run: BenchmarkRun = RUN) -> StoredRun:
    """The run as the store tells it once both are there."""
    store.add_file(ReadResult(file="run.json", format="f", runs=(run,)), file_id="run", size_bytes=1)
    store.add_file(read(content, "gpu.csv"), file_id=content_id(content), size_bytes=len(content))
    return store.runs()[0]


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as opened:
        yield opened


def test_a_log_is_stored_once_whole_and_can_be_removed_brought_back_and_taken_away(store: Store) -> None:
    content = smi(gpus=((90, 70_000), (60, 69_000)))
    first, again = take(store, content, "gpu.csv"), take(store, content, "gpu.csv")
    assert (first["already_there"], again["already_there"], first["ids"]) == (False, True, again["ids"])
    (kept,) = store.gpu_logs()
    assert (kept.log, kept.file, [one.code for one in kept.warnings]) == (
        log_of(content), "gpu.csv", ["imbalanced_gpus"],
    )  # fmt: skip
    removed = store.delete("gpu_log", kept.gpu_log_id)
    assert store.gpu_logs() == ()
    store.undo(removed)
    assert b"NVIDIA H100" in store.export_csv("gpu_log")
    hidden = store.delete("file", kept.file_id)
    assert store.gpu_logs() == ()
    store.undo(hidden)
    store.delete("gpu_log", kept.gpu_log_id)
    take(store, content, "gpu.csv")
    assert store.gpu_logs() == (kept,), "a file given again is wanted again"


@pytest.mark.parametrize(
    ("date", "duration_s", "covers"),
    [
        ("20261120-100205", 120.0, True),  # the stamp of its end, on the clock of the machine
        ("20261120-100500", 120.0, False),
        ("20261120-100300", 120.0, True),  # half of the run is seen
        ("20261120-100100", None, True),
        ("2026-11-20T10:00:00+00:00", 120.0, False),  # UTC against a clock of no zone: nobody can tell
        ("2026-11-20 10:00:00", 120.0, False),  # begin or end?
        ("2026-11-20", None, False),
        (None, 120.0, False),
    ],
)
def test_times_tie_a_log_to_a_run_only_where_both_mean_the_same(
    date: str | None, duration_s: float | None, covers: bool
) -> None:
    run = replace(RUN, date=date, duration_s=duration_s)
    assert overlap(log_of(smi()), run) is covers


def test_a_zone_can_be_guessed_for_an_offer_but_not_for_evidence() -> None:
    run = replace(RUN, date="2026-11-20T10:00:00+00:00")
    assert overlap(log_of(smi()), run, any_zone=True)
    assert not overlap(log_of(smi(day="2026/11/21")), run, any_zone=True)


def test_what_people_say_stands_before_what_times_say(store: Store) -> None:
    run = watching(store, smi())
    (tied,) = run.gpu_logs
    assert tied.said is None
    log_id = tied.stored.gpu_log_id
    store.readings.untie(log_id, run.run_id, by="Ada")
    assert store.runs()[0].gpu_logs == ()
    store.readings.tie(log_id, run.run_id, by="Mei")
    said = store.runs()[0].gpu_logs[0].said
    assert said is not None
    assert said.said_by == "Mei"
    with pytest.raises(InputError, match="name was expected"):
        store.readings.tie(log_id, run.run_id, by=" ")
    with pytest.raises(StoreError, match="no run"):
        store.readings.tie(log_id, "nothing", by="Ada")
    assert len(store.export_csv("gpu_log_tie").splitlines()) == 3


def test_readings_of_another_gpu_are_not_tied_by_their_times(store: Store) -> None:
    assert watching(store, smi(), replace(RUN, gpu="a100-80-sxm")).gpu_logs == ()
    assert not other_gpu(log_of(smi()), replace(RUN, gpu="h100-sxm"))
    assert not other_gpu(log_of(smi()), replace(RUN, gpu="our own card"))


def test_a_run_has_the_figures_of_its_readings_measured_with_source_and_caveats(store: Store) -> None:
    run = watching(store, smi(gpus=((90, 70_000), (60, 69_000))))
    evidence = evidence_of_run(run)
    assert {name: one.value for name, one in evidence.items() if name.startswith("gpu")} == {
        "gpu_utilisation_share": pytest.approx(0.75),
        "gpu_power_share": pytest.approx(0.5),
        "gpu_memory_peak_bytes": 70_000 * 2**20,
        "gpu_imbalance_share": pytest.approx(1 / 3),
        "gpu_memory_bytes": 81_559 * 2**20,
    }
    busy = evidence["gpu_utilisation_share"]
    assert (busy.provenance, busy.date) == (Provenance.MEASURED, "2026-11-20T10:02:00.111000")
    assert busy.source.startswith("nvidia-smi ")
    assert any("33.3 %" in str(caveat) for caveat in busy.caveats)
    assert "ttft_p99_s" in evidence


def test_idle_gpus_of_the_machine_are_not_the_runs() -> None:
    log = log_of(smi(gpus=((0, 4), (90, 70_000), (80, 70_500), (0, 4))))
    use = use_of(log, gpu_count=2)
    assert (use.busy_share, use.spread_share) == (pytest.approx(0.85), pytest.approx(1 / 9))
    assert use_of(log).busy_share == pytest.approx(0.425)
    stored = StoredGpuLog(
        gpu_log_id="g", file_id="f", file="x", uploaded_at="", provenance="measured", warnings=(), log=log
    )
    found = evidence_of_logs([TiedLog(stored=stored)], replace(RUN, gpu_count=2))
    assert "readings of 4 GPUs, the run had 2" in str(found["gpu_utilisation_share"].caveats[0])


def test_what_a_log_does_not_hold_is_no_evidence_and_never_zero(store: Store) -> None:
    dmon = b"# gpu   pwr gtemp    sm   mem\n# Idx     W     C     %     %\n    0   300    60    95    60\n"
    store.add_file(read(dmon, "dmon.txt"), file_id="d", size_bytes=1)
    (kept,) = store.gpu_logs()
    found = evidence_of_logs([TiedLog(stored=kept)], RUN)
    assert set(found) == {"gpu_utilisation_share"}
    assert "not measured" in {row["Value"] for row in about_gpu_logs.figure_rows(kept.log)}


def test_a_log_far_longer_than_its_run_says_so(store: Store) -> None:
    run = watching(store, smi(seconds=3000), replace(RUN, duration_s=60.0))
    caveats = evidence_of_run(run)["gpu_utilisation_share"].caveats
    assert "3,000.00 s, the run took 60.00 s" in str(caveats[0])


def test_the_decision_and_the_sheet_rest_on_the_readings(store: Store) -> None:
    run = watching(store, smi(gpus=((30, 70_000),)), replace(RUN, prefix_hit_share=0.1))
    decision = decide(evidence_of_run(run))
    used = [one for finding in decision.findings for one in finding.evidence if one.metric == "gpu_utilisation_share"]
    assert used
    assert [(one.value, one.provenance) for one in used[:1]] == [(pytest.approx(0.3), Provenance.MEASURED)]
    scenario = samples.scenario()
    runtime = proofs(scenario, None, decision.evidence, [samples.run()], Filing(created_at="2026-11-21"))[1]
    assert "GPUs busy 30 % of the time, memory peak 68.4 GiB" in str(runtime.says)


def test_a_table_that_completes_others_is_stored_as_a_file_and_says_so(store: Store) -> None:
    first, again = take(store, LOCUST, "llm_failures.csv"), take(store, LOCUST, "llm_failures.csv")
    assert (first["id"], first["ids"], again["already_there"]) == (again["id"], [], True)
    assert "no load point of its own" in first["text"]
    assert store.files()[0].notes == ("companion_file",)
    (item,) = read_files(files_of([given(LOCUST, "llm_failures.csv")]))
    assert item.to_store
    assert about_upload.amount([item]) == "1 companion file"
    assert "completes the others" in str(about_upload.stored([item], 0))


def test_the_command_line_reads_and_stores_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    path = tmp_path / "gpu.csv"
    path.write_bytes(smi())
    told = json.loads(CliRunner().invoke(main, ["read", str(path)]).stdout)
    (record,) = told["records"]
    assert (record["samples"], record["gpus"], record["gpu_util_pct_mean"]) == (25, 1, pytest.approx(90))
    assert (record["mem_used_mib_peak"], record["mem_total_mib"], record["power_w_max"]) == (70_000, 81_559, 350)
    stored = [json.loads(CliRunner().invoke(main, ["ingest", str(path)]).stdout) for _ in range(2)]
    assert stored[0]["ids"] == stored[1]["ids"] == [f"{stored[0]['id']}-gpu0"]
    assert "GPU readings" in stored[0]["text"]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    path = tmp_path / "store.duckdb"
    monkeypatch.setenv("PLIMSOLL_STORE", str(path))
    with Store(path) as opened:
        run = replace(RUN, date=None)
        opened.add_file(ReadResult(file="run.json", format="f", runs=(run,)), file_id="run", size_bytes=1)
    started = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    yield started.run().switch_page("pages/benchmarks.py").run()
    resources.close_store()


def _baseline() -> tuple[float | None, float | None]:
    """Memory peak and compute utilisation of the evaluation, were the stored run one of its baseline."""
    (run,) = resources.runs()
    cell = Cell(strategy=BASELINE, repetition=Repetition.MEDIUM, context_tokens=2048, concurrency=16)
    placed = (PlacedRun(run_id=run.run_id, facts=RunFacts(), place=cell),)
    seen = watched(resources.ask(resources.example()), Kept(stored=(run,), placed=placed, ours=placed))
    return seen.memory_peak_bytes, seen.compute_share


def test_a_visitor_uploads_a_log_sees_what_it_says_ties_it_and_removes_it(app: AppTest) -> None:
    app.file_uploader(key="bench_file").upload("gpu.csv", smi()).run()
    assert not app.exception
    assert app.button(key="bench_store").label == "Store 1 GPU log"
    app.button(key="bench_store").click().run()
    assert any(one.value == "Stored 1 GPU log." for one in app.success)
    app.text_input(key="gpu_log_by").set_value("Ada")
    app.button(key="gpu_log_tie").click().run()
    assert not app.exception
    assert [one.said.said_by for one in resources.runs()[0].gpu_logs if one.said] == ["Ada"]
    assert _baseline() == (70_000 * 2**20, pytest.approx(0.9))
    app.button_group(key="benchmarks_view").set_value("stored").run()
    assert not app.exception
    app.button(key="gpu_log_remove").click().run()
    assert resources.store().gpu_logs() == ()
    app.button(key="gpu_log_undo").click().run()
    assert len(resources.runs()[0].gpu_logs) == 1
    assert not app.exception
