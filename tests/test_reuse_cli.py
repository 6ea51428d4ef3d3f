"""`reuse FILE`: traces of several writers, conditions, and what is said of files that cannot be one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli import main
from data.logs.hash_trace import read_hash_trace


def ask(path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(main, ["reuse", str(path), *options])
    return result.exit_code, json.loads(result.stdout)


def written(path: Path, rows: Sequence[Any]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def mooncake(time_ms: int, tokens: int, ids: list[int], **more: Any) -> dict[str, Any]:
    return {"timestamp": time_ms, "input_length": tokens, "output_length": 100, "hash_ids": ids, **more}


THREE = [mooncake(0, 1024, [1, 2]), mooncake(60_000, 900, [1, 3]), mooncake(61_000, 1500, [1, 2, 4])]
"""Blocks of 512 tokens: the second finds the first's root, the third both of its blocks."""


def test_rates_at_the_asked_capacities_and_without_end(tmp_path: Path) -> None:
    status, line = ask(written(tmp_path / "three.jsonl.gz", THREE), "--capacities", "0,1,2,3,1000000000")
    assert status == 0
    assert (line["block_size"], line["capacities_blocks"]) == (512, [0, 1, 2, 3, 1_000_000_000])
    assert line["hit_tokens"] == [0, 1024, 1024, 1536, 1536]
    assert line["hit_blocks"] == [0, 2, 2, 3, 3]
    assert line["hit_rate_tokens"] == [round(hits / 3424, 10) for hits in line["hit_tokens"]]
    assert line["unlimited"]["share_requests_zero_hit"] == pytest.approx(1 / 3)


def test_conditions_change_what_is_found(tmp_path: Path) -> None:
    path = written(tmp_path / "three.jsonl", THREE)
    most = ("--capacities", "100")
    assert ask(path, *most, "--ttl", "59,60")[1]["ttl"][0]["hit_rate_tokens"] == [round(512 / 3424, 10)]
    assert ask(path, *most, "--ttl", "59,61")[1]["ttl"][1]["hit_rate_tokens"] == [round(1536 / 3424, 10)]
    assert ask(path, *most, "--full-blocks")[1]["hit_tokens"] == [1536]
    assert ask(path, *most, "--replicas", "2")[1]["hit_tokens"] == [1024]
    assert ask(path, *most, "--replicas", "2", "--routing", "prefix-aware")[1]["hit_tokens"] == [1536]
    assert ask(path, *most, "--tenants", "3")[1]["hit_tokens"] == [0]
    assert ask(path, *most, "--coarser", "2")[1]["hit_tokens"] == [1024]


def test_bailian_turns_are_conversations_and_seconds(tmp_path: Path) -> None:
    rows = [
        {"chat_id": 7, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "output_length": 30, "turn": 1,
         "type": "text", "hash_ids": [1, 2, 3]},
        {"chat_id": 8, "parent_chat_id": 7, "timestamp": 61.5, "input_length": 90, "output_length": 9, "turn": 2,
         "type": "text", "hash_ids": [1, 2, 4, 5, 6, 7]},
        {"chat_id": 9, "parent_chat_id": -1, "timestamp": 62, "input_length": 16, "output_length": 1, "turn": 1,
         "type": "text", "hash_ids": [9]},
    ]  # fmt: skip
    trace = read_hash_trace(written(tmp_path / "bailian.jsonl", rows)).trace
    assert trace.block_size_tokens == 16
    assert trace.session is not None
    assert trace.session.tolist() == [0, 0, 1]
    assert trace.arrival_s is not None
    assert trace.arrival_s.tolist() == [0, 61, 61.5]


def test_rows_come_in_order_of_time_and_ids_may_be_any_words(tmp_path: Path) -> None:
    rows = [mooncake(2000, 30, ["ff00", "b"], block_size=16), mooncake(1000, 16, ["ff00"], block_size=16)]
    status, line = ask(written(tmp_path / "late.jsonl", rows), "--capacities", "9")
    assert (status, line["block_size"], line["hit_tokens"]) == (0, 16, [16])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"TIMESTAMP,ContextTokens\n2023-11-16,12\n", "line 1 is not JSON"),
        (b'{"timestamp": 0, "input_length": 5}\n', "block hashes"),
        (b'{"timestamp": 0, "hash_ids": [1]}\n', "prompt tokens"),
        (b'{"hash_ids": [[1]], "input_length": 5}\n', "block hashes"),
        (b'{"hash_ids": [], "input_length": 5}\n', "every list of hashes is empty"),
        (b"[" * 100_000, "line 1 is not JSON"),
        (b"", "block hashes"),
        (b"\x1f\x8bnot really", "gzip"),
        (b'{"hash_ids": [1], "input_length": 1e400}\n', "prompt tokens"),
        (b'{"hash_ids": [1], "input_length": 5, "block_size": 16}\n' * 2 + b'{"hash_ids": [1], "input_length": 5, '
         b'"block_size": 32}\n', "several sizes"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_trace_is_refused_in_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(content)
    status, line = ask(path)
    assert status == 1
    assert words in line["error"]


def test_a_table_with_hashes_is_read_as_a_log_and_one_without_them_has_no_curve(tmp_path: Path) -> None:
    head = "timestamp_s,prompt_tokens,output_tokens"
    (tmp_path / "table.csv").write_text(
        head + ',hash_ids\n0,1024,9,"[1, 2]"\n60,1024,9,"[1, 3]"\n61,1536,9,"[1, 2, 4]"\n', encoding="utf-8"
    )
    status, line = ask(tmp_path / "table.csv", "--capacities", "9")
    assert (status, line["block_size"], line["hit_tokens"]) == (0, 512, [1536])
    (tmp_path / "plain.csv").write_text(head + "\n0,1024,9\n60,1024,9\n", encoding="utf-8")
    assert "no block hashes" in ask(tmp_path / "plain.csv")[1]["error"]


def test_a_missing_file_and_a_missing_tenant_are_said(tmp_path: Path) -> None:
    assert "error" in ask(tmp_path / "none.jsonl")[1]
    assert "tenants" in ask(written(tmp_path / "three.jsonl", THREE), "--by-tenant")[1]["error"]
