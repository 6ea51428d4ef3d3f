"""Text from outside (names, titles, file fields) made safe to print: one line, no hidden direction or control signs."""

from __future__ import annotations

import re
import unicodedata

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories that print nothing or turn the line around: control, format, surrogate, private, unassigned."""
ELLIPSIS = "…"
BREAK = "\u200b"
"""Zero-width space: a line may end here."""
LONG_WORD = re.compile(r"[^\s/\-\u2e80-\uffff]{25,}")
"""A run without a natural place to break; narrower columns of the sheet hold some 25 signs."""
PIECE = re.compile(r"[^_:.,]{1,20}[_:.,]*|[_:.,]+")


def plain(text: str, limit: int) -> str:
    """``text`` as one visible line of at most ``limit`` characters, in composed form."""
    line = " ".join(unicodedata.normalize("NFC", text).split())
    return cut("".join(sign for sign in line if unicodedata.category(sign) not in HIDDEN), limit)


def cut(text: str, limit: int) -> str:
    """The beginning of ``text``, marked when it goes on."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def breakable(text: str) -> str:
    """``text`` with places to break inside words too long for a column, such as ids and metric names."""
    return LONG_WORD.sub(lambda word: BREAK.join(PIECE.findall(word.group())), text)
