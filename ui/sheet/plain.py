"""Text from outside (names, titles, file fields) made safe to print: one line, no hidden direction or control signs."""

from __future__ import annotations

import unicodedata

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories that print nothing or turn the line around: control, format, surrogate, private, unassigned."""
ELLIPSIS = "…"


def plain(text: str, limit: int) -> str:
    """``text`` as one visible line of at most ``limit`` characters, in composed form."""
    line = " ".join(unicodedata.normalize("NFC", text).split())
    return cut("".join(sign for sign in line if unicodedata.category(sign) not in HIDDEN), limit)


def cut(text: str, limit: int) -> str:
    """The beginning of ``text``, marked when it goes on."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS
