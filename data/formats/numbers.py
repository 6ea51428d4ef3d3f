"""One cell as a number: thousands, decimal comma, units in the cell, and the many ways to say nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from calc.messages import msg
from data.formats.row_checks import MAX_NUMBER, RefusedRow

_SHOWN = 40
"""Characters of a bad cell shown to the user."""
_EMPTY_WORDS = "- -- — / n/a n.a. na nan null none nil tbd [n/a] 无 未测 未测试 待测 不支持 x ? keine"
_SHEET_ERRORS = "#n/a #div/0! #value! #ref! #name? #null! #num!"
_COUNTED = "tokens token tok tokens/s tok/s token/s req/s /s qps rps 个 次 条 卡 张"
_EMPTY = frozenset({"", "[not supported]", *_EMPTY_WORDS.split(), *_SHEET_ERRORS.split()})
_FAILED = re.compile(
    r"(?:cuda\s*)?(?:oom|out of memory)\b|time(?:d\s?)?-?out\b|fail(?:ed|ure)?\b|error\b|crash(?:ed)?\b|killed\b|"
    r"\D{0,8}(?:失败|超时|报错|崩溃|爆显存|显存不足|显存溢出)|fehl(?:er|geschlagen)\b|abgebrochen\b"
)
_THOUSAND = 1000.0
_NO_UNITS = frozenset({"", *_COUNTED.split()})
_INFINITE = frozenset({"inf", "infinity", "∞", "+inf", "unlimited", "不限"})
_BLANKS = dict.fromkeys(map(ord, " \u00a0\u202f\u2009'’_"))
_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
"""Most cells; they need none of the care below."""
_CELL = re.compile(r"^([+\-−]?\d[\d.,]*(?:e[+\-]?\d+)?|[+\-−]?[.,]\d+)(.*)$", re.IGNORECASE | re.DOTALL)
_COMMA_LAST = re.compile(r"\d\.\d{3}(?:\.\d{3})*,\d|\d\.\d{3}\.\d{3}")
_POINT_LAST = re.compile(r"\d,\d{3}(?:,\d{3})*\.\d|\d,\d{3},\d{3}")
_COMMA_DECIMAL = re.compile(r"^[+\-]?\d+,(?!\d{3}(?:\D|$))\d")
_POINT_DECIMAL = re.compile(r"^[+\-]?\d+\.(?!\d{3}(?:\D|$))\d")
_RANGE = re.compile(r"^\[.*\d.*\]|^\d[\d.,]*\s*(?:~|～|–|—|-|至|to|\.\.)\s*\d")
_SEVERAL = re.compile(r"\d\s*/\s*\d")
_SPREAD = re.compile(r"^([\d.,]+)\s*(?:±|\+/-)\s*([\d.,]+)(.*)$")
_TEN_THOUSAND = {"万": 10_000.0, "w": 10_000.0, "亿": 100_000_000.0}
_UNITS = {
    "ms": "ms",
    "毫秒": "ms",
    "s": "s",
    "秒": "s",
    "sec": "s",
    "us": "us",
    "μs": "us",
    "ns": "ns",
    "min": "min",
    "%": "%",
    "gib": "GiB",
    "gb": "GB",
    "mib": "MiB",
    "mb": "MB",
}


class Special(Enum):
    """A cell that is no number."""

    EMPTY = "empty"
    FAILED = "failed"
    INFINITE = "infinite"
    RANGE = "range"


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number, the unit written beside it, and the spread after ``±``."""

    value: float
    unit: str | None = None
    spread: float | None = None


def parse_cell(cell: str, *, decimal_comma: bool, what: str, counts: bool = False) -> Number | Special:
    """A cell of a number column; refuses the row when it holds words or an unclear multiplier.

    ``counts`` says that the column counts requests or is a rate, where ``k`` is 1,000; of token lengths and bytes it
    could be 1,024.
    """
    if _PLAIN.fullmatch(cell) and not (decimal_comma and "." in cell):
        return Number(value=_float(cell, decimal_comma=False))
    text = unicodedata.normalize("NFKC", cell).strip()
    special = _special(text)
    if special is not None:
        return special
    spread = _SPREAD.match(text)
    if spread:
        mean, deviation, rest = spread.groups()
        return Number(value=_float(mean, decimal_comma), unit=_unit(rest), spread=_float(deviation, decimal_comma))
    match = _CELL.match(text.translate(_BLANKS))
    if match is None:
        raise RefusedRow(msg("{what} is {cell!r}: a number was expected.", what=what, cell=cell[:_SHOWN]))
    digits, rest = match.group(1), match.group(2).lower()
    multiplier = _TEN_THOUSAND.get(rest, _THOUSAND if counts and rest == "k" else None)
    if multiplier is not None:
        return Number(value=_float(digits, decimal_comma) * multiplier)
    if rest.rstrip("b") in ("k", "m") and rest not in _UNITS:
        raise RefusedRow(
            msg("{what} is {cell!r}: 1,000 or 1,024 is not said, write the number out.", what=what, cell=cell[:_SHOWN])
        )
    if rest not in _UNITS and rest not in _NO_UNITS:
        raise RefusedRow(msg("{what} is {cell!r}: a number was expected.", what=what, cell=cell[:_SHOWN]))
    return Number(value=_float(digits, decimal_comma), unit=_unit(rest))


def uses_decimal_comma(cells: Iterable[str]) -> bool | None:
    """Whether a column writes ``1.204,8``; ``None`` when its cells leave it open (``1.204`` or whole numbers)."""
    for cell in cells:
        if "," not in cell and "." not in cell and cell.isascii():
            continue
        text = unicodedata.normalize("NFKC", cell).strip().translate(_BLANKS)
        if _COMMA_LAST.search(text) or _COMMA_DECIMAL.match(text):
            return True
        if _POINT_LAST.search(text) or _POINT_DECIMAL.match(text):
            return False
    return None


def _special(text: str) -> Special | None:
    lower = text.lower()
    if lower in _EMPTY:
        return Special.EMPTY
    if _FAILED.match(lower):
        return Special.FAILED
    if lower in _INFINITE:
        return Special.INFINITE
    if _RANGE.search(text) or _SEVERAL.search(text):
        return Special.RANGE
    return None


def _unit(rest: str) -> str | None:
    return _UNITS.get(rest.strip().lower())


def _float(digits: str, decimal_comma: bool) -> float:
    plain = digits.replace("−", "-")
    plain = plain.replace(".", "").replace(",", ".") if decimal_comma else plain.replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        raise RefusedRow(
            msg("{digits!r} has more than one decimal sign: check the number.", digits=digits[:_SHOWN])
        ) from None
    if not abs(value) <= MAX_NUMBER:
        raise RefusedRow(msg("{digits!r} is far beyond any benchmark: check the number.", digits=digits[:_SHOWN]))
    return value
