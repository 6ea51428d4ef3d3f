"""What is kept of large JSON: summaries, and the numbers of lists as arrays; no prompts, answers or lists of requests.

A file with every request's timings has hundreds of megabytes, of which a reader needs the summary and some numbers.
Lists of numbers are kept as arrays of eight bytes a number.
"""

from __future__ import annotations

from array import array
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.json_window import Window, too_deep

MAX_DEPTH = 100
MAX_KEPT = 2_000_000
"""Most objects, lists, texts and single numbers kept of one value, some 200 MB."""
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
_NUMBER_TYPES = frozenset({int, float})


class Kept:
    """What is kept of one top-level value, and how much of it there is."""

    def __init__(self) -> None:
        self._kept = 0
        self._numbers = 0

    def read(self, window: Window, name: str = "", depth: int = 0) -> Any:
        """The value that starts here; one that is longer than the window entry by entry."""
        if depth > MAX_DEPTH:
            raise too_deep()
        opening = window.peek()
        if opening not in ("{", "["):
            return self.of(window.scalar(), name)
        whole = window.whole()
        if whole is not None:
            return self.of(whole, name)
        if _is_dropped(name, is_list=opening == "["):
            return self._skip(window, opening, depth)
        return self._object(window, name, depth) if opening == "{" else self._list(window, name, depth)

    def of(self, value: Any, name: str) -> Any:
        """What is kept of a value that has been read."""
        if isinstance(value, dict):
            return None if _is_dropped(name, is_list=False) else self._of_object(value, name)
        if isinstance(value, list):
            return None if _is_dropped(name, is_list=True) else self._of_list(value, name)
        self._count(1)
        return None if isinstance(value, str) and len(value) > MAX_TEXT else value

    def _of_object(self, value: dict[str, Any], name: str) -> dict[str, Any]:
        self._count(1)
        return {key: self.of(entry, _named(name, key, isinstance(entry, list))) for key, entry in value.items()}

    def _of_list(self, value: list[Any], name: str) -> Any:
        self._count(1)
        numbers = self._array(value) if name in _ARRAYS else None
        below = name if name in _ARRAYS else ""
        return [self.of(entry, below) for entry in value] if numbers is None else numbers

    def _array(self, value: list[Any]) -> array[float] | None:
        """A list of numbers only, as an array."""
        if not value or not set(map(type, value)) <= _NUMBER_TYPES:
            return None
        try:
            numbers = array("d", value)
        except OverflowError:
            return None
        self._numbers += len(numbers)
        if self._numbers > MAX_NUMBERS:
            raise _too_many(MAX_NUMBERS)
        return numbers

    def _object(self, window: Window, name: str, depth: int) -> dict[str, Any]:
        self._count(1)
        found: dict[str, Any] = {}
        for key in window.members():
            found[key[:MAX_TEXT]] = self.read(window, _named(name, key, window.peek() == "["), depth + 1)
        return found

    def _list(self, window: Window, name: str, depth: int) -> Any:
        """A list; below some names an array as long as it holds numbers only."""
        self._count(1)
        below = name if name in _ARRAYS else ""
        numbers, found = array("d"), list[Any]()
        for _ in window.entries():
            entries = window.flat() or [self.read(window, below, depth + 1)]
            joined = self._array(entries) if below and not found else None
            if joined is None:
                self._count(len(entries))
                found += entries
            else:
                numbers.extend(joined)
        return [*numbers, *found] if found and numbers else numbers or found

    def _skip(self, window: Window, opening: str, depth: int) -> None:
        """Read a container to its end and forget it."""
        if depth > MAX_DEPTH:
            raise too_deep()
        for _ in window.members() if opening == "{" else window.entries():
            below = window.peek()
            if below in ("{", "["):
                if window.whole() is None:
                    self._skip(window, below, depth + 1)
            elif not (opening == "[" and window.flat()):
                window.scalar()

    def _count(self, number: int) -> None:
        self._kept += number
        if self._kept > MAX_KEPT:
            raise _too_many(MAX_KEPT)


def _named(name: str, key: str, is_list: bool) -> str:
    """A list anywhere below ``requests`` has one entry a request."""
    return _REQUESTS if name == _REQUESTS and is_list else key


def _is_dropped(name: str, *, is_list: bool) -> bool:
    return name in _TEXTS or (is_list and name == _REQUESTS)


def _too_many(limit: int) -> UnreadableFile:
    return UnreadableFile(
        msg(
            "at most {limit:count} values are kept of one file, it holds more: write it without per-request details.",
            limit=limit,
        )
    )
