"""Numbers and pairs typed as a list, and written so that they read back the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from calc.errors import InputError
from calc.messages import msg

FULL_WIDTH = str.maketrans("，：；％＝／｜", ",:;%=/|")
"""Signs as a Chinese keyboard writes them."""
PERCENT = 100.0
_SHARE_DIGITS = 12
_PERCENT_DIGITS = (3, 6, 9)
_SHOWN_CHARACTERS = 40


def parse_numbers(text: str) -> list[float]:
    """``"2, 4, 9"`` → numbers; the sentence of the error names the piece that is none."""
    return [as_number(piece) for piece in text.translate(FULL_WIDTH).split(",") if piece.strip()]


def parse_pairs(text: str, between: str = ",") -> list[list[float]]:
    """``"0:20, 0.5:600"`` → [[share, tokens], …]."""
    pairs = []
    for piece in text.translate(FULL_WIDTH).split(between):
        if piece.strip():
            share, colon, tokens = piece.partition(":")
            if not colon:
                raise InputError(
                    msg(
                        "{piece} is not a pair share:tokens: write them like 0.5:600, 0.95:4000.",
                        piece=quoted(piece),
                    )
                )
            pairs.append([as_number(share), as_number(tokens)])
    return pairs


def as_number(piece: str) -> float:
    """One finite number."""
    try:
        number = float(piece)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(msg("{piece} is not a number: correct it.", piece=quoted(piece)))
    return number


def quoted(piece: str) -> str:
    """What was typed, as an error repeats it: short."""
    text = piece.strip()
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…")


def plain(number: float) -> str:
    """A number with the fewest digits that read back the same, whole ones without a point."""
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def share_of(percent: float) -> float:
    """Per cent as a share."""
    return round(percent / PERCENT, _SHARE_DIGITS)


def percent_of(share: float) -> float:
    """A share as per cent, with the fewest digits that read back the same."""
    exact = share * PERCENT
    return next((short for digits in _PERCENT_DIGITS if share_of(short := round(exact, digits)) == share), exact)


def numbers_text(numbers: Iterable[float]) -> str:
    """As :func:`parse_numbers` reads them."""
    return ", ".join(plain(number) for number in numbers)


def pairs_text(pairs: Iterable[Sequence[float]], between: str = ", ") -> str:
    """As :func:`parse_pairs` reads them."""
    return between.join(f"{plain(share)}:{plain(tokens)}" for share, tokens in pairs)
