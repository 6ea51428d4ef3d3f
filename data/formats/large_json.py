"""Large JSON as a stream: its lines, or the entries of its list, come one by one and are not held."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.json_values import JsonValue
from data.formats.json_window import DamagedJson, Window
from data.formats.kept_json import Kept
from data.records import RowProblem

LARGE_BYTES = 4 * 10**6
"""From here on JSON is read as a stream."""
MAX_LINES = 5_000_000
"""Most lines read; at 40 bytes a line this is the largest file."""
MAX_BROKEN = 10_000
"""Most broken lines listed."""
HEAD_VALUES = 500
HEAD_BYTES = 2 * 10**6
"""Values at the beginning, in which the signature of a tool is looked for: they are read once and held."""
WHOLE_BYTES = 1 << 16
"""Longer values hold more than one request: of them prompts and answers are dropped at once."""
_LONGEST_FIRST_LINE = 50 * 10**6
_BOM = b"\xef\xbb\xbf"

_Placed = tuple[JsonValue, int]
"""A value, and about how many bytes were read with it."""


class StreamedValues:
    """Top-level values of a large file, as often as they are asked for; the first ones are held.

    Each is read when its turn comes, so ``problems`` is complete after the values have been gone through.
    """

    def __init__(self, values: Callable[[list[RowProblem]], Iterator[_Placed]], name: str) -> None:
        self.problems: list[RowProblem] = []
        self._values = values
        self._name = name
        self._rest: Iterator[_Placed] | None = self._named(self._start())
        self.head = tuple(self._first(self._rest))
        """The first values."""

    def __bool__(self) -> bool:
        return bool(self.head)

    def __getitem__(self, index: int) -> JsonValue:
        return self.head[index]

    def __iter__(self) -> Iterator[JsonValue]:
        yield from self.head
        rest, self._rest = self._rest, None
        if rest is None:
            rest = islice(self._named(self._start()), len(self.head), None)
        beyond = False
        for value, _ in rest:
            beyond = True
            yield value
        if not beyond:
            self._rest = iter(())  # the head is all there is

    def _start(self) -> Iterator[_Placed]:
        self.problems.clear()
        return self._values(self.problems)

    def _first(self, values: Iterator[_Placed]) -> Iterator[JsonValue]:
        for value, read_bytes in islice(values, HEAD_VALUES):
            yield value
            if read_bytes > HEAD_BYTES:
                return

    def _named(self, values: Iterator[_Placed]) -> Iterator[_Placed]:
        """The same values; what is wrong with the text is said with the name of the file."""
        try:
            yield from values
        except DamagedJson as error:
            raise UnreadableFile(
                msg(
                    "{file}: complete JSON in UTF-8 was expected, but it breaks off or is damaged: "
                    "run the tool again or copy the whole file.",
                    file=self._name,
                )
            ) from error
        except UnreadableFile as error:
            raise UnreadableFile(msg("{file}: {reason}", file=self._name, reason=error.message)) from error


def parse_large(content: bytes, name: str) -> StreamedValues:
    """Every top-level value of a JSON or JSON Lines file in UTF-8, without what no reader needs."""
    content = content.removeprefix(_BOM)
    if _first_line_is_complete(content):
        return StreamedValues(lambda problems: _lines(content, problems), name)
    return StreamedValues(lambda _: _whole(content), name)


def _first_line_is_complete(content: bytes) -> bool:
    """True when the first line is JSON by itself: the file is JSON Lines."""
    end = content.find(b"\n", 0, _LONGEST_FIRST_LINE) + 1
    if not end or content[end - 2 : end - 1] not in (b"}", b"\r", b" "):
        return False
    try:
        return isinstance(_line(content[:end]), dict)
    except (DamagedJson, UnreadableFile):
        return False


def _line(line: bytes) -> Any:
    """The value of one line."""
    if len(line) > WHOLE_BYTES:
        window = Window(line)
        value = Kept().read(window)
        if window.peek():
            raise DamagedJson
        return value
    try:
        return json.loads(line.decode())
    except (RecursionError, ValueError):
        raise DamagedJson from None


def _lines(content: bytes, problems: list[RowProblem]) -> Iterator[_Placed]:
    read_bytes = 0
    for number, line in enumerate(io.BytesIO(content), start=1):
        read_bytes += len(line)
        if line.isspace():
            continue
        if number > MAX_LINES or len(problems) > MAX_BROKEN:
            raise _too_many_lines(problems)
        try:
            yield JsonValue(line=number, value=_line(line)), read_bytes
        except DamagedJson:
            problems.append(RowProblem(line=number, reason=msg("this line is not complete JSON: write it again.")))


def _too_many_lines(problems: list[RowProblem]) -> UnreadableFile:
    if len(problems) > MAX_BROKEN:
        return UnreadableFile(
            msg("more than {limit:count} of its lines are not complete JSON: write it again.", limit=MAX_BROKEN)
        )
    return UnreadableFile(msg("at most {limit:count} lines of JSON are read: split the file.", limit=MAX_LINES))


def _whole(content: bytes) -> Iterator[_Placed]:
    """Values one after another; of a long list each entry by itself."""
    window = Window(content)
    while opening := window.peek():
        whole = window.whole() if opening == "[" else None
        if opening != "[" or whole is not None:
            value = Kept().read(window) if whole is None else Kept().of(whole, "")
            yield JsonValue(line=1, value=value), window.read_bytes
            continue
        for _ in window.entries():
            yield JsonValue(line=1, value=_entry(window), in_list=True), window.read_bytes


def _entry(window: Window) -> Any:
    """One entry of the list that the file is."""
    begin = window.read_bytes
    value = window.whole() if window.peek() in ("{", "[") else window.scalar()
    if value is None or window.read_bytes - begin > WHOLE_BYTES:
        return Kept().read(window) if value is None else Kept().of(value, "")
    return value
