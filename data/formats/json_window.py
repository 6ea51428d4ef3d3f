"""JSON text a part at a time: values are scanned by the C scanner as long as they end in the part at hand.

Streaming libraries refuse the NaN and Infinity that benchmark tools write, and build one event a number.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg

WINDOW_BYTES = 1 << 20
"""Text held at a time. A container that ends in it is read in one go; of a longer one each entry by itself."""
MAX_SCALAR_CHARACTERS = 64 * 10**6
"""Longest text or number read as one; a prompt of a million tokens has 4 million characters."""
_LONGEST_WORD = 10_000
"""Characters of a number or of a word such as ``Infinity``, beyond which neither can be meant."""
_SPACE = re.compile(r"[ \t\n\r]*")
_FLAT = re.compile(r'[^\[\]{}"]*')
_AFTER_A_VALUE = frozenset(",]}: \t\n\r")
"""Anything else, such as the point of ``1.``, may still belong to a number that goes on in the next part."""
_NOT_FLAT = frozenset('[{"')
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # what raw_decode of the standard library calls


class DamagedJson(Exception):
    """The text is no complete JSON in UTF-8."""


class Window:
    """What is at hand of a JSON text, and where reading stands in it."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._decoded = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._ended = False

    @property
    def read_bytes(self) -> int:
        """About how much of the text has been read."""
        return self._decoded - (len(self._text) - self._at)

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        found = self._text[self._at : self._at + 1]
        while not found > " ":
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            found = self._text[self._at : self._at + 1]
            if not found:
                if self._ended:
                    return ""
                self._more()
            elif found <= " ":
                return found  # no space of JSON: the caller refuses it
        return found

    def take(self, *expected: str) -> str:
        """Go past one of these characters."""
        found = self.peek()
        if found not in expected:
            raise DamagedJson
        self._at += 1
        return found

    def whole(self) -> Any:
        """The object or list that starts here, when it ends in the window; ``None`` when it must be read by entries."""
        self._fill()
        try:
            value, self._at = _scan(self._text, self._at)
        except (StopIteration, ValueError):
            return None
        except RecursionError as error:
            raise too_deep() from error
        return value

    def scalar(self) -> Any:
        """The text, number or word that starts here."""
        while True:
            try:
                value, end = _scan(self._text, self._at)
            except (StopIteration, ValueError):
                end = len(self._text)
                if self._ended:
                    raise DamagedJson from None
            if self._ended or self._text[end : end + 1] in _AFTER_A_VALUE:
                self._at = end
                return value
            longest = MAX_SCALAR_CHARACTERS if self._text[self._at] == '"' else _LONGEST_WORD
            if len(self._text) - self._at > longest:
                raise DamagedJson
            self._more()

    def flat(self) -> list[Any]:
        """Entries of the list that reading stands in, as many numbers and words as follow each other; may be none."""
        self._fill()
        if self._text[self._at] in _NOT_FLAT:
            return []
        match = _FLAT.match(self._text, self._at)
        cut = self._text.rfind(",", self._at, match.end()) if match else -1
        if cut <= self._at:
            return []
        try:
            values: list[Any] = json.loads(f"[{self._text[self._at : cut]}]")
        except ValueError:
            raise DamagedJson from None
        self._at = cut
        return values

    def entries(self) -> Iterator[None]:
        """Stands before each entry of the list that starts here, one after another; the caller reads it."""
        self.take("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield
            if self.take(",", "]") == "]":
                return
            self.peek()

    def members(self) -> Iterator[str]:
        """Each key of the object that starts here; the caller reads the value after it."""
        self.take("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            if self.peek() != '"':
                raise DamagedJson
            key = self.scalar()
            self.take(":")
            self.peek()
            yield key
            if self.take(",", "}") == "}":
                return

    def _fill(self) -> None:
        """Have half a window ahead."""
        if not self._ended and len(self._text) - self._at < WINDOW_BYTES // 2:
            self._more()

    def _more(self) -> None:
        """Forget what was read and add a part: as much again when a long value needs it."""
        size = max(WINDOW_BYTES, len(self._text) - self._at)
        part = self._content[self._decoded : self._decoded + size]
        self._decoded += len(part)
        self._ended = self._decoded >= len(self._content)
        try:
            self._text = self._text[self._at :] + self._decoder.decode(part, self._ended)
        except UnicodeDecodeError:
            raise DamagedJson from None
        self._at = 0


def too_deep() -> UnreadableFile:
    """Nested as no benchmark is."""
    return UnreadableFile(msg("JSON of a benchmark was expected, this one is nested far too deeply."))
