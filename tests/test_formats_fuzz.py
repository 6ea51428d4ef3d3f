"""Anything may be dropped on the upload field: only errors a user can fix come out, and never half a row."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from conftest import ROOT
from hypothesis import HealthCheck, settings
from hypothesis import given as given_example
from hypothesis import strategies as st
from made_up_results import made_up
from mutations import mutated

from calc.errors import PlimsollError
from data.formats import propose_columns, read, records
from data.formats.bundle import read_files
from data.formats.bundle_files import files_of, given
from data.formats.row_checks import check_row
from data.records import BenchmarkRun, LatencyStats
from data.sources.prometheus import evidence
from data.store import Store, content_id

CORPUS = made_up()
FUZZ = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

_VLLM_KEYS = (
    "mean_ttft_ms median_ttft_ms p99_ttft_ms mean_tpot_ms std_itl_ms mean_e2el_ms duration completed num_prompts "
    "failed request_throughput output_throughput total_input_tokens total_output_tokens request_rate max_concurrency "
    "model_id tokenizer_id ttfts itls output_lens input_lens run_number"
)
VLLM_KEYS = _VLLM_KEYS.split()
_HEADERS = (
    "Concurrency,并发数,TTFT (ms),TTFT P99 (ms),TPOT,首Token时延(ms),E2E (s),QPS,吞吐,Throughput (tokens/s),成功率,"
    "Model,卡数,avg,P95,input avg,开始时间,测试次数,metric,value,指标,,响应,Fehler"
)
HEADERS = _HEADERS.split(",")
_CELLS = ("", "-", "OOM", "1,204", "1.204,8", "99.5%", "1.5万", "12~15", "NaN", "1e400", "12 ms", "inf", '"', "\n")
CELLS = st.one_of(
    st.sampled_from(
        ["", "-", "OOM", "1,204", "1.204,8", "99.5%", "1.5万", "12~15", "NaN", "1e400", "12 ms", "inf", '"', "\n"]
    ),
    st.integers(-10, 10**6).map(str),
    st.floats(allow_nan=True).map(str),
    st.text(max_size=8),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.just("inf"))
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=4), st.lists(st.lists(SCALARS, max_size=3), max_size=3))


def read_or_sentence(content: bytes) -> list[BenchmarkRun]:
    """Runs of a file, or none when it is refused; every other exception fails the test."""
    assert isinstance(propose_columns(content, "x"), tuple)
    try:
        result = read(content, "x")
    except PlimsollError:
        return []
    json.dumps(records(result), allow_nan=False)
    for warning in result.warnings:
        assert str(warning.text)
    for problem in result.problems:
        assert str(problem.reason)
    for snapshot in result.snapshots:
        assert evidence(snapshot) is not None
    return list(result.runs)


def numbers(run: BenchmarkRun) -> Iterator[float]:
    for field in fields(run):
        value: Any = getattr(run, field.name)
        if isinstance(value, LatencyStats):
            yield from (v for f in fields(value) if (v := getattr(value, f.name)) is not None)
        elif isinstance(value, int | float):
            yield value


def assert_whole(runs: list[BenchmarkRun]) -> None:
    for run in runs:
        check_row(run)
        assert all(math.isfinite(number) and number >= 0 for number in numbers(run))


@FUZZ
@given_example(st.binary(max_size=400))
def test_any_bytes_end_in_a_result_or_a_sentence(content: bytes) -> None:
    assert_whole(read_or_sentence(content))


@FUZZ
@given_example(st.text(max_size=300))
def test_any_text_ends_in_a_result_or_a_sentence(text: str) -> None:
    assert_whole(read_or_sentence(text.encode("utf-8", errors="surrogatepass")))


@FUZZ
@given_example(
    st.lists(st.dictionaries(st.sampled_from(VLLM_KEYS), VALUES, min_size=15), min_size=1, max_size=3), st.booleans()
)
def test_any_values_under_the_tools_keys_end_in_a_result_or_a_sentence(runs: list[dict[str, Any]], lines: bool) -> None:
    text = "\n".join(json.dumps(run) for run in runs) if lines else json.dumps(runs)
    assert_whole(read_or_sentence(text.encode()))


@FUZZ
@given_example(
    st.lists(st.sampled_from(HEADERS), min_size=2, max_size=7),
    st.lists(st.lists(CELLS, max_size=8), max_size=6),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["utf-8", "utf-16", "gb18030"]),
)
def test_any_cells_under_known_headers_end_in_a_result_or_a_sentence(
    headers: list[str], rows: list[list[str]], separator: str, encoding: str
) -> None:
    text = "\n".join(separator.join(row) for row in (headers, *rows))
    assert_whole(read_or_sentence(text.encode(encoding, errors="replace")))


@FUZZ
@given_example(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "vllm:num_requests_running",
                    "vllm:time_to_first_token_seconds_bucket",
                    "vllm:time_to_first_token_seconds_count",
                    "vllm:time_to_first_token_seconds_sum",
                    "vllm:prefix_cache_hits_total",
                    "vllm:prefix_cache_queries_total",
                    "vllm:kv_cache_usage_perc",
                    "sglang:token_usage",
                    "DCGM_FI_DEV_FB_USED",
                ]
            ),
            st.sampled_from(["", '{le="0.1"}', '{le="+Inf"}', '{le="x"}', '{gpu="0"}', '{tp_rank="1"}', "{broken"]),
            st.one_of(st.floats().map(str), st.sampled_from(["9223372036854775794", "NaN", "+Inf", "word"])),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_any_metrics_end_in_a_snapshot_or_a_sentence(lines: list[tuple[str, str, str]]) -> None:
    text = "\n".join(f"{name}{labels} {value}" for name, labels, value in lines)
    assert read_or_sentence(text.encode()) == []


def test_a_cut_anywhere_never_yields_half_a_run() -> None:
    run = {"mean_ttft_ms": 100.0, "request_throughput": 2.0, "duration": 5.0, "completed": 10, "model_id": "m"}
    content = (json.dumps(run) + "\n").encode() * 2
    for cut in range(len(content)):
        runs = read_or_sentence(content[:cut])
        assert all(r.model == "m" and r.completed == 10 for r in runs)


# Files that were once good


def read_and_keep(store: Store, content: bytes, name: str) -> None:
    """Read as given and as one of many files; what is stored is whole."""
    assert_whole(read_or_sentence(content))
    for item in read_files(files_of([given(content, name)])):
        assert "defect" not in str(item.error), item.error
        if item.result is not None and item.to_store and item.result.startup is None:
            outcome = store.add_file(item.result, file_id=content_id(content, {"path": item.path}), size_bytes=1)
            rows = (item.result.runs, item.result.snapshots, item.result.gpu_logs)
            assert len(outcome.stored_ids) == sum(map(len, rows))


def keep_all(files: dict[str, bytes], rounds: int) -> None:
    with Store(":memory:") as store:
        for number, (name, content) in enumerate(files.items()):
            for seed in range(rounds):
                read_and_keep(store, mutated(content, 1000 * number + seed), name)
        for stored in store.runs():
            check_row(stored.run)


def test_every_made_up_file_is_read() -> None:
    refused = {}
    for name, content in CORPUS.items():
        try:
            read(content, name)
        except PlimsollError as error:
            refused[name] = str(error)
    assert not refused


def test_a_made_up_file_of_any_tool_that_goes_wrong_ends_in_a_result_or_a_sentence() -> None:
    keep_all(CORPUS, rounds=7)


def test_a_real_file_of_any_tool_that_goes_wrong_ends_in_a_result_or_a_sentence(cases_dir: Path) -> None:
    files = sorted(path for path in (cases_dir / "formats").iterdir() if path.suffix != ".md")
    keep_all({path.name: path.read_bytes() for path in files}, rounds=4)


@FUZZ
@given_example(st.sampled_from(sorted(CORPUS)), st.integers(0, 10**9))
def test_any_mutation_ends_in_a_result_or_a_sentence(name: str, seed: int) -> None:
    assert_whole(read_or_sentence(mutated(CORPUS[name], seed)))


BOMBS = """
import gzip, io, json, resource, sys, zipfile
sys.path.insert(0, ".")
from calc.errors import PlimsollError
from data.formats import read
from data.formats.bundle import read_files
from data.formats.bundle_files import files_of, given

def packed(*contents):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, content in enumerate(contents):
            archive.writestr(f"{number}.csv", content)
    return file.getvalue()

bombs = {
    "gzip": gzip.compress(bytes(60_000_000), 1),
    "zip": packed(bytes(60_000_000)),
    "zips": packed(*[packed(bytes(4_000_000)) for _ in range(20)]),
    "lists": b"[" + b"[]," * 500_000 + b"[]]",
    "objects": b'{"a":1}\\n' * 50_000,
    "depth": b"[" * 10_000_000,
    "line": b"a,b,c" * 500_000,
    "quotes": b'"' * 10_000_000,
    "yaml": b"a: 1\\nb: 2\\n" + b"- [[[[]]]]\\n" * 100_000,
    "columns": b"concurrency,TTFT (ms)," + b"x," * 500_000 + b"\\n1,2,3\\n",
    "rows": b"concurrency,TTFT (ms)\\n" + b"1,2\\n" * 150_000,
}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
read(b"concurrency,TTFT (ms)\\n1,2\\n", "warm.csv")
start = peak()
for name, content in bombs.items():
    try:
        read(content, name)
    except PlimsollError:
        pass
    if name.startswith("zip"):
        read_files(files_of([given(content, name)]))
print(json.dumps({"grown": peak() - start}))
"""


def test_files_made_to_exhaust_memory_do_not() -> None:
    """Each in one process after the other, above what it needs to make them."""
    done = subprocess.run([sys.executable, "-c", BOMBS], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["grown"] < 700 * 10**6
