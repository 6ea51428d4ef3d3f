"""Large JSON: the same result as in one piece, without prompts, answers and per-request records, in bounded memory."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from calc.errors import UnreadableFile
from data.formats import document, large_json, read
from data.formats.large_json import parse_large

REQUESTS = 200
SECRET = "what the customer asked"


def detailed_run() -> dict[str, Any]:
    """A run of 200 requests with ten gaps each; the summary is that of the arrays."""
    return {
        "model_id": "m",
        "duration": 10.0,
        "completed": REQUESTS,
        "request_rate": float("inf"),
        "goodput": float("nan"),
        "request_throughput": REQUESTS / 10,
        "mean_ttft_ms": 100.0,
        "mean_itl_ms": 20.0,
        "input_lens": [50] * REQUESTS,
        "output_lens": [11] * REQUESTS,
        "ttfts": [0.1] * REQUESTS,
        "itls": [[0.02] * 10] * REQUESTS,
        "generated_texts": [SECRET + ", NaN"] * REQUESTS,
        "requests": {"successful": [{"output": SECRET}] * 3, "total": 3},
        "errors": ["", SECRET * 100],
    }


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as a large one."""
    monkeypatch.setattr(document, "LARGE_BYTES", 0)


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_streamed_file_gives_what_the_whole_file_gives(
    indent: int | None, mark: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = mark + json.dumps(detailed_run(), indent=indent).encode()
    streamed = read(content, "x")
    monkeypatch.setattr(document, "LARGE_BYTES", 10**9)
    assert streamed == read(content, "x")
    assert streamed.runs[0].request_rate_is_infinite


def test_prompts_answers_and_records_of_requests_are_dropped_and_counts_are_not() -> None:
    values, _ = parse_large(json.dumps(detailed_run()).encode(), "x")
    value = values[0].value
    assert SECRET not in str(value)
    assert value["requests"] == {"successful": None, "total": 3}
    assert list(value["itls"][0]) == [0.02] * 10


@pytest.mark.usefixtures("streamed")
def test_lines_are_read_one_by_one_and_a_broken_one_is_named() -> None:
    line = json.dumps(detailed_run())
    result = read(f"{line}\n{line[:50]}\n\n{line}\n".encode(), "x")
    assert [run.line for run in result.runs] == [1, 4]
    assert [problem.line for problem in result.problems] == [2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": [1, 2', "breaks off"),
        (b'["\xff"]', "UTF-8"),
        (b"[" * 5000, "nested"),
        (b'{"a": 1e999}', "damaged"),
        (b'{"a": ' + b"9" * 5000 + b"}", "damaged"),
    ],
)
def test_a_damaged_large_file_is_refused_in_one_sentence(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        parse_large(content, "x")


def test_bare_words_are_replaced_wherever_a_chunk_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'{"a": NaN, "b":[Infinity,-Infinity , 1.5], "c": "xNaN", "d":\tNaN}'
    for size in range(1, 40):
        monkeypatch.setattr(large_json, "_CHUNK_BYTES", size)
        values, _ = parse_large(content, "x")
        assert values[0].value == {"a": None, "b": ["Infinity", None, 1.5], "c": "xNaN", "d": None}, size


@pytest.mark.parametrize("content", [b"[" + b"[]," * 400_000 + b"[]]", b"[" + b'{"a":1},' * 200_000 + b"{}]"])
def test_a_file_of_endless_small_values_is_refused_before_it_fills_memory(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_json, "MAX_KEPT", 100_000)
    tracemalloc.start()
    with pytest.raises(UnreadableFile, match="at most 100,000 values"):
        parse_large(content, "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 10**6
