"""Files that people drop by mistake: one clear sentence each, never a traceback, never half a result."""

from __future__ import annotations

import codecs
import gzip
import json
import pickle

import pytest

from calc.errors import UnreadableFile
from data.formats import decode, propose_columns, read, table
from data.formats.document import open_document

HEADER = "concurrency,TTFT (ms),TPOT (ms)\n"
RUN = '{"mean_ttft_ms": 1.0, "request_throughput": 1.0, "duration": 1.0, "completed": 1, "model_id": "m"'

BAD: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "empty"),
    "only blanks": (b" \n\n \t", "empty"),
    "PNG renamed to CSV": (b"\x89PNG\r\n\x1a\n" + bytes(40), "PNG image"),
    "PDF report": (b"%PDF-1.7 ...", "PDF"),
    "Excel workbook cut short": (b"PK\x03\x04" + bytes(40), "breaks off"),
    "gzip": (b"\x1f\x8b\x08" + bytes(20), "gzip"),
    "SQLite database": (b"SQLite format 3\x00" + bytes(20), "SQLite"),
    "pickle": (pickle.dumps({"a": 1}), "pickle"),
    "binary junk": (bytes(range(256)) * 4, "NUL"),
    "NUL bytes in a table": ((HEADER + "1,\x002,3\n").encode(), "NUL"),
    "half a UTF-16 character": (codecs.BOM_UTF16_LE + b"a\x00b", "utf-16"),
    "truncated JSON": ((RUN + ', "p99').encode(), "breaks off"),
    "truncated JSON over several lines": (json.dumps({"a": [1, 2, 3]}, indent=1).encode()[:-4], "breaks off"),
    "deeply nested JSON": (b"[" * 100_000 + b"]" * 100_000, "nested"),
    "a number of ten thousand digits": (RUN.encode() + b', "num_prompts": ' + b"9" * 10_000 + b"}", "digits"),
    "JSON of something else": (b'{"name": "package", "version": "1.0"}', "expected"),
    "prose": (b"We measured it and it was fast.\n" * 5, "expected"),
    "source code": (b"import os\nprint(os.getcwd())\n", "expected"),
    "header without rows": (HEADER.encode(), "no row"),
    "a quote never closed": ((HEADER + '1,"2,3\n4,5,6\n7,8,9\n').encode(), "quote"),
    "every row broken": ((HEADER + "1,-2,3\n4,x y z,6\n").encode(), "none of its 2 rows"),
    "a table of unrelated columns": (b"name,age,city\nAnn,31,Bonn\nBob,44,Ulm\n", "expected"),
}


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD.keys())
def test_a_file_that_is_no_result_is_refused_in_one_sentence(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableFile) as refused:
        read(content, "upload.csv")
    sentence = str(refused.value)
    assert said in sentence
    assert sentence.startswith("upload.csv: ")
    assert "\n" not in sentence
    assert "Traceback" not in sentence


@pytest.mark.parametrize("content", [content for content, _ in BAD.values()], ids=BAD.keys())
def test_asking_for_columns_never_fails(content: bytes) -> None:
    assert isinstance(propose_columns(content, "upload.csv"), tuple)


def test_a_file_above_the_limit_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "MAX_FILE_BYTES", 100)
    with pytest.raises(UnreadableFile, match="at most 100 bytes"):
        read(b"x" * 101, "big.csv")


def test_a_table_of_too_many_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_ROWS", 10)
    with pytest.raises(UnreadableFile, match="at most 10 rows"):
        read((HEADER + "1,2,3\n" * 11).encode(), "big.csv")


PACKED = gzip.compress((HEADER + "8,200,20\n").encode())

BAD_PACKED: dict[str, tuple[bytes, str]] = {
    "gzip cut short": (PACKED[:-9], "breaks off"),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "gzip bomb": (gzip.compress(bytes(8 * 10**6)), "at most"),
    "archive in gzip": (gzip.compress(bytes(257) + b"ustar" + bytes(500)), "tar"),
    "YAML alias": (b"a: &x 1\nb: *x\nc: 2\n", "aliases"),
    "YAML that builds objects": (b"a: !!python/object/apply:os.system [ls]\nb: 2\n", "tags"),
    "YAML nested too deeply": (b"a: 1\nb: " + b"[" * 200 + b"]" * 200 + b"\n", "deeply"),
    "YAML cut short": (b'version: "0.1"\nmetrics:\n  time:\n  - {a: 1, b', "damaged"),
}


@pytest.mark.parametrize(("content", "said"), BAD_PACKED.values(), ids=BAD_PACKED.keys())
def test_a_packed_or_yaml_file_that_is_no_result_is_refused_in_one_sentence(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        read(content, "upload")


def test_a_packed_table_is_read_like_the_table() -> None:
    assert read(PACKED, "table.csv.gz").runs[0].max_concurrency == 8


def test_a_yaml_report_has_plain_values_with_text_keys_and_dates_as_text() -> None:
    document = open_document(b"date: 2026-01-31\npercentiles:\n  50: 0.2\n---\nrun: 2\n", "report.yaml")
    assert [value.line for value in document.values] == [1, 4]
    assert document.values[0].value == {"date": "2026-01-31", "percentiles": {"50": 0.2}}


def test_a_database_reaches_its_reader_whole() -> None:
    content = b"SQLite format 3\x00" + bytes(20)
    document = open_document(content, "benchmark_data.db")
    assert (document.text, document.content, document.values) == ("", content, ())
