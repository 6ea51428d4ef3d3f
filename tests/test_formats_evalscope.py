"""``evalscope perf``: three generations of summaries, percentiles in rows or columns, and databases nobody trusts."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calc.errors import UnreadableFile
from data.formats import read
from data.records import LatencyStats, ReadResult

NEW: dict[str, Any] = {
    "Test Duration (s)": 20.0,
    "Concurrency": 4,
    "Request Rate (req/s)": -1.0,
    "Total Requests": 200,
    "Success Requests": 198,
    "Failed Requests": 2,
    "Req Throughput (req/s)": 9.9,
    "Avg Latency (s)": 0.4,
    "Avg Input Tokens": 90.0,
    "Avg Output Tokens": 31.0,
    "Output Throughput (tok/s)": 306.9,
    "Total Throughput (tok/s)": 1197.9,
    "Avg TTFT (ms)": 100.0,
    "Avg TPOT (ms)": 10.0,
    "Avg ITL (ms)": 9.5,
    "Input Throughput (tok/s)": 0.0,
}
MIDDLE: dict[str, Any] = {
    "Time taken for tests (s)": 20.0,
    "Number of concurrency": 4,
    "Request rate (req/s)": 5.0,
    "Total requests": 100,
    "Succeed requests": 100,
    "Failed requests": 0,
    "Output token throughput (tok/s)": 155.0,
    "Total token throughput (tok/s)": 605.0,
    "Request throughput (req/s)": 5.0,
    "Average latency (s)": 0.4,
    "Average time to first token (s)": 0.1,
    "Average time per output token (s)": 0.01,
    "Average inter-token latency (s)": 0.0095,
    "Average input tokens per request": 90.0,
    "Average output tokens per request": 31.0,
}
SCHEMA = (
    "request TEXT, start_time REAL, inter_token_latencies TEXT, success INTEGER, response_messages TEXT, "
    "completed_time REAL, latency REAL, first_chunk_latency REAL, prompt_tokens INTEGER, completion_tokens INTEGER, "
    "time_per_output_token REAL, is_stream INTEGER"
)
PICKLE = "gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjANleGmUhZRSlC4="
"""Base64 of a pickle that would call ``posix.system``; nothing may ever load it."""


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def codes(result: ReadResult) -> set[str]:
    return {warning.code for warning in result.warnings}


def mean_s(stats: LatencyStats | None) -> float | None:
    return None if stats is None else stats.mean_s


def database(path: Path, *statements: str, rows: int = 0, streamed: int = 1) -> bytes:
    """A database as the tool writes it; request ``n`` starts at ``n`` and takes ``1 + n/100`` seconds."""
    connection = sqlite3.connect(path)
    for statement in statements or (f"CREATE TABLE result({SCHEMA})",):
        connection.execute(statement)
    for n in range(rows):
        ok = n % 10 != 0
        timed = (1 + n / 100, 0.5, 100, 11, (0.5 + n / 100) / 10) if ok else (None,) * 5
        values = ("secret", n, "[0.1]", int(ok), PICKLE, n + 1 + n / 100, *timed, streamed)
        connection.execute(f"INSERT INTO result VALUES ({','.join('?' * len(values))})", values)
    connection.commit()
    connection.close()
    return path.read_bytes()


def test_milliseconds_of_new_summaries_and_seconds_of_older_ones_are_the_same_times() -> None:
    for raw, code in ((NEW, "evalscope_summary"), (MIDDLE, "evalscope_summary_old")):
        result = read(as_json(raw), "x")
        run = result.runs[0]
        assert result.format == code
        times = [mean_s(stats) for stats in (run.ttft, run.tpot, run.itl, run.e2e)]
        assert times == pytest.approx([0.1, 0.01, 0.0095, 0.4])
        assert (run.input_tokens_mean, run.output_tokens_mean, run.max_concurrency) == (90, 31, 4)


def test_a_rate_of_minus_one_is_no_rate_and_a_rate_is_one() -> None:
    new, middle = read(as_json(NEW), "x").runs[0], read(as_json(MIDDLE), "x").runs[0]
    assert (new.request_rate_per_s, new.request_rate_is_infinite) == (None, True)
    assert (middle.request_rate_per_s, middle.request_rate_is_infinite) == (5.0, False)


def test_short_names_of_a_latency_hit_rates_in_percent_and_turns_are_read() -> None:
    short = {key.replace("Avg T", "T").replace("Avg I", "I"): value for key, value in NEW.items() if "(ms)" in key}
    raw = {key: value for key, value in NEW.items() if "(ms)" not in key} | short
    run = read(as_json(raw | {"KV Cache Hit Rate (%)": 62.5, "Avg Turns/Request": 3.0}), "x").runs[0]
    assert (mean_s(run.ttft), mean_s(run.itl), run.prefix_hit_share) == pytest.approx((0.1, 0.0095, 0.625))
    assert "prompts_shared" in run.flags


def test_a_run_without_streaming_writes_zeros_that_are_no_latency() -> None:
    run = read(as_json(NEW | {"Avg TTFT (ms)": 0.0, "Avg TPOT (ms)": 0.0, "Avg ITL (ms)": 0.0}), "x").runs[0]
    assert (run.ttft, run.tpot, run.itl) == (None, None, None)
    assert "zero_may_be_missing" in run.flags


def test_a_run_of_failures_only_has_no_latency_and_says_so() -> None:
    result = read(as_json(NEW | {"Success Requests": 0, "Failed Requests": 200, "Avg Latency (s)": 3.0}), "x")
    assert (result.runs[0].e2e, "all_failed" in codes(result)) == (None, True)


def test_percentiles_in_rows_and_in_columns_of_seconds_are_the_same() -> None:
    labels = ["10%", "50%", "90%", "99%"]
    rows = [
        {"Percentiles": label, "TTFT (ms)": 10.0 * n, "Latency (s)": 0.1 * n} for n, label in enumerate(labels, start=1)
    ]
    columns = {"Percentiles": labels, "TTFT (s)": [0.01, 0.02, 0.03, 0.04], "Latency (s)": [0.1, 0.2, 0.3, 0.4]}
    for raw in (rows, columns):
        result = read(as_json(raw), "x")
        run = result.runs[0]
        assert run.ttft is not None
        assert run.e2e is not None
        assert (run.ttft.p50_s, run.ttft.p90_s, run.ttft.p99_s) == pytest.approx((0.02, 0.03, 0.04))
        assert (run.e2e.p50_s, run.e2e.p99_s) == pytest.approx((0.2, 0.4))
        assert "needs_companion" in codes(result)


def test_columns_of_unlike_length_give_what_they_have() -> None:
    raw = {"Percentiles": ["50%", "99%"], "TTFT (s)": [0.02], "Latency (s)": [0.2, None, 3], "ITL (s)": "much"}
    run = read(as_json(raw), "x").runs[0]
    assert (run.ttft, run.e2e, run.itl) == (LatencyStats(p50_s=0.02), LatencyStats(p50_s=0.2), None)


def test_arguments_are_no_result_and_ask_for_their_summary() -> None:
    raw = {"model": "m", "url": "http://x", "parallel": 2, "number": 20, "api": "openai", "dataset": "random"}
    result = read(as_json(raw | {"api_key": "secret"}), "x")
    assert (result.format, result.runs, codes(result)) == ("evalscope_args", (), {"needs_companion"})
    assert "secret" not in str(result)


def test_requests_of_a_database_are_summed_up_and_nothing_pickled_is_looked_at(tmp_path: Path) -> None:
    result = read(database(tmp_path / "x.db", rows=100), "benchmark_data.db")
    run = result.runs[0]
    taken = np.array([1 + n / 100 for n in range(100) if n % 10])
    assert (run.num_prompts, run.completed, run.failed) == (100, 90, 10)
    assert run.e2e is not None
    assert (run.e2e.mean_s, run.e2e.p99_s) == pytest.approx((taken.mean(), np.percentile(taken, 99)))
    assert mean_s(run.tpot) == pytest.approx(((taken - 0.5) / 10).mean())
    assert run.duration_s == pytest.approx(99 + 1.99 - 1)
    assert "failed_requests" in codes(result)
    assert "secret" not in str(result)
    assert PICKLE not in str(result)


def test_requests_that_were_not_streamed_have_no_ttft(tmp_path: Path) -> None:
    run = read(database(tmp_path / "x.db", rows=50, streamed=0), "x").runs[0]
    assert (run.ttft, run.tpot) == (None, None)
    assert run.e2e is not None


def test_an_early_database_lacks_columns_and_is_read_all_the_same(tmp_path: Path) -> None:
    schema = "request TEXT, start_time REAL, chunk_times TEXT, success INTEGER, response_messages TEXT, "
    schema += "completed_time REAL, latency REAL, first_chunk_latency REAL, n_chunks INTEGER, chunk_time REAL, "
    table = f"CREATE TABLE result({schema} prompt_tokens INTEGER, completion_tokens INTEGER)"
    row = f"INSERT INTO result VALUES ('', 0, '', 1, '{PICKLE}', 2, 2.0, 0.5, 9, 1, 100, 16)"
    run = read(database(tmp_path / "x.db", table, row, row), "x").runs[0]
    assert (run.completed, mean_s(run.ttft), mean_s(run.tpot)) == pytest.approx((2, 0.5, 0.1))


def test_texts_and_blobs_in_columns_of_numbers_are_unknown(tmp_path: Path) -> None:
    table = f"CREATE TABLE result({SCHEMA})"
    row = "INSERT INTO result(success, latency, first_chunk_latency, prompt_tokens) VALUES (1, {}, {}, {})"
    content = database(tmp_path / "x.db", table, row.format(2.0, 0.5, "'many'"), row.format("zeroblob(9)", "'x'", 7))
    run = read(content, "x").runs[0]
    assert (run.completed, mean_s(run.e2e), mean_s(run.ttft), run.input_tokens_mean) == (2, 2.0, 0.5, 7)


def test_a_database_kept_with_a_write_ahead_log_is_read_from_its_main_file(tmp_path: Path) -> None:
    content = bytearray(database(tmp_path / "x.db", rows=20))
    content[18:20] = b"\x02\x02"
    assert read(bytes(content), "x").runs[0].num_prompts == 20


ENDLESS = (
    "CREATE VIEW result AS WITH RECURSIVE t(success, latency, first_chunk_latency, response_messages) AS "
    "(SELECT 1, 1, 1, '' UNION ALL SELECT success, latency, first_chunk_latency, '' FROM t) SELECT * FROM t"
)


@pytest.mark.parametrize(
    "statements",
    [
        (ENDLESS,),
        ("CREATE TABLE result(success, first_chunk_latency, response_messages)",),
        ("CREATE TABLE other(first_chunk_latency, response_messages)",),
        (f"CREATE TABLE result({SCHEMA})",),
    ],
)
def test_a_database_without_the_tools_requests_is_refused_in_one_sentence(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    with pytest.raises(UnreadableFile, match=r"^x: "):
        read(database(tmp_path / "x.db", *statements), "x")


def test_a_column_that_computes_itself_is_not_asked(tmp_path: Path) -> None:
    """It may cost as much as its author likes."""
    costly = "length(replace(printf('%.*c', 90000000, 'a'), 'a', 'bb'))"
    table = f"CREATE TABLE result(success, first_chunk_latency, response_messages, latency AS ({costly}))"
    with pytest.raises(UnreadableFile, match="no table of evalscope"):
        read(database(tmp_path / "x.db", table, "INSERT INTO result(success) VALUES (1)"), "x")


def test_a_damaged_database_is_refused_in_one_sentence(tmp_path: Path) -> None:
    content = database(tmp_path / "x.db", rows=300)
    rng = np.random.default_rng(5)
    for cut in rng.integers(100, len(content), 12):
        with contextlib.suppress(UnreadableFile):
            read(content[:cut], "x")
    for _ in range(60):
        spoilt = bytearray(content)
        for place in rng.integers(16, len(content), 40):
            spoilt[place] = int(rng.integers(0, 256))
        with contextlib.suppress(UnreadableFile):
            read(bytes(spoilt), "x")


@pytest.mark.parametrize("value", [None, "many", [], {}, True, -1, 10**400, "1,5"])
def test_a_field_that_is_nonsense_is_left_out_or_refused_in_a_sentence(value: Any) -> None:
    for raw in (NEW, MIDDLE, {"Percentiles": ["50%"], "TTFT (s)": [1]}, {"Percentiles": "50%", "TTFT (ms)": 1}):
        for key in raw:
            with contextlib.suppress(UnreadableFile):
                assert read(as_json(raw | {key: value}), "x").format
