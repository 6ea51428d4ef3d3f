"""Text that people type into the catalogue: one visible line of bounded length, and dates that can be true."""

from __future__ import annotations

import unicodedata
from datetime import date
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from data.case_fields import Fields, shown

EARLIEST = date(2000, 1, 1)
"""Nothing in the catalogue was sold before."""


def one_line(text: Any, what: str) -> str:
    """``text`` on one line without control, direction and invisible characters; it must not be empty or endless."""
    kept = Fields({what: text if isinstance(text, str) else str(text)}).needed_text(what)
    visible = "".join(" " if character.isspace() else character for character in kept)
    visible = "".join(character for character in visible if not unicodedata.category(character).startswith("C"))
    line = " ".join(visible.split())
    if not line:
        raise InputError(msg("{name} is missing: add it.", name=what))
    return line


def checked_date(value: Any, today: date) -> str:
    """The day on which a source was looked at, as an ISO date: not in the future, not before anything was sold."""
    try:
        day = value if isinstance(value, date) else date.fromisoformat(str(value))
    except ValueError as error:
        raise InputError(
            msg("the date must look like 2026-03-31, got {value}: correct it.", value=shown(value))
        ) from error
    if not EARLIEST <= day <= today:
        raise InputError(
            msg(
                "the date must be from {first} to {last}, got {value}: enter the day the source was looked at.",
                first=EARLIEST.isoformat(),
                last=today.isoformat(),
                value=day.isoformat(),
            )
        )
    return day.isoformat()
