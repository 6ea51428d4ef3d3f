"""A JSON stream without the bare words some tools write: ``NaN`` becomes null, ``Infinity`` the text "Infinity"."""

from __future__ import annotations

import re
from typing import BinaryIO

_WORD = re.compile(rb"([\s:,\[])(-?)(NaN|Infinity)(?=[\s,\]}]|$)")
_BEFORE_A_WORD = re.compile(rb"[\s:,\[]")
_LONGEST_BYTES = 32
"""A bare word and the blanks around it; a longer tail of a chunk cannot begin one."""


class StrictJson:
    """Reads ``source`` with bare words replaced. Inside texts too, where it does no harm: long texts are dropped."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._held = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """About ``size`` bytes; empty at the end."""
        plain = b""
        while size and not plain and not self._ended:
            chunk = self._source.read(size)
            self._ended = not chunk
            plain = self._replaced(self._held + chunk)
        return plain

    def _replaced(self, raw: bytes) -> bytes:
        """``raw`` without its bare words, holding back a tail in which one may begin."""
        cut = len(raw) if self._ended else _last_break(raw)
        self._held = raw[cut:]
        part = raw[:cut]
        if b"NaN" in part or b"Infinity" in part:
            return _WORD.sub(_replacement, part)
        return part


def _last_break(raw: bytes) -> int:
    """Where the last word of ``raw`` could begin, its delimiter included."""
    start = max(0, len(raw) - _LONGEST_BYTES)
    found = [match.start() for match in _BEFORE_A_WORD.finditer(raw, start)]
    return found[0] if found else len(raw)


def _replacement(match: re.Match[bytes]) -> bytes:
    before, sign, word = match.groups()
    return bytes(before) + (b'"Infinity"' if word == b"Infinity" and not sign else b"null")
