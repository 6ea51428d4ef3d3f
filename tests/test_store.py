"""The store keeps what it acknowledged: once, whole, in order, through threads, crashes and second thoughts."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import duckdb
import pytest
from conftest import ROOT

from calc.errors import StoreError
from calc.messages import msg
from data.formats import read
from data.records import BenchmarkRun, LatencyStats, ReadResult, RowProblem
from data.store import DEFAULT_PATH, KINDS, Store, content_id, default_path
from data.store.codec import RUN_COLUMNS
from data.store.database import Database
from data.store.schema import SCHEMA_FOLDER, migrate

SAMPLES = ROOT / "data" / "samples"


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as opened:
        yield opened


def result_of(runs: int, name: str = "x.json") -> ReadResult:
    one = BenchmarkRun(
        tool="t",
        model="模型 m",
        max_concurrency=8,
        ttft=LatencyStats(mean_s=0.1, p99_s=0.3),
        completed=100,
        failed=0,
        extra={"label": "a", "max_num_seqs": 4.0},
        flags=("lengths_nominal",),
    )
    problem = RowProblem(line=3, reason=msg("TTFT is {value:ms}", value=-0.1))
    runs_of_file = tuple(replace(one, max_concurrency=index + 1, line=index) for index in range(runs))
    return ReadResult(file=name, format="f", runs=runs_of_file, problems=(problem,), notes=("encoding_gbk",))


def add(store: Store, runs: int, file_id: str) -> None:
    store.add_file(result_of(runs), file_id=file_id, size_bytes=1)


def test_what_was_stored_comes_back_equal(store: Store) -> None:
    for sample in (file for file in SAMPLES.glob("sample-*") if "recording" not in file.name):
        content = sample.read_bytes()
        result = read(content, sample.name)
        outcome = store.add_file(result, file_id=content_id(content), size_bytes=len(content))
        got = store.runs(file_id=outcome.file_id)
        assert tuple(row.run for row in got) == result.runs
        assert [row.run_id for row in got] == list(outcome.stored_ids)[: len(got)]
    assert [row.snapshot for row in store.snapshots()] == list(
        read((SAMPLES / "sample-metrics.txt").read_bytes(), "m").snapshots
    )


def test_missing_stays_missing_and_text_stays_text(store: Store) -> None:
    add(store, 1, "a")
    row = store.runs()[0]
    assert row.run == result_of(1).runs[0]
    assert (row.run.tpot, row.run.duration_s, row.provenance) == (None, None, "measured")
    assert {warning.code for warning in row.warnings} >= {"lengths_nominal"}
    file = store.files()[0]
    assert (file.notes, file.runs) == (("encoding_gbk",), 1)
    assert str(file.problems[0]["reason"]) == "TTFT is -100.0 ms"


def test_a_stored_warning_can_still_be_translated(store: Store) -> None:
    content = (SAMPLES / "sample-sweep-en.csv").read_bytes().replace(b",200,0,", b",200,5,")
    store.add_file(read(content, "x.csv"), file_id="a", size_bytes=1)
    warning = next(w for row in store.runs() for w in row.warnings if w.code == "failed_requests")
    assert warning.text.text(lambda msgid: msgid.replace("of requests failed", "sind gescheitert")).startswith(
        "2.5 % sind"
    )


def test_the_same_file_twice_has_the_same_id_and_doubles_nothing(store: Store) -> None:
    first = store.add_file(result_of(3), file_id="a", size_bytes=1)
    again = store.add_file(result_of(3), file_id="a", size_bytes=1)
    assert first.stored_ids == again.stored_ids
    assert (first.already_there, again.already_there) == (False, True)
    assert len(store.runs()) == 3


def test_another_reading_of_the_same_bytes_is_another_file() -> None:
    content = b"a,b"
    assert content_id(content) == content_id(content, {})
    assert content_id(content) != content_id(content, {"a": "ttft.mean:ms"})
    assert content_id(content, {"a": "x", "b": "y"}) == content_id(content, {"b": "y", "a": "x"})


def test_a_deleted_run_is_hidden_and_comes_back(store: Store) -> None:
    add(store, 2, "a")
    action = store.delete_run("a-0")
    assert [row.run_id for row in store.runs()] == ["a-1"]
    store.undo(action)
    assert [row.run_id for row in store.runs()] == ["a-0", "a-1"]
    store.delete("run", "a-0")
    assert [row.run_id for row in store.runs()] == ["a-1"]
    assert [row.action for row in store.actions()] == ["delete", "undo", "delete"]


def test_a_deleted_file_takes_its_runs_and_uploading_it_again_brings_them_back(store: Store) -> None:
    add(store, 2, "a")
    store.delete("file", "a")
    assert (store.files(), store.runs()) == ((), ())
    assert store.add_file(result_of(2), file_id="a", size_bytes=1).already_there
    assert len(store.runs()) == 2


def test_deleting_what_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="no run nope"):
        store.delete_run("nope")
    with pytest.raises(StoreError, match="no kind of row"):
        store.delete("runs; DROP TABLE runs", "x")


def test_a_scenario_saved_again_is_a_new_version(store: Store) -> None:
    store.save_scenario("peak", {"tp": 1})
    latest = store.save_scenario("peak", {"tp": 2})
    store.save_scenario("night", {"tp": 4})
    assert [(s.name, s.version, s.case["tp"]) for s in store.scenarios()] == [("night", 1, 4), ("peak", 2, 2)]
    assert [s.version for s in store.scenario_versions("peak")] == [2, 1]
    store.delete("scenario", latest.scenario_id)
    assert [(s.name, s.version) for s in store.scenarios()] == [("night", 1), ("peak", 1)]
    assert store.save_scenario("peak", {}).version == 3


def test_a_review_is_kept_as_it_was(store: Store) -> None:
    saved = store.save_review("Q3", {"outcome": "add-memory", "中文": [1, None]}, model_version="2026-11-30")
    assert store.review(saved.review_id) == saved
    same = store.save_review("other title", {"outcome": "add-memory", "中文": [1, None]}, model_version="x")
    assert same.snapshot_hash == saved.snapshot_hash
    assert [review.title for review in store.reviews()] == ["other title", "Q3"]
    with pytest.raises(StoreError, match="no review"):
        store.review("nope")


def test_probes_and_own_entries_are_listed(store: Store) -> None:
    assert not store.add_probe({"gpu": "H100"}, measured_at="2026-01-02").already_there
    assert store.add_probe({"gpu": "H100"}, measured_at="2026-01-02").already_there
    assert [probe.probe["gpu"] for probe in store.probes()] == ["H100"]
    store.add_model("mine", {"layers": 1}, source="config.json")
    store.add_model("mine", {"layers": 2}, source="config.json")
    store.add_gpu("card", {"memory_gib": 48}, source="declared")
    assert [entry.entry["layers"] for entry in store.own_models()] == [2]
    assert [entry.name for entry in store.own_gpus()] == ["card"]


def test_a_spreadsheet_runs_nothing_of_an_export(store: Store) -> None:
    attack = replace(result_of(1).runs[0], model="=HYPERLINK(0)", gpu="+1", backend="@x", date="-2", line=-5)
    store.add_file(replace(result_of(1), runs=(attack,)), file_id="a", size_bytes=1)
    content = store.export_csv("run")
    row = next(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
    assert (row["model"], row["gpu"], row["backend"], row["date"]) == ("'=HYPERLINK(0)", "'+1", "'@x", "'-2")
    assert (row["line"], row["ttft_mean_s"], row["tpot_mean_s"]) == ("-5", "0.1", "")


def test_every_kind_can_be_exported_when_empty(store: Store) -> None:
    for kind, (_, column) in KINDS.items():
        header = store.export_csv(kind).decode("utf-8-sig").split("\r\n")[0]
        assert column in header.split(",")


def test_a_quote_in_a_name_is_a_quote(store: Store) -> None:
    name = "x'); DROP TABLE scenarios; --"
    store.save_scenario(name, {})
    assert store.scenario_versions(name)[0].name == name


def test_the_table_has_a_column_for_every_field_of_a_run() -> None:
    with Store(":memory:") as store:
        header = store.export_csv("run").decode("utf-8-sig").split("\r\n")[0].split(",")
    assert set(RUN_COLUMNS) < set(header)
    assert {field.name for field in fields(BenchmarkRun)} - {"ttft", "tpot", "itl", "e2e"} <= set(RUN_COLUMNS)


def test_the_schema_keeps_to_what_a_ducklake_catalogue_runs() -> None:
    sql = "\n".join(path.read_text(encoding="utf-8") for path in SCHEMA_FOLDER.glob("*.sql")).upper()
    code = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
    forbidden = ("PRIMARY KEY", "UNIQUE", "SEQUENCE", "CREATE INDEX", "RETURNING", "DEFAULT", "CREATE VIEW")
    assert not [words for words in forbidden if words in code]


def test_each_schema_file_is_applied_once_and_whole(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        numbers = tuple(int(path.name[:3]) for path in sorted(SCHEMA_FOLDER.glob("*.sql")))
        assert migrate(connection, "now") == numbers
        assert migrate(connection, "now") == ()
        broken = tmp_path / "098_broken.sql"
        for known in SCHEMA_FOLDER.glob("*.sql"):
            (tmp_path / known.name).write_text(known.read_text(encoding="utf-8"), encoding="utf-8")
        broken.write_text("CREATE TABLE fresh (a VARCHAR); CREATE TABLE files (a VARCHAR);", encoding="utf-8")
        with pytest.raises(duckdb.Error):
            migrate(connection, "now", tmp_path)
        assert not connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'fresh'").fetchall()
        connection.execute("INSERT INTO schema_versions VALUES (99, 'future', 'now')")
        with pytest.raises(StoreError, match="update Plimsoll"):
            migrate(connection, "now")


def test_everything_is_there_after_closing_and_opening(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "s.duckdb"
    with Store(path) as store:
        add(store, 3, "a")
        store.save_scenario("peak", {"tp": 1})
    with Store(path) as store:
        assert len(store.runs()) == 3
        assert store.scenarios()[0].case == {"tp": 1}


def test_eight_threads_write_and_read_at_once(store: Store) -> None:
    problems: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for turn in range(5):
                add(store, 2, f"{worker}-{turn}")
                add(store, 2, "the same for all")
                store.save_scenario("shared", {"worker": worker})
                assert len(store.runs(file_id=f"{worker}-{turn}")) == 2
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, which fails the test
            problems.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(store.runs()) == 8 * 5 * 2 + 2
    assert [s.version for s in store.scenario_versions("shared")] == list(range(40, 0, -1))


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from data.store import Store
from data.records import BenchmarkRun, ReadResult
store = Store(sys.argv[1])
turn = 0
while True:
    runs = tuple(BenchmarkRun(tool="t", max_concurrency=i + 1) for i in range(20))
    store.add_file(ReadResult(file="f", format="f", runs=runs), file_id=f"file-{turn}", size_bytes=1)
    print(turn, flush=True)
    turn += 1
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(ROOT)], stdout=subprocess.PIPE, text=True, cwd=path.parent
    )


def test_a_killed_process_leaves_every_acknowledged_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with start_writer(path) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(12)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout]
    with Store(path) as store:
        kept = {file.file_id: len(store.runs(file_id=file.file_id)) for file in store.files()}
    assert {f"file-{turn}" for turn in acknowledged} <= set(kept)
    assert set(kept.values()) == {20}


FILLER = """
import base64, os, resource, signal, sys
sys.path.insert(0, sys.argv[2])
from calc.errors import StoreError
from data.store import Store
store = Store(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = os.stat(sys.argv[1]).st_size + 20_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
for turn in range(50):
    try:
        store.save_scenario("large", {"noise": base64.b64encode(os.urandom(300_000)).decode()})
    except StoreError as error:
        print(turn, error)
        break
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the size of a file so")
def test_a_full_disk_is_one_sentence_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    command = [sys.executable, "-c", FILLER, str(path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    acknowledged, _, sentence = done.stdout.partition(" ")
    assert "free some disk space" in sentence
    with Store(path) as store:
        assert len(store.scenario_versions("large")) == int(acknowledged)
        assert store.save_scenario("large", {}).version == int(acknowledged) + 1


def test_a_second_process_is_told_who_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with start_writer(path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        try:
            with pytest.raises(StoreError, match="another program has this database open"):
                Store(path)
        finally:
            writer.kill()


@pytest.mark.parametrize("content", [b"this is no database at all" * 200, b"\x00" * 20_000, b"short"])
def test_a_file_that_is_no_database_is_an_error_and_stays_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.duckdb"
    path.write_bytes(content)
    with pytest.raises(StoreError) as refused:
        Store(path)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="folder to write to"):
        Store(tmp_path / "file" / "s.duckdb")


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write to any folder")
def test_a_folder_without_permission_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="written"):
        Store(tmp_path / "s.duckdb")


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.duckdb")
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.runs()


def test_a_query_reaches_no_file_outside(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with pytest.raises((StoreError, duckdb.Error)):
        Database(":memory:").select(f"SELECT * FROM '{secret}'")


def test_the_path_comes_from_the_environment_or_stays_in_var(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLIMSOLL_STORE", raising=False)
    assert default_path() == DEFAULT_PATH == Path("var/plimsoll.duckdb")
    monkeypatch.setenv("PLIMSOLL_STORE", "/data/team.duckdb")
    assert default_path() == Path("/data/team.duckdb")


def test_a_second_entry_of_an_own_name_is_a_new_version_and_the_first_stays(store: Store) -> None:
    first = store.add_gpu("lab", {"memory_gib": 90}, source="sheet", checked_on="2026-01-02")
    second = store.add_gpu("lab", {"memory_gib": 94}, source="driver", checked_on="2026-02-03")
    again = store.add_gpu("lab", {"memory_gib": 94}, source="driver", checked_on="2026-02-03")
    assert (first.version, second.version, again) == (1, 2, second)
    assert store.own_gpus() == (second,)
    assert store.own_versions("own_gpu") == (second, first)


@pytest.mark.parametrize("kind", ["own_model", "own_gpu", "own_price"])
def test_removing_an_own_row_hides_all_its_versions_and_undoing_brings_all_back(store: Store, kind: str) -> None:
    adders = {"own_model": store.add_model, "own_gpu": store.add_gpu, "own_price": store.add_price}
    for number in (1, 2):
        adders[kind]("名 = a", {"figure": number}, source="s", checked_on="2026-01-01")
    adders[kind]("other", {"figure": 3}, source="s", checked_on="2026-01-01")
    before = store.own_versions(kind)
    hidden = store.remove_own(kind, "名 = a")
    assert [row.name for row in store.own_versions(kind)] == ["other"]
    with pytest.raises(StoreError):
        store.remove_own(kind, "名 = a")
    store.undo_all(hidden)
    assert store.own_versions(kind) == before
    adders[kind]("名 = a", {"figure": 4}, source="s", checked_on="2026-01-01")
    assert max(row.version for row in store.own_versions(kind)) == 3


def test_one_price_is_removed_without_its_history(store: Store) -> None:
    old = store.add_price("h100-sxm", {"gpu_hour": 3.0, "currency": "USD"}, source="a", checked_on="2026-01-01")
    new = store.add_price("h100-sxm", {"gpu_hour": 2.0, "currency": "USD"}, source="b", checked_on="2026-05-01")
    assert store.own_prices() == (new, old)
    removed = store.delete("own_price", new.entry_id)
    assert store.own_prices() == (old,)
    store.undo(removed)
    assert store.own_prices() == (new, old)


def test_a_database_of_before_has_its_own_rows_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name in ("001_evidence.sql", "002_work.sql"):
            (tmp_path / name).write_text((SCHEMA_FOLDER / name).read_text(encoding="utf-8"), encoding="utf-8")
        assert migrate(connection, "now", tmp_path) == (1, 2)
        connection.execute("""INSERT INTO own_models VALUES ('1', 'mine', '{"config": {}}', 'pasted', 'then')""")
    with Store(path) as store:
        (row,) = store.own_models()
        assert (row.name, row.source, row.checked_on, row.version) == ("mine", "pasted", "", 1)


def test_a_name_that_a_spreadsheet_would_run_is_exported_as_text(store: Store) -> None:
    store.add_gpu('=HYPERLINK("http://x")', {"memory_gib": 1}, source="@SUM(A1)", checked_on="2026-01-01")
    rows = list(csv.DictReader(io.StringIO(store.export_csv("own_gpu").decode("utf-8-sig"))))
    assert (rows[0]["name"][:2], rows[0]["source"][:2]) == ("'=", "'@")
