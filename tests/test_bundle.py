"""Many files at once: folders and archives, companions, copies, and one bad file that stops no other."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli import main
from data.formats import bundle_files
from data.formats.bundle import BundleItem, read_files
from data.formats.bundle_files import GivenFile, clean_path, files_of, folder_files, given
from data.formats.name_facts import name_facts
from data.formats.same_runs import copies
from data.records import BenchmarkRun, LatencyStats
from data.store import Store

TABLE = b"concurrency,TTFT (ms),QPS\n8,400,2\n"
RUN = {
    "model_id": "m",
    "duration": 12.0,
    "completed": 120,
    "request_throughput": 10.0,
    "mean_ttft_ms": 100.0,
    "p99_ttft_ms": 300.0,
    "mean_tpot_ms": 20.0,
    "output_throughput": 900.0,
}
SUMMARY = {
    "Test Duration (s)": 10.0,
    "Concurrency": 8,
    "Total Requests": 100,
    "Success Requests": 100,
    "Failed Requests": 0,
    "Req Throughput (req/s)": 10.0,
    "Avg Latency (s)": 1.5,
    "Avg TTFT (ms)": 100.0,
}
PERCENTILES = [{"Percentiles": "50%", "TTFT (ms)": 90.0}, {"Percentiles": "99%", "TTFT (ms)": 300.0}]
ARGUMENTS = {"url": "http://x", "parallel": 8, "number": 100, "api": "openai", "dataset": "random", "model": "Qwen3"}


def packed(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def read_all(files: Mapping[str, bytes]) -> dict[str, BundleItem]:
    return {item.path: item for item in read_files(files_of(given(content, path) for path, content in files.items()))}


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def evalscope(folder: str = "") -> dict[str, bytes]:
    return {
        f"{folder}benchmark_args.json": as_json(ARGUMENTS),
        f"{folder}benchmark_percentile.json": as_json(PERCENTILES),
        f"{folder}benchmark_summary.json": as_json(SUMMARY),
    }


def codes(item: BundleItem) -> set[str]:
    assert item.result is not None
    return {warning.code for warning in item.result.warnings}


def test_one_bad_file_stops_no_other_and_the_order_stays() -> None:
    items = read_all(
        {"a.csv": TABLE, "broken.json": b'{"a": [1,', "b.csv": TABLE.replace(b"8,", b"16,"), "z": b"\x00x"}
    )
    assert list(items) == ["a.csv", "broken.json", "b.csv", "z"]
    assert [item.to_store for item in items.values()] == [True, False, True, False]
    assert "breaks off" in str(items["broken.json"].error)
    assert "NUL" in str(items["z"].error)


def test_percentiles_and_arguments_join_the_summary_beside_them() -> None:
    items = read_all(evalscope("parallel_8/") | evalscope("parallel_16/"))
    summary = items["parallel_8/benchmark_summary.json"]
    assert summary.result is not None
    run = summary.result.runs[0]
    assert run.ttft == LatencyStats(mean_s=0.1, p50_s=0.09, p99_s=0.3)
    assert run.model == "Qwen3"
    assert "needs_companion" not in codes(summary)
    assert items["parallel_8/benchmark_percentile.json"].belongs_to == summary.path
    assert items["parallel_16/benchmark_args.json"].belongs_to == "parallel_16/benchmark_summary.json"
    assert not items["parallel_8/benchmark_percentile.json"].to_store


def test_a_companion_without_its_summary_says_that_it_needs_one() -> None:
    items = read_all({"benchmark_percentile.json": as_json(PERCENTILES), "x/benchmark_summary.json": as_json(SUMMARY)})
    assert "needs_companion" in codes(items["benchmark_percentile.json"])


def test_files_that_disagree_on_a_count_are_not_of_one_run(cases_dir: Path) -> None:
    database = (cases_dir / "formats" / "evalscope_1.14.1_p2_benchmark_data.db").read_bytes()
    items = read_all(evalscope() | {"benchmark_data.db": database})
    assert items["benchmark_data.db"].belongs_to is None
    assert items["benchmark_data.db"].to_store


def test_what_only_the_server_saw_keeps_names_of_its_own(cases_dir: Path) -> None:
    names = ("inference_perf_eagle_stage3_lifecycle.json", "inference_perf_eagle_stage3_prometheus.json")
    items = read_all({name: (cases_dir / "formats" / name).read_bytes() for name in names})
    alone = read_all({names[0]: (cases_dir / "formats" / names[0]).read_bytes()})[names[0]]
    result = items[names[0]].result
    assert result is not None
    assert alone.result is not None
    assert result.runs[0].ttft == alone.result.runs[0].ttft
    assert result.runs[0].extra["server_ttft_p50_s"] == pytest.approx(0.03406, rel=1e-3)
    assert items[names[1]].belongs_to == names[0]


def test_a_run_written_twice_is_kept_once_where_most_is_said() -> None:
    """A sweep's summary holds the runs of the files beside it; a repetition differs in its figures."""
    other = RUN | {"mean_ttft_ms": 110.0, "request_throughput": 9.9}
    items = read_all(
        {
            "run=0.json": as_json(RUN),
            "summary.json": as_json([RUN, other]),
            "again.json": as_json(RUN | {"duration": 11}),
        }
    )
    assert items["run=0.json"].same_as == "summary.json"
    assert items["summary.json"].to_store
    assert items["again.json"].to_store


def test_runs_that_share_too_little_are_never_the_same() -> None:
    few = BenchmarkRun(tool="a", completed=100, duration_s=10.0)
    assert not copies({"a": [few], "b": [few], "c": []})


def test_every_tools_own_copies_are_found_among_real_files(cases_dir: Path) -> None:
    items = {item.path: item for item in read_files(files_of(folder_files(cases_dir / "formats")))}
    same = {path: item.same_as for path, item in items.items() if item.same_as}
    assert same.get("guidellm_0.8.1_multirow_header.csv") == "guidellm_0.8.0dev18_report.json"
    assert {same.get("aiperf_0.13_mock.csv"), same.get("aiperf_0.13_mock.json")} - {None}
    assert "sglang_llama33_70b_online.jsonl" not in same
    assert items["locust_2.47_llm_failures.csv"].belongs_to == "locust_2.47_llm_stats.csv"
    real = items["evalscope_1.14.1_p2_benchmark_summary.json"].result
    assert real is not None
    assert real.runs[0].ttft is not None
    assert (real.runs[0].ttft.mean_s, real.runs[0].ttft.p50_s) == pytest.approx((0.043, 0.04297), rel=1e-3)
    assert not [item.path for item in items.values() if item.error and item.path not in ("INDEX.md", "EXPECTED.json")]


def test_an_archive_is_read_like_the_folder_it_was_made_of(tmp_path: Path) -> None:
    files = evalscope("run/") | {"notes/table.csv": TABLE}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    from_folder = {item.path: item.result for item in read_files(files_of(folder_files(tmp_path)))}
    archive = read_all({"x.zip": packed(files)})
    assert sorted(archive) == [f"x.zip/{path}" for path in from_folder]
    for path, result in from_folder.items():
        from_archive = archive[f"x.zip/{path}"].result
        assert result is not None
        assert from_archive is not None
        assert (from_archive.runs, from_archive.warnings) == (result.runs, result.warnings)


def test_what_is_no_result_is_left_out_and_named() -> None:
    items = read_all(
        {
            "x.zip": packed(
                {
                    "__MACOSX/._a.csv": b"x",
                    ".DS_Store": b"x",
                    "plot.png": b"\x89PNG",
                    "vllm.pytorch.json": b"[]",
                    "empty.csv": b"",
                    "run.sh": b"ls",
                    "a.csv": TABLE,
                    "inner.zip": packed({"b.csv": TABLE}),
                }
            )
        }
    )
    assert [path for path, item in items.items() if item.left_out is None] == ["x.zip/a.csv", "x.zip/inner.zip"]
    assert all(str(item.left_out) for item in items.values() if item.left_out)
    assert "ZIP" in str(items["x.zip/inner.zip"].error)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (packed({"a.csv": bytes(50_000_000)}), "at most"),
        (packed({f"{number}.csv": b"x" for number in range(2001)}), "at most 2,000"),
        (packed({"a.csv": TABLE})[:-30], "breaks off"),
        (packed({"a.csv": TABLE}).replace(TABLE[:4], b"????"), ""),
    ],
)
def test_a_hostile_or_damaged_archive_is_refused_in_one_sentence(content: bytes, said: str) -> None:
    (item,) = read_all({"x.zip": content}).values()
    assert item.result is None or said == ""
    assert said in str(item.error)


def test_a_member_whose_bytes_are_damaged_is_refused_alone() -> None:
    content = packed({"a.csv": TABLE, "b.csv": TABLE}, zipfile.ZIP_STORED)
    items = read_all({"x.zip": content.replace(TABLE, TABLE.replace(b"400", b"999"), 1)})
    assert "damaged" in str(items["x.zip/a.csv"].error)
    assert items["x.zip/b.csv"].to_store


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("../../x.csv", "x.csv"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\runs\\a.json", "runs/a.json"),
        ("a\x00b\n.csv", "a_b_.csv"),
        ("a/./../b.csv", "a/b.csv"),
        ("...", "file"),
    ],
)
def test_a_path_is_only_shown_and_leads_nowhere(path: str, shown: str) -> None:
    assert clean_path(path) == shown


def test_too_many_files_are_refused_and_the_first_ones_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_files, "MAX_FILES", 2)
    items = list(read_all({"1.csv": TABLE, "2.csv": TABLE, "3.csv": TABLE, "4.csv": TABLE}).values())
    assert [item.error is None for item in items] == [True, True, False]


def test_two_files_of_one_name_stay_two() -> None:
    items = read_files(files_of([given(TABLE, "a.csv"), given(TABLE.replace(b"8,", b"16,"), "a.csv")]))
    assert [item.path for item in items] == ["a.csv", "a.csv (2)"]
    assert all(item.to_store for item in items)


def test_links_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_bytes(TABLE)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    (item,) = read_files(files_of(folder_files(inside)))
    assert item.left_out is not None
    assert item.result is None


def test_a_defect_of_a_reader_costs_only_its_own_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bytes:
        raise ZeroDivisionError

    files = [GivenFile(path="a", size_bytes=5, load=broken), given(TABLE, "b.csv")]
    first, second = read_files(files)
    assert "defect" in str(first.error)
    assert second.to_store


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        ("results/1xH100-80GB-SXM/Llama-3-8B_tp1_len2048.json", {"gpu": "H100-80GB-SXM", "gpu_count": 1}),
        ("concurrency_64_req_rate_inf_gpus_16_ctx_8_gen_8.json", {"gpu_count": 16, "max_concurrency": 64}),
        (
            "agg_kimik2.5_1k1k_int4_vllm_tp8-x_conc4_MI355-a.json",
            {"gpu": "MI355", "tensor_parallel": 8, "engine": "vllm"},
        ),
        ("8gpus/sglang/conc32/tp_4.json", {"gpu_count": 8, "engine": "sglang", "max_concurrency": 32}),
        ("shipment_h1000_tpu_concert4.json", {}),
    ],
)
def test_names_suggest_facts(path: str, facts: dict[str, str | int]) -> None:
    assert facts.items() <= name_facts(path).items()
    assert bool(facts) == bool(name_facts(path))


def test_suggestions_are_offered_and_never_taken() -> None:
    (item,) = read_all({"4xA100/vllm_tp4_conc16.json": as_json(RUN)}).values()
    assert item.result is not None
    run = item.result.runs[0]
    assert (run.gpu, run.gpu_count, run.max_concurrency) == (None, None, None)
    assert item.suggestions == {"gpu": "A100", "gpu_count": 4, "max_concurrency": 16}


def test_the_command_line_answers_each_file_of_a_folder_and_an_archive_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name, content in (evalscope() | {"zz.csv": TABLE, "broken.json": b"{", ".hidden": b"x"}).items():
        (folder / name).write_bytes(content)
    (tmp_path / "x.zip").write_bytes(packed({"a.csv": TABLE, "b.csv": TABLE.replace(b"8,", b"16,")}))
    (tmp_path / "alone.json").write_bytes(as_json(PERCENTILES))
    asked = [str(folder), str(tmp_path / "x.zip"), str(tmp_path / "alone.json")]
    done = CliRunner().invoke(main, ["read", *asked])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [Path(line["file"]).relative_to(tmp_path).as_posix() for line in lines] == [
        "runs/.hidden",
        "runs/benchmark_args.json",
        "runs/benchmark_percentile.json",
        "runs/benchmark_summary.json",
        "runs/broken.json",
        "runs/zz.csv",
        "x.zip/a.csv",
        "x.zip/b.csv",
        "alone.json",
    ]
    assert done.exit_code == 1
    assert ["error" in line for line in lines] == [False] * 4 + [True] + [False] * 4
    assert lines[0]["left_out"]
    assert lines[2]["belongs_to"] == str(folder / "benchmark_summary.json")
    assert lines[3]["records"][0]["ttft_ms"]["p99"] == pytest.approx(300)


def test_a_folder_is_stored_file_by_file_and_twice_adds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    folder = tmp_path / "runs"
    folder.mkdir()
    copied = {"run=0.json": as_json(RUN), "summary.json": as_json([RUN, RUN | {"completed": 99}])}
    for name, content in (evalscope() | copied | {"broken.json": b"{"}).items():
        (folder / name).write_bytes(content)
    once, again = (CliRunner().invoke(main, ["ingest", str(folder)]) for _ in range(2))
    lines = [json.loads(line) for line in once.stdout.splitlines()]
    assert [len(line.get("ids", [])) for line in lines] == [0, 0, 1, 0, 0, 2]
    assert [line.get("ids") for line in lines] == [json.loads(line).get("ids") for line in again.stdout.splitlines()]
    with Store(tmp_path / "store.duckdb") as store:
        assert len(store.runs()) == 3
