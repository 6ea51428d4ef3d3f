"""Large JSON: the same result as in one piece, without prompts, answers and per-request records, in bounded memory."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from calc.errors import UnreadableFile
from data.formats import document, json_window, kept_json, large_json, read
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
    value = parse_large(json.dumps(detailed_run()).encode(), "x")[0].value
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
        (b'{"a": 1,}', "damaged"),
        (b"[1 2]", "damaged"),
        (b'{"a" 1}', "damaged"),
        (b'[{"a": 1}, {"a"', "damaged"),
        (b'{"a": ' + b"9" * 5000 + b"}", "damaged"),
    ],
)
def test_a_damaged_large_file_is_refused_in_one_sentence(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        list(parse_large(content, "x"))


@pytest.mark.parametrize("entries", [REQUESTS, 3])
def test_a_value_is_the_same_wherever_a_part_ends(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = detailed_run() | {"text": '\u4e2d\u6587 \\"]}', "low": float("-inf"), "mixed": [1.5, "a", {}, [], None, [2]]}
    run = {key: value[:entries] if isinstance(value, list) else value for key, value in run.items()}
    content = json.dumps(run, ensure_ascii=False).encode()
    whole = repr(parse_large(content, "x")[0].value)
    assert "inf" in whole
    assert "nan" in whole
    for size in (1, 2, 3, 7, 16, 40, 500):
        monkeypatch.setattr(json_window, "WINDOW_BYTES", size)
        assert repr(parse_large(content, "x")[0].value) == whole, size


def requests(count: int) -> list[dict[str, Any]]:
    """Requests as llmperf lists them."""
    return [
        {"ttft_s": 0.1 + i / 1000, "end_to_end_latency_s": 2.0 + i / 1000, "number_output_tokens": 20 + i % 3}
        for i in range(count)
    ]


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("window", [50, 1 << 20])
def test_entries_of_a_long_list_come_one_by_one_and_none_is_lost(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_window, "WINDOW_BYTES", window)
    monkeypatch.setattr(large_json, "HEAD_VALUES", 10)
    content = json.dumps(requests(700)).encode()
    streamed = read(content, "x")
    assert streamed.runs[0].completed == 700
    monkeypatch.setattr(document, "LARGE_BYTES", 10**9)
    assert streamed == read(content, "x")


def test_values_can_be_gone_through_again_and_broken_lines_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_json, "HEAD_VALUES", 2)
    lines = [json.dumps(entry) for entry in requests(6)]
    values = parse_large("\n".join([*lines[:4], "{", *lines[4:]]).encode(), "x")
    next(iter(values))
    for _ in range(3):
        assert [value.line for value in values] == [1, 2, 3, 4, 6, 7]
        assert [problem.line for problem in values.problems] == [5]
    assert len(values.head) == 2


def test_only_the_beginning_of_a_large_file_is_read_to_find_its_tool() -> None:
    content = b'{"a": 1}\n' * 100_000 + b"{"
    assert len(parse_large(content, "x").head) == large_json.HEAD_VALUES


def test_endless_broken_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_json, "MAX_BROKEN", 10)
    with pytest.raises(UnreadableFile, match="more than 10 of its lines"):
        list(parse_large(b'{"a": 1}\n' + b"{\n" * 100, "x"))


@pytest.mark.parametrize("entry", [b"[],", b'{"a":1},'])
def test_a_file_of_endless_small_values_is_refused_before_it_fills_memory(
    entry: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_json, "MAX_KEPT", 100_000)
    content = b'{"a": [' + entry * 400_000 + b"1]}"
    tracemalloc.start()
    with pytest.raises(UnreadableFile, match="at most 100,000 values"):
        parse_large(content, "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 10**6
