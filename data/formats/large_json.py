"""Large JSON read as a stream: prompts, answers and per-request records are dropped while it passes.

A file with every request's timings has hundreds of megabytes, of which a reader needs the summary and some numbers.
Lists of numbers are kept as arrays of eight bytes a number, so that the file never stands in memory several times.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import ijson

from calc.errors import UnreadableFile
from calc.messages import Message, msg
from data.formats.bare_words import StrictJson
from data.formats.json_values import MAX_VALUES, JsonValue
from data.records import RowProblem

LARGE_BYTES = 20 * 10**6
"""From here on JSON is read as a stream."""
MAX_DEPTH = 100
MAX_KEPT = 4_000_000
"""Most objects, lists, texts and single numbers kept of one file, some 200 MB."""
MAX_NUMBERS = 25_000_000
"""Most numbers kept in lists, 200 MB."""
MAX_TEXT = 2_000
"""Longer texts are prompts or answers; of them nothing is kept."""
_ARRAYS = frozenset(["ttfts", "itls", "latencies", "start_times", "queue_times", "input_lens", "output_lens"])
"""Names of lists with a number, or a list of numbers, for each request."""
_SENT = ("prompts", "prompt", "messages", "request_args", "arguments")
_ANSWERED = (
    "generated_texts",
    "generated_text",
    "outputs",
    "output",
    "output_text",
    "responses",
    "response",
    "raw_data",
)
_TEXTS = frozenset((*_SENT, *_ANSWERED, "response_messages"))
"""Names whose lists and objects are what was sent and what was answered."""
_REQUESTS = "requests"
"""Below this name single numbers are counts, and lists one entry a request (GuideLLM)."""
_BOM = b"\xef\xbb\xbf"
_MOST_KNOWN = 20_000
"""Different texts of which one copy serves all."""
_CHUNK_BYTES = 1 << 16
_LONGEST_LINE_BYTES = 5 * 10**6
"""Longer lines are read as one stream: a run with its details on each."""


def parse_large(content: bytes, name: str) -> tuple[tuple[JsonValue, ...], tuple[RowProblem, ...]]:
    """Every top-level value of a JSON or JSON Lines file in UTF-8, without what no reader needs."""
    source = io.BytesIO(content)
    source.seek(len(_BOM) if content.startswith(_BOM) else 0)
    return _lines(source, name) if _first_line_is_complete(content) else (_whole(source, name), ())


def _first_line_is_complete(content: bytes) -> bool:
    """True when the first line is JSON by itself: the file is JSON Lines."""
    line = content[: content.find(b"\n", 0, _LONGEST_LINE_BYTES) + 1].removeprefix(_BOM)
    try:
        return bool(list(_Kept().values(io.BytesIO(line))))
    except (ijson.JSONError, UnreadableFile):
        return False


def _whole(source: BinaryIO, name: str) -> tuple[JsonValue, ...]:
    try:
        return tuple(JsonValue(line=1, value=value) for value in _Kept().values(source))
    except ijson.JSONError as error:
        raise UnreadableFile(
            msg(
                "{file}: complete JSON in UTF-8 was expected, but it breaks off or is damaged: "
                "run the tool again or copy the whole file.",
                file=name,
            )
        ) from error
    except UnreadableFile as error:
        raise UnreadableFile(msg("{file}: {reason}", file=name, reason=error.message)) from error


def _lines(source: BinaryIO, name: str) -> tuple[tuple[JsonValue, ...], tuple[RowProblem, ...]]:
    kept = _Kept()
    values: list[JsonValue] = []
    problems: list[RowProblem] = []
    for number, line in enumerate(source, start=1):
        if line.isspace():
            continue
        if len(values) + len(problems) >= MAX_VALUES:
            raise UnreadableFile(
                msg(
                    "{file}: at most {limit:count} lines of JSON are read: split the file.", file=name, limit=MAX_VALUES
                )
            )
        try:
            values += (JsonValue(line=number, value=value) for value in kept.values(io.BytesIO(line)))
        except ijson.JSONError:
            problems.append(RowProblem(line=number, reason=msg("this line is not complete JSON: write it again.")))
        except UnreadableFile as error:
            raise UnreadableFile(msg("{file}: {reason}", file=name, reason=error.message)) from error
    return tuple(values), tuple(problems)


class _Kept:
    """What is kept of a stream of JSON events, and how much of it there is."""

    def __init__(self) -> None:
        self._kept = 0
        self._numbers = 0
        self._known: dict[str, str] = {}

    def values(self, source: BinaryIO) -> Iterator[Any]:
        """Top-level values, one after another."""
        stream = cast(BinaryIO, StrictJson(source))
        events = ijson.basic_parse(stream, use_float=True, multiple_values=True, buf_size=_CHUNK_BYTES)
        for event, value in events:
            yield self._value(event, value, events, depth=0, name="")

    def _value(self, event: str, value: Any, events: Iterator[tuple[str, Any]], *, depth: int, name: str) -> Any:
        """One value; its containers are read to their end."""
        if depth > MAX_DEPTH:
            raise UnreadableFile(msg("JSON of a benchmark was expected, this one is nested far too deeply."))
        if event == "start_map":
            return _skip(events) if name in _TEXTS else self._object(events, depth, name)
        if event == "start_array":
            return _skip(events) if name in _TEXTS or name == _REQUESTS else self._list(events, depth, name)
        self._count(1)
        return self._text(value) if event == "string" else value

    def _text(self, text: str) -> str | None:
        """A text, the same one for all that are alike; nothing of a long one."""
        if len(text) > MAX_TEXT:
            return None
        return self._known.setdefault(text, text) if len(self._known) < _MOST_KNOWN else self._known.get(text, text)

    def _object(self, events: Iterator[tuple[str, Any]], depth: int, name: str) -> dict[str, Any]:
        self._count(1)
        found: dict[str, Any] = {}
        for event, key in events:
            if event == "end_map":
                break
            first, value = next(events)
            named = _REQUESTS if name == _REQUESTS and first == "start_array" else key
            found[self._text(key) or ""] = self._value(first, value, events, depth=depth + 1, name=named)
        return found

    def _list(self, events: Iterator[tuple[str, Any]], depth: int, name: str) -> list[Any] | array[float]:
        """A list; below some names an array when it holds numbers only."""
        self._count(1)
        found, event, value = self._array(events) if name in _ARRAYS else (array("d"), *next(events))
        if event == "end_array" and len(found):
            return found
        rest = list(found)
        while event != "end_array":
            rest.append(self._value(event, value, events, depth=depth + 1, name=name if name in _ARRAYS else ""))
            event, value = next(events)
        return rest

    def _array(self, events: Iterator[tuple[str, Any]]) -> tuple[array[float], str, Any]:
        """The numbers a list begins with, and the event after them."""
        numbers = array("d")
        for event, value in events:
            if event != "number":
                break
            numbers.append(value)
        self._numbers += len(numbers)
        if self._numbers > MAX_NUMBERS:
            raise _too_many(MAX_NUMBERS)
        return numbers, event, value

    def _count(self, number: int) -> None:
        self._kept += number
        if self._kept > MAX_KEPT:
            raise _too_many(MAX_KEPT)


def _skip(events: Iterator[tuple[str, Any]]) -> None:
    """Read a container to its end and forget it."""
    depth = 1
    for event, _ in events:
        depth += event.startswith("start") - (event in ("end_map", "end_array"))
        if not depth:
            return


def _too_many(limit: int) -> UnreadableFile:
    reason: Message = msg(
        "at most {limit:count} values are kept of one file, it holds more: write it without per-request details.",
        limit=limit,
    )
    return UnreadableFile(reason)
