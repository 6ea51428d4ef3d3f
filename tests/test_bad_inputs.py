"""Files that people drop on the Benchmarks page by mistake: one clear sentence each, and nothing is stored."""

# ruff: noqa: F811 - a fixture taken from a neighbour
from __future__ import annotations

import gzip
import json

import pytest
from streamlit.testing.v1 import AppTest
from test_pages import app, assert_clean, open_page  # noqa: F401

from calc.errors import UnreadableFile
from data.formats import read

HEADER = b"concurrency,TTFT (ms),TPOT (ms)\n"
RESULT = {"model_id": "m", "duration": 10.0, "completed": 5, "request_throughput": 0.5, "mean_ttft_ms": 10.0}
CONFIG = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}

REFUSED: dict[str, tuple[str, bytes]] = {
    "empty file": ("run.json", b""),
    "only blanks": ("run.csv", b" \n\r\n\t"),
    "truncated JSON": ("run.json", json.dumps(RESULT).encode()[:-9]),
    "JSON cut in a list": ("run.json", json.dumps({"ttfts": [0.1] * 50}).encode()[:-30]),
    "JSON of nulls": ("run.json", b"null"),
    "JSON of another thing": ("run.json", json.dumps(CONFIG).encode()),
    "PNG renamed to CSV": ("run.csv", b"\x89PNG\r\n\x1a\n" + bytes(64)),
    "workbook renamed to CSV": ("run.csv", b"PK\x03\x04" + bytes(64)),
    "PDF renamed to text": ("run.txt", b"%PDF-1.7\n" + bytes(64)),
    "header and no rows": ("run.csv", HEADER),
    "rows and no header": ("run.csv", b"1,2,3\n4,5,6\n7,8,9\n"),
    "negative latency in every row": ("run.csv", HEADER + b"1,-2,3\n2,-4,5\n"),
    "tokens as text": ("run.json", json.dumps(RESULT | {"mean_ttft_ms": "ten", "completed": "five"}).encode()),
    "latencies as text": ("run.csv", HEADER + b"one,two,three\nfour,five,six\n"),
    "NaN and infinity for latencies": ("run.csv", HEADER + b"1,nan,inf\n2,NaN,-inf\n"),
    "columns of nothing known": ("run.csv", b"name,age,city\nAnn,31,Bonn\nBob,44,Ulm\n"),
    "prose": ("run.txt", b"It was fast, we think.\nThe other one was slower.\n"),
    "UTF-16 without a mark": ("run.csv", (HEADER + b"1,20,3\n").decode().encode("utf-16-le")),
    "half a UTF-16 character": ("run.csv", b"\xff\xfea\x00b"),
    "a quote never closed": ("run.csv", HEADER + b'1,"2,3\n4,5,6\n'),
    "a hundred thousand columns": ("run.csv", b",".join(b"c%d" % i for i in range(100_000)) + b"\n" + b"1," * 99_999),
    "one line of a megabyte": ("run.txt", b"x" * 1_000_000),
    "gzip of a gigabyte of zeros": ("run.json", gzip.compress(bytes(1_000_000))),
    "deeply nested JSON": ("run.json", b"[" * 50_000 + b"]" * 50_000),
    "a number of ten thousand digits": ("run.json", b'{"completed": ' + b"9" * 10_000 + b"}"),
    "NUL bytes in a table": ("run.csv", HEADER + b"1,\x002,3\n"),
    "source code": ("run.txt", b"import os\nprint(os.getcwd())\n"),
    "an HTML page": ("run.txt", b"<!doctype html><html><body>404 Not Found</body></html>"),
    "shell output": ("run.txt", b"bash: vllm: command not found\n"),
}
"""What was dropped -> the file's name and content."""


@pytest.mark.parametrize("dropped", REFUSED)
def test_the_reader_refuses_it_in_one_sentence(dropped: str) -> None:
    name, content = REFUSED[dropped]
    with pytest.raises(UnreadableFile) as refused:
        read(content, name)
    sentence = str(refused.value)
    assert sentence.startswith(f"{name}: ")
    assert "\n" not in sentence
    assert len(sentence) < 600


def test_the_page_says_one_sentence_for_each_and_stores_nothing(app: AppTest) -> None:
    from ui import resources

    open_page(app, "benchmarks")
    for dropped, (name, content) in REFUSED.items():
        app.file_uploader(key="bench_file").upload(name, content).run()
        assert_clean(app)
        assert len(app.error) == 1, dropped
        assert not [button for button in app.button if button.key == "bench_store" and not button.disabled], dropped
    assert resources.store().runs() == ()
    assert resources.store().files() == ()
