"""Which signs the sheet's fonts can print. A missing glyph would be an empty box that nobody warns about."""

from __future__ import annotations

import io
import string
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
    return frozenset.intersection(*map(_covered, sorted(FONTS.glob("*.ttf"))))


def _covered(path: Path) -> frozenset[int]:
    with TTFont(path, lazy=True) as font:
        return frozenset(font.getBestCmap())


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
    """The font cut to ASCII and the signs of ``text``, some 30 kilobytes, to embed; the same bytes every time."""
    return _subset(path, "".join(sorted({*text, *string.printable})))


@lru_cache(maxsize=16)
def _subset(path: Path, signs: str) -> bytes:
    """Kept, since sheets of one language differ in numbers and hardly in signs; cutting takes half a second."""
    options = subset.Options(hinting=False, layout_features=["kern"], notdef_outline=True)
    options.drop_tables += ["GSUB"]
    cutter = subset.Subsetter(options)
    cutter.populate(text=signs)
    buffer = io.BytesIO()
    with TTFont(path, lazy=True, recalcTimestamp=False) as font:
        cutter.subset(font)
        font.save(buffer)
    return buffer.getvalue()
