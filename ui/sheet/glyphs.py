"""Which signs the sheet's fonts can print. A missing glyph would be an empty box that nobody warns about."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

FONTS = Path(__file__).parent.parent / "fonts"
SUBSTITUTE = "?"
LISTED = 8
"""Most unprintable signs named in the note."""


@lru_cache
def printable() -> frozenset[int]:
    """Code points that every font file of the sheet has."""
    covered = [frozenset(TTFont(path, lazy=True).getBestCmap()) for path in sorted(FONTS.glob("*.ttf"))]
    return frozenset.intersection(*covered)


def unprintable(text: str) -> set[str]:
    """Signs of ``text`` the fonts lack."""
    return {sign for sign in text if ord(sign) not in printable() and not sign.isspace()}


def substitute(text: str, signs: Iterable[str]) -> str:
    """``text`` with each of ``signs`` shown as a question mark."""
    return text.translate({ord(sign): SUBSTITUTE for sign in signs})


def named(signs: Iterable[str]) -> str:
    """Signs by their code points, since they cannot be printed: ``U+1F600, U+05D0``."""
    codes = sorted({ord(sign) for sign in signs})
    listed = ", ".join(f"U+{code:04X}" for code in codes[:LISTED])
    return listed if len(codes) <= LISTED else f"{listed} …"


def subset_font(path: Path, text: str) -> bytes:
    """The font cut to the signs of ``text``, a few kilobytes, for embedding; the same bytes every time."""
    options = subset.Options(hinting=False, layout_features=["kern"], notdef_outline=True)
    options.drop_tables += ["GSUB"]
    font = TTFont(path, lazy=True, recalcTimestamp=False)
    cutter = subset.Subsetter(options)
    cutter.populate(text=text)
    cutter.subset(font)
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue()
