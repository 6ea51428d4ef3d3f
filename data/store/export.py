"""Tables as CSV that a spreadsheet opens without running anything in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A cell that begins so is a formula to a spreadsheet; a quote in front makes it text (OWASP, CSV injection)."""


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """UTF-8 with a byte order mark, so that Excel shows Chinese; empty cell = not known."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([_safe(column) for column in columns])
    writer.writerows([_safe(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8-sig")


def _safe(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_STARTS_FORMULA):
        return f"'{value}"
    return "" if value is None else value
