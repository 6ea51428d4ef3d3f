"""A log of arrivals: times, one a line, or a CSV with the lengths of each request."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.decode import decode

MAX_LOG_ROWS = 200_000
"""Rows read of one file."""
EPOCH_S = 1e6
"""A first time from here on is a date, not seconds since the log began."""
_SIGNS = re.compile(r"[,;\t，；]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
_HEAD = (
    ("times_s", re.compile(r"time|arriv|start|时间|到达", re.IGNORECASE)),
    ("prompt_tokens", re.compile(r"prompt|input|context|提示|输入", re.IGNORECASE)),
    ("output_tokens", re.compile(r"output|generat|completion|decode|response|输出|生成", re.IGNORECASE)),
)
_IN_MS = re.compile(r"(?:_|\(|\b)(?:ms|millis|milliseconds|毫秒)\)?$", re.IGNORECASE)
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, kw_only=True)
class ArrivalLog:
    """Rising times in seconds from the start of the log, and each request's lengths where the log has both."""

    times_s: tuple[float, ...]
    prompt_tokens: tuple[int, ...] = ()
    output_tokens: tuple[int, ...] = ()


def read_arrival_log(content: bytes, name: str, most: int = MAX_LOG_ROWS) -> ArrivalLog:
    """The log in a file or in pasted text; without a head the columns are time, prompt tokens, output tokens."""
    text, _ = decode(content, name)
    rows = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    places, factor, is_head = _columns(_cells(rows[0][1]))
    rows = rows[is_head:]
    if not 1 < len(rows) <= most:
        raise UnreadableFile(
            msg(
                "A log must have 2 to {most:count} arrivals here, got {number:count}: take a part of it.",
                most=most,
                number=len(rows),
            )
        )
    return _sorted([_row(number, line, places, factor) for number, line in rows])


def _cells(line: str) -> list[str]:
    """Cells between commas, semicolons or tabs; between spaces where there is none of them and no date."""
    line = line.strip()
    cells = _SIGNS.split(line) if _SIGNS.search(line) or _DATE.match(line) else line.split()
    return [cell.strip().strip('"') for cell in cells]


def _columns(first: Sequence[str]) -> tuple[dict[str, int], float, bool]:
    """Where each column stands, seconds per unit of its times, and whether the first row is a head."""
    if _is_time(first[0]):
        names = [key for key, _ in _HEAD][: len(first)]
        return {key: place for place, key in enumerate(names)}, 1.0, False
    places: dict[str, int] = {}
    for key, pattern in _HEAD:
        found = [place for place, cell in enumerate(first) if pattern.search(cell) and place not in places.values()]
        if found:
            places[key] = found[0]
    if "times_s" not in places:
        raise UnreadableFile(
            msg("{head} is neither a time nor a head with a column of times: add one.", head=repr(first[0][:40]))
        )
    return places, 1e-3 if _IN_MS.search(first[places["times_s"]]) else 1.0, True


def _is_time(cell: str) -> bool:
    try:
        _seconds(cell)
    except ValueError:
        return False
    return True


def _seconds(cell: str) -> float:
    if not _DATE.match(cell):
        number = float(cell)
        if not math.isfinite(number):
            raise ValueError(cell)
        return number
    stamp = datetime.fromisoformat(cell)
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


def _row(number: int, line: str, places: dict[str, int], factor: float) -> tuple[float, int | None, int | None]:
    cells = _cells(line)
    try:
        time_s = _seconds(cells[places["times_s"]]) * factor
        prompt, output = (
            round(float(cells[places[key]])) if key in places else None for key in ("prompt_tokens", "output_tokens")
        )
    except (ValueError, IndexError, OverflowError) as error:
        raise UnreadableFile(
            msg(
                "Line {line} is not an arrival ({text}): write a time in seconds, then prompt and output tokens where "
                "known.",
                line=number,
                text=repr(line.strip()[:_SHOWN_CHARACTERS]),
            )
        ) from error
    return time_s, prompt, output


def _sorted(rows: list[tuple[float, int | None, int | None]]) -> ArrivalLog:
    """In order of time, dates as seconds since the first."""
    rows.sort(key=lambda row: row[0])
    begin_s = rows[0][0] if abs(rows[0][0]) >= EPOCH_S else 0.0
    return ArrivalLog(
        times_s=tuple(round(row[0] - begin_s, 6) if begin_s else row[0] for row in rows),
        prompt_tokens=tuple(row[1] for row in rows if row[1] is not None),
        output_tokens=tuple(row[2] for row in rows if row[2] is not None),
    )
