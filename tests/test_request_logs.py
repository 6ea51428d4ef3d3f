"""Request logs and traces: recognised by content, loaded whole or not at all, bad rows counted and named."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from calc.errors import InputError, PlimsollError, UnreadableFile
from data.logs import incoming
from data.logs import load as loading
from data.logs.blocks import block_trace
from data.logs.given import GivenLog
from data.logs.incoming import Cancelled
from data.logs.load import load_log, understand
from data.logs.meanings import understand as understand_header
from data.logs.roots import conversation_roots
from data.store import Store
from data.store.logs import request_log, request_logs, undo_log

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
)
MOONCAKE = "\n".join(
    json.dumps({"timestamp": at, "input_length": 1000, "output_length": 7, "hash_ids": ids})
    for at, ids in ((0, [0, 1]), (3000, [0, 2]), (3000, [0, 1]))
)
BURSTGPT = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,a,1.5,ChatGPT,472,18,490,Conversation log\n45,a,0,GPT-4,1087,0,1087,API log\n"
)
BURSTGPT_1 = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
)
BAILIAN = "\n".join(
    json.dumps(
        {"chat_id": chat, "parent_chat_id": parent, "timestamp": at, "input_length": 32, "output_length": 5,
         "type": "text", "turn": turn, "hash_ids": [chat, chat + 100]}
    )
    for chat, parent, at, turn in ((1, -1, 61.114, 1), (2, -1, 62.0, 1), (3, 1, 63.5, 2), (4, 3, 70.25, 3))
)  # fmt: skip
SERVEGEN = "t_s,tenant,input_tokens,output_tokens\n0.0,client-10,1591,74\n0.044,client-20,447,2\n"


def event(kind: str, **request: Any) -> str:
    inner = {"schema": "dynamo.request.trace.v1", "event_type": kind, "agent_context": {"session_id": "s"}}
    return json.dumps({"timestamp": 1, "event": inner | ({"request": request} if request else {})})


DYNAMO = "\n".join(
    [
        event(
            "request_end", model="m", input_tokens=40, output_tokens=3, cached_tokens=16, ttft_ms=120.5,
            request_received_ms=1_779_163_050_000, total_time_ms=400.0, avg_itl_ms=20.0,
            replay={"trace_block_size": 16, "input_sequence_hashes": [17_996_300_209_269_977_264, 5, 6]},
        ),
        event("tool_start"),
    ]
)  # fmt: skip
FILES = {
    "azure": (AZURE, 2, 4.314579),
    "mooncake": (MOONCAKE, 3, 3.0),
    "burstgpt": (BURSTGPT, 2, 40.0),
    "bailian": (BAILIAN, 4, 9.136),
    "servegen": (SERVEGEN, 2, 0.044),
    "dynamo": (DYNAMO, 1, 0.0),
}
GENERIC = "timestamp,prompt_tokens,output_tokens\n"


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as opened:
        yield opened


def load(store: Store, text: str | bytes, name: str = "log.csv", **declared: str) -> str:
    content = text if isinstance(text, bytes) else text.encode()
    return load_log(store.database, GivenLog.of_bytes(content, name), declared=declared).log_id


def rows(store: Store, columns: str) -> list[dict[str, Any]]:
    return store.database.select(f"SELECT {columns} FROM log_requests ORDER BY request")


@pytest.mark.parametrize("code", FILES)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_each_format_is_recognised_by_its_content(store: Store, code: str, packed: bool) -> None:
    text, requests, span_s = FILES[code]
    log_id = load(store, gzip.compress(text.encode()) if packed else text, "anything.bin")
    log = request_log(store.database, log_id)
    assert (log.format, log.requests, log.problem_rows) == (code, requests, 0)
    assert log.duration_s == pytest.approx(span_s, abs=1e-9)


def test_the_older_burstgpt_header_has_no_sessions(store: Store) -> None:
    load(store, BURSTGPT_1)
    assert rows(store, "session_id, e2e_s, business_line") == [
        {"session_id": None, "e2e_s": None, "business_line": "Conversation log"}
    ]


def test_a_burstgpt_request_without_response_tokens_failed(store: Store) -> None:
    load(store, BURSTGPT)
    assert [row["status"] for row in rows(store, "status")] == ["ok", "failed"]


def test_bailian_requests_belong_to_the_session_of_their_first_chat(store: Store) -> None:
    load(store, BAILIAN, "b.jsonl")
    assert [row["session_id"] for row in rows(store, "session_id")] == ["1", "2", "1", "1"]


def test_a_circle_of_parents_ends() -> None:
    assert len(set(conversation_roots([("1", "2"), ("2", "1"), ("3", "2")]))) >= 1


def test_only_ends_of_dynamo_requests_count_and_large_hashes_stay_apart(store: Store) -> None:
    log_id = load(store, DYNAMO, "d.jsonl")
    assert rows(store, "ttft_s, e2e_s, itl_s, cached_tokens, session_id, model") == [
        {"ttft_s": 0.1205, "e2e_s": 0.4, "itl_s": 0.02, "cached_tokens": 16, "session_id": "s", "model": "m"}
    ]
    trace = block_trace(store, log_id)
    assert (trace.block_size_tokens, trace.blocks, trace.unique_blocks) == (16, 3, 3)


def test_mooncake_requests_of_one_tick_keep_their_order(store: Store) -> None:
    trace = block_trace(store, load(store, MOONCAKE, "m.jsonl"))
    assert trace.block_size_tokens == 512
    assert trace.block_ids.tolist() == [0, 1, 0, 2, 0, 1]


def test_parquet_is_read_like_any_other_table(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT TIMESTAMP '2026-11-30 10:00:00' + to_seconds(i) AS ts, 100 + i AS prompt_tokens, i + 1 AS "
            "output_tokens, ['a', 'b'] AS hash_ids, 'secret ' || i AS prompt_text FROM range(5) r(i)) TO "
            f"'{path}' (FORMAT parquet)"
        )
    log = request_log(store.database, load_log(store.database, GivenLog.of_path(path)).log_id)
    assert (log.requests, log.duration_s, log.first_at) == (5, 4.0, "2026-11-30T10:00:00+00:00")
    assert {len(row["block_hashes"]) for row in rows(store, "block_hashes")} == {2}


GENERICS = [
    ("time_ms;Prompt Tokens;Output Tokens\n0;1.000;20\n1500;2.500;30\n", [(0.0, 1000, 20), (1.5, 2500, 30)]),
    ('到达时间(ms),输入 token 数,输出Token数\n0,"1,000",20\n1500,"2,500",30\n', [(0.0, 1000, 20), (1.5, 2500, 30)]),
    ("ts\tisl\tosl\n1700000000.25\t10\t2\n1700000001.75\t11\t3\n", [(0.0, 10, 2), (1.5, 11, 3)]),
    ("# made by a tool\nstart_time,input_tokens,output_tokens\n2026-11-30T08:00:00+08:00,10,2\n"
     "2026-11-30T00:00:01Z,11,3\n", [(0.0, 10, 2), (1.0, 11, 3)]),
    ("date,input_tokens,output_tokens\n13/11/2026 08:00:00,10,2\n13/11/2026 08:00:01,11,3\n",
     [(0.0, 10, 2), (1.0, 11, 3)]),
    ("created_at,input_tokens,output_tokens\n\"2026-11-30 08:00:00,250\",10,2\n\"2026-11-30 08:00:01,500\",11,3\n",
     [(0.0, 10, 2), (1.25, 11, 3)]),
    ("0.5,10,2\n1.75,11,3\n", [(0.0, 10, 2), (1.25, 11, 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), GENERICS, ids=lambda value: str(value)[:18] if value else "")
def test_a_table_of_ones_own_is_understood_by_its_headers(store: Store, text: str, expected: list[Any]) -> None:
    load(store, text)
    found = rows(store, "arrival_s, prompt_tokens, output_tokens")
    assert [tuple(row.values()) for row in found] == [(pytest.approx(at), *tokens) for at, *tokens in expected]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_any_encoding_gives_the_same_rows(store: Store, encoding: str) -> None:
    load(store, "时间_s,prompt_tokens,output_tokens,租户\r\n0.5,10,2,客户甲\r\n1.5,11,3,客户乙\r\n".encode(encoding))
    assert [row["tenant"] for row in rows(store, "tenant")] == ["客户甲", "客户乙"]


def test_prompts_are_never_loaded(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "kept.duckdb"
    log = 'timestamp,prompt_tokens,output_tokens,prompt\n0.5,10,2,"the secret\nof two lines"\n1.5,11,3,"secret, too"\n'
    with Store(path) as kept:
        load(kept, log)
        assert request_logs(kept.database)[0].requests == 2
    assert b"secret" not in path.read_bytes()


QUESTIONS = [
    (GENERIC + "0,10,2\n4000,11,3\n9000,12,1\n", "timestamp", "time_ms"),
    (GENERIC + "0,10,2\n4,11,3\n9,12,1\n", "timestamp", "time_s"),
    ("timestamp_s,prompt_tokens,output_tokens,latency\n0,10,2,900\n4,11,3,1200\n", "latency", "e2e_ms"),
    ("timestamp_s,input,output_tokens\n0,10,2\n4,11,3\n", "input", "prompt_tokens"),
    ("date,prompt_tokens,output_tokens\n01/02/2026 08:00,10,2\n02/02/2026 08:01,11,3\n", "date", "time_dmy"),
]


@pytest.mark.parametrize(("text", "header", "assumed"), QUESTIONS, ids=lambda value: str(value)[-12:])
def test_what_a_file_does_not_say_is_asked(tmp_path: Path, text: str, header: str, assumed: str) -> None:
    asked = understand(GivenLog.of_bytes(text.encode(), "log.csv"), tmp_path).questions
    assert [(question.header, question.assumed) for question in asked] == [(header, assumed)]
    assert assumed in asked[0].options


@pytest.mark.parametrize(
    "times",
    [
        ("31.12.2025 23:59:58", "01.01.2026 00:00:01.500"),
        ("31-12-2025T23:59:58", "01-01-2026T00:00:01.5"),
        ("12/31/2025 11:59:58 PM", "01/01/2026 12:00:01.5 AM"),
        ("12/31/2025, 11:59:58 PM", "1/1/2026, 12:00:01.5 AM"),
    ],
    ids=lambda times: times[0],
)
def test_dates_with_the_year_last_are_read_as_people_write_them(store: Store, times: tuple[str, str]) -> None:
    text = "date,prompt_tokens,output_tokens\n" + "".join(f'"{time}",10,2\n' for time in times)
    log = request_log(store.database, load(store, text))
    assert (log.requests, log.duration_s) == (2, 3.5)


def test_what_a_user_says_of_a_column_counts(store: Store) -> None:
    text = "timestamp,prompt_tokens,output_tokens\n0,10,2\n3000,11,3\n"
    seconds, milliseconds = load(store, text, timestamp="time_s"), load(store, text, timestamp="time_ms")
    assert seconds != milliseconds
    assert request_log(store.database, milliseconds).duration_s == 3.0
    with pytest.raises(InputError, match="cannot be"):
        load(store, text, timestamp="moment")


def test_bad_rows_are_counted_and_named_with_their_lines(store: Store) -> None:
    text = GENERIC + "0,10,2\n1,x,3\n2,11\n3,12,4,5\n4,-1,3\n,13,3\n5,14,NaN\n6,15,3\n"
    log = request_log(store.database, load(store, text))
    assert (log.requests, log.problem_rows) == (2, 6)
    assert [problem["line"] for problem in log.problems] == [3, 4, 5, 6, 7, 8]


def test_bad_lines_of_json_are_counted_too(store: Store) -> None:
    good = '{"timestamp_s": 1, "prompt_tokens": 10, "output_tokens": 2}\n'
    log = request_log(store.database, load(store, good + "not json\n" + good + '{"timestamp_s": 2}\n', "l.jsonl"))
    assert (log.requests, [problem["line"] for problem in log.problems]) == (2, [2, 4])


def test_a_failed_request_may_have_no_output(store: Store) -> None:
    load(store, "timestamp_s,prompt_tokens,output_tokens,status\n0,10,2,200\n1,10,,503\n2,10,1,499\n")
    found = rows(store, "output_tokens, status")
    assert [tuple(row.values()) for row in found] == [(2, "ok"), (0, "failed"), (1, "cancelled")]


def test_an_endless_time_is_a_bad_row(store: Store) -> None:
    text = GENERIC.replace("timestamp", "timestamp_s") + "inf,10,2\n3,11,3\n1e400,11,3\n"
    log = request_log(store.database, load(store, text))
    assert (log.requests, log.problem_rows, log.duration_s) == (1, 2, 0.0)


def test_rows_out_of_order_start_at_the_earliest(store: Store) -> None:
    load(store, GENERIC.replace("timestamp", "timestamp_s") + "5,10,2\n3,11,3\n")
    assert [row["arrival_s"] for row in rows(store, "arrival_s")] == [2.0, 0.0]


WINDOWS = "category,model,client,window_start_s,rate_rps,cv,dist,p1,p2\nlanguage,m,1,0,0.5,1.2,Gamma,0.7,2\n"
REFUSED = [
    (WINDOWS, "windows of clients"),
    ("0,0.35,1.2,Gamma,0.3,2\n600,0.5,1.1,Weibull,1,2\n", "windows of clients"),
    (json.dumps({"request_throughput": 1.0, "mean_ttft_ms": 3.0, "date": "2026"}, indent=1), "one JSON object"),
    (json.dumps({"request_throughput": 1.0, "mean_ttft_ms": 3.0, "total_input_tokens": 2}), "benchmark result"),
    ("concurrency,mean_ttft_ms,p99_ttft_ms,output_throughput\n1,2,3,4\n", "Benchmarks page"),
    ("", "empty"),
    ("a,b\n1,2\n", "no line of headers"),
    ("[1, 2]", "list of requests"),
    (b"PK\x03\x04whatever", "Excel workbook"),
    (b"\x80\x04\x95whatever", "pickle"),
    (b"timestamp,prompt_tokens\x00\n", "NUL"),
    (b"PAR1 no parquet", "Parquet file was expected"),
    (gzip.compress(AZURE.encode() * 2000, mtime=0)[:200], "broken or cut off"),
    (GENERIC + "a,b,c\n", "none of its 1 rows|no column"),
    (GENERIC.replace("timestamp", "timestamp_s") + "0,10,2\n99999999999,10,2\n", "more than ten years"),
]


@pytest.mark.parametrize(("content", "said"), REFUSED, ids=lambda value: str(value)[:24])
def test_a_file_that_is_no_log_is_refused_in_words(store: Store, content: str | bytes, said: str) -> None:
    with pytest.raises(PlimsollError, match=said):
        load(store, content, "file.csv")
    assert request_logs(store.database) == ()
    assert store.database.select("SELECT count(*) AS n FROM log_requests") == [{"n": 0}]
    assert not any(store.database.incoming.glob("*")) if store.database.incoming.is_dir() else True


def test_a_gzip_bomb_is_stopped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "MAX_RATIO", 5)
    content = gzip.compress(GENERIC.encode() + b"0,1,1\n" + b"\n" * 9_000_000, compresslevel=1)
    with pytest.raises(UnreadableFile, match="times its size"):
        load(store, content, "bomb.csv.gz")


def test_the_same_log_twice_is_one_and_a_removed_one_comes_back(store: Store) -> None:
    first = load(store, AZURE)
    action = store.delete("request_log", first)
    assert request_logs(store.database) == ()
    again = load_log(store.database, GivenLog.of_bytes(AZURE.encode(), "other name"))
    assert (again.log_id, again.already_there, len(request_logs(store.database))) == (first, True, 1)
    action = store.delete("request_log", first)
    undo_log(store.database, action)
    assert len(request_logs(store.database)) == 1
    assert store.database.select("SELECT count(*) AS n FROM log_requests") == [{"n": 2}]


@pytest.mark.parametrize("at_share", [0.0, 0.15], ids=["copying", "loading"])
def test_cancelling_leaves_no_row_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_share: float) -> None:
    monkeypatch.setattr(loading, "LOOK_S", 0.001)
    body = "".join(f"{i},10,2\n" for i in range(100_000))
    stop = threading.Event()
    with Store(tmp_path / "s.duckdb") as store:
        given = GivenLog.of_bytes((GENERIC.replace("timestamp", "timestamp_s") + body).encode(), "log.csv")

        def tell(done_bytes: int, total_bytes: int) -> None:
            if done_bytes > at_share * total_bytes:
                stop.set()

        with pytest.raises(Cancelled):
            load_log(store.database, given, tell=tell, stop=stop)
        assert store.database.select("SELECT count(*) AS n FROM log_requests") == [{"n": 0}]
        assert list(store.database.incoming.iterdir()) == []
        assert load_log(store.database, given).requests == 100_000
        assert list(store.database.incoming.iterdir()) == []


def test_files_left_by_a_crash_are_swept_when_the_store_opens(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    folder = tmp_path / "incoming" / path.name
    folder.mkdir(parents=True)
    (folder / "0123456789ab-left.part").write_bytes(b"rows")
    with Store(path) as store:
        assert list(store.database.incoming.iterdir()) == []


def test_the_store_reads_files_of_its_incoming_folder_only(tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text(AZURE, encoding="utf-8")
    with Store(tmp_path / "s.duckdb") as store, store.database.reading() as cursor:
        for path in (outside, store.database.incoming / ".." / ".." / outside.name, Path("/etc/hostname")):
            with pytest.raises(duckdb.Error, match="disabled by configuration"):
                cursor.execute("SELECT * FROM read_csv(?)", [str(path)])
        with pytest.raises(duckdb.Error, match="locked"):
            cursor.execute("SET enable_external_access = true")


@pytest.mark.skipif(os.name != "posix", reason="only Linux and macOS have file modes")
def test_a_log_on_its_way_is_private(tmp_path: Path) -> None:
    modes: set[int] = set()
    with Store(tmp_path / "s.duckdb") as store:
        folder = store.database.incoming

        def look(done_bytes: int, total_bytes: int) -> None:
            modes.update(path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir()))

        load_log(store.database, GivenLog.of_bytes(AZURE.encode(), "a.csv"), tell=look)
    assert modes == {0o700, 0o600} or modes == {0o700}


def test_names_of_a_hostile_file_stay_names(store: Store) -> None:
    text = "timestamp_s,prompt_tokens,output_tokens,tenant's \"x\"); DROP TABLE runs; --,tenant\n0,1,2,q,'; DROP--\n"
    load(store, text, "'); DROP TABLE files; --.csv")
    assert rows(store, "tenant") == [{"tenant": "'; DROP--"}]
    assert store.files() == ()
    nested = json.dumps({"timestamp_s": 1, "prompt_tokens": 2, "output_tokens": 3, "te'n\"ant": {"tenant": "a'b"}})
    load(store, nested, "n.jsonl")
    assert rows(store, "tenant")[-1] == {"tenant": "a'b"}


HEADERS = {
    "ContextTokens": ("prompt_tokens", ""), "timestamp_ms": ("time", "ms"), "ttftMs": ("ttft", "ms"),
    "t_s": ("time", "s"),
    "首token延迟(毫秒)": ("ttft", "ms"), "latency_seconds": ("e2e", "s"), "usage.prompt_tokens": ("prompt_tokens", ""),
    "Log Type": ("business_line", ""), "hash_ids": ("block_hashes", ""), "输入 token 数": ("prompt_tokens", ""),
}  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_headers_say_their_field_and_unit(header: str) -> None:
    meaning = understand_header(header)
    assert meaning is not None
    assert (meaning.field, meaning.unit) == HEADERS[header]


def test_a_large_table_read_in_two_halves_keeps_the_order_of_the_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SMALL_BYTES", 1000)
    text = GENERIC + "".join(f"{i // 3},{i},{i % 7}\n" for i in range(5000))
    load(store, text)
    assert [row["prompt_tokens"] for row in rows(store, "prompt_tokens")] == list(range(5000))
    assert [row["request"] for row in rows(store, "request")] == list(range(5000))


def test_a_bad_row_in_the_second_half_is_named_by_its_line_in_the_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SMALL_BYTES", 1000)
    lines = [f"{i},{i},1" for i in range(2000)]
    lines[1500] = "1500,many,1"
    log = request_log(store.database, load(store, GENERIC + "\n".join(lines) + "\n"))
    assert (log.requests, log.problem_rows, log.problems[0]["line"]) == (1999, 1, 1502)
    assert not list(store.database.incoming.glob("*.part"))
