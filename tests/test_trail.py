"""Who did what, tables to take away, and files of every kind through one door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from conftest import ROOT

from calc.errors import StoreError, UnreadableFile
from cli import main
from data.formats.decode import MAX_FILE_BYTES
from data.intake import take, take_path
from data.store import EXPORTED, NOT_SIGNED_IN, Store

SAMPLES = ROOT / "data" / "samples"
LOG = b"t_s,tenant,input_tokens,output_tokens\n0,a,10,5\n1.5,b,20,7\n4,a,30,9\n"


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:", who=lambda: "mei@example.org") as store:
        yield store


def test_additions_deletions_and_undoings_say_who_what_and_why(store: Store) -> None:
    store.save_scenario("night shift", {})
    (scenario,) = store.scenarios()
    store.delete("scenario", scenario.scenario_id, reason="typed twice")
    with store.database.acting("api token"):
        store.undo(store.trail()[0], reason="wanted after all")
    told = [(entry.action, entry.actor, entry.name, entry.reason) for entry in store.trail()]
    assert told == [
        ("undo", "api token", "night shift", "wanted after all"),
        ("delete", "mei@example.org", "night shift", "typed twice"),
        ("add", "mei@example.org", "night shift", None),
    ]
    assert store.scenarios() == (scenario,)


def test_another_person_is_named_only_within_the_block(store: Store) -> None:
    with store.database.acting("api token"), pytest.raises(ZeroDivisionError):
        _ = 1 / 0
    store.save_scenario("a", {})
    assert store.trail()[0].actor == "mei@example.org"
    with Store(":memory:") as nobody:
        nobody.save_scenario("a", {})
        assert nobody.trail()[0].actor == NOT_SIGNED_IN


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("file", "run.json", (SAMPLES / "sample-vllm-serve.json").read_bytes()),
        ("file", "metrics.txt", (SAMPLES / "sample-metrics.txt").read_bytes()),
        ("startup_log", "start.log", (SAMPLES / "sample-startup-vllm.log").read_bytes()),
        ("probe", "probe.json", b'{"tool": "plimsoll-probe", "started_at": "2026-01-01T00:00:00"}'),
        ("request_log", "log.csv", LOG),
        ("recording", "engine.jsonl", next(SAMPLES.glob("*recording*.jsonl")).read_bytes()),
    ],
)
def test_a_file_of_every_kind_is_stored_once_hidden_and_brought_back(
    store: Store, kind: str, name: str, content: bytes
) -> None:
    first, again = take(store, content, name), take(store, content, name)
    assert (first["kind"], first["already_there"], again["already_there"]) == (kind, False, True)
    assert first["ids"] == again["ids"] != []
    (entry,) = store.trail()
    assert (entry.kind, entry.target_id, entry.actor) == (kind, first["id"], "mei@example.org")
    removed = store.delete(kind, first["id"])
    assert len(store.exports(kind, "csv").splitlines()) == 1
    store.undo(removed)
    assert len(store.exports(kind, "csv").splitlines()) > 1


def test_what_is_of_no_kind_leaves_nothing_behind(store: Store) -> None:
    for content in (b"", b"hello", b"\x00\x01\x02", b'{"tool": "other"}', b"a,b\n1,2\n"):
        with pytest.raises(UnreadableFile):
            take(store, content, "odd.bin")
    assert store.trail() == ()


def test_every_table_leaves_as_csv_and_as_typed_parquet(store: Store, tmp_path: Path) -> None:
    take(store, LOG, "log.csv")
    for kind in EXPORTED:
        assert store.exports(kind, "csv").startswith(b"\xef\xbb\xbf")
        assert store.exports(kind, "parquet").startswith(b"PAR1")
    (tmp_path / "log.parquet").write_bytes(store.exports("log_request", "parquet"))
    with duckdb.connect() as other:
        query = "SELECT arrival_s, prompt_tokens, tenant, typeof(arrival_s) FROM read_parquet(?) ORDER BY request"
        rows = other.execute(query, [str(tmp_path / "log.parquet")]).fetchall()
    assert rows == [(0.0, 10, "a", "DOUBLE"), (1.5, 20, "b", "DOUBLE"), (4.0, 30, "a", "DOUBLE")]
    assert not list(store.database.incoming.glob("*"))
    with pytest.raises(StoreError, match="no kind of row"):
        store.exports("schema_versions", "csv")


def test_the_command_line_stores_a_log_under_the_system_user_and_writes_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    monkeypatch.setenv("LOGNAME", "ci-bot")
    (tmp_path / "log.csv").write_bytes(LOG)
    stored = CliRunner().invoke(main, ["ingest", str(tmp_path / "log.csv")])
    assert (stored.exit_code, json.loads(stored.stdout)["kind"]) == (0, "request_log")
    table = tmp_path / "who.csv"
    written = CliRunner().invoke(main, ["export", "addition", "-o", str(table)])
    assert written.exit_code == 0
    assert "ci-bot" in table.read_text(encoding="utf-8-sig")
    assert CliRunner().invoke(main, ["export", "nothing", "-o", str(table)]).exit_code == 1
    assert CliRunner().invoke(main, ["export", "run", "-o", str(tmp_path / "run.xls")]).exit_code == 2


def test_a_file_too_large_for_anything_but_a_log_is_not_even_read(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(UnreadableFile, match="request log"):
        take_path(store, path)
