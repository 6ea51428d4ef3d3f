"""One field of a foreign JSON object: a number, a count or a text, or a refusal that names the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from calc.messages import msg
from data.formats.row_checks import MAX_NUMBER, RefusedRow

MAX_TEXT = 200
"""Longest text kept; longer ones are prompts or logs."""


def number(raw: Mapping[str, Any], key: str) -> float | None:
    """A finite number; null, NaN and Infinity are "not known"; anything else refuses the run."""
    value = raw.get(key)
    if isinstance(value, str):
        value = _parsed(key, value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedRow(msg("{key} is a {kind}: a number was expected.", key=key, kind=type(value).__name__))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if abs(value) > MAX_NUMBER:
        raise RefusedRow(msg("{key} is far beyond any benchmark: check the file.", key=key))
    return float(value)


def count(raw: Mapping[str, Any], key: str) -> int | None:
    """A whole number."""
    value = number(raw, key)
    return None if value is None else round(value)


def text(raw: Mapping[str, Any], key: str) -> str | None:
    """A short text; ``None`` when absent or empty."""
    value = raw.get(key)
    return value[:MAX_TEXT] if isinstance(value, str) and value else None


def fact(value: Any) -> float | str | None:
    """A single fact worth keeping: a finite number, or a short text that is no number."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value if value and len(value) <= MAX_TEXT else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MAX_NUMBER else None


def _parsed(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RefusedRow(msg("{key} is {value!r}: a number was expected.", key=key, value=value[:MAX_TEXT])) from None
