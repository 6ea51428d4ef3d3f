"""JSON as benchmark tools write it: one object, a list, JSON Lines, or objects one after another; NaN and Infinity."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from calc.errors import UnreadableFile
from calc.messages import msg
from data.records import RowProblem

MAX_VALUES = 200_000
"""Most JSON values read from one file."""
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonValue:
    """One top-level value and the 1-based line where it starts."""

    line: int
    value: Any
    in_list: bool = False
    """True of an entry of the list that a large file is."""


def parse_values(text: str, name: str) -> tuple[tuple[JsonValue, ...], tuple[RowProblem, ...]]:
    """Every top-level value of the text; lines of a JSON Lines file that cannot be read are listed, not dropped."""
    try:
        return (JsonValue(line=1, value=json.loads(text)),), ()
    except json.JSONDecodeError as error:
        first_error = error
    except (RecursionError, ValueError) as error:
        _refuse(error, name)
    values, problems = _lines(text, name)
    if values:
        return values, problems
    values = _one_after_another(text)
    if values:
        return values, ()
    raise UnreadableFile(
        msg(
            "{file}: complete JSON was expected, but it breaks off or is damaged at line {line:count}: "
            "run the tool again or copy the whole file.",
            file=name,
            line=first_error.lineno,
        )
    )


def _refuse(error: Exception, name: str) -> NoReturn:
    if isinstance(error, RecursionError):
        raise UnreadableFile(
            msg(
                "{file}: JSON of a benchmark was expected, this one is nested far too deeply: check the file.",
                file=name,
            )
        ) from error
    raise UnreadableFile(
        msg(
            "{file}: it holds a whole number of thousands of digits, no benchmark writes that: check the file.",
            file=name,
        )
    ) from error


def _lines(text: str, name: str) -> tuple[tuple[JsonValue, ...], tuple[RowProblem, ...]]:
    values: list[JsonValue] = []
    problems: list[RowProblem] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            values.append(JsonValue(line=number, value=json.loads(line)))
        except (RecursionError, ValueError):
            reason = msg("this line is not complete JSON: write it again.")
            problems.append(RowProblem(line=number, reason=reason))
        if len(values) + len(problems) > MAX_VALUES:
            raise UnreadableFile(
                msg(
                    "{file}: at most {limit:count} lines of JSON are read: split the file.", file=name, limit=MAX_VALUES
                )
            )
    objects = tuple(v for v in values if isinstance(v.value, dict))
    if len(objects) < len(problems):
        return (), ()  # lines of one broken document, not JSON Lines
    return objects, tuple(problems)


def _one_after_another(text: str) -> tuple[JsonValue, ...]:
    """Indented objects written one after another (a tool that appends); empty when the text is damaged anywhere."""
    decoder = json.JSONDecoder()
    values: list[JsonValue] = []
    line, position, start = 1, 0, _skip_space(text, 0)
    while start < len(text) and len(values) < MAX_VALUES:
        line += text.count("\n", position, start)
        try:
            value, position = decoder.raw_decode(text, start)
        except (RecursionError, ValueError):
            return ()
        values.append(JsonValue(line=line, value=value))
        line += text.count("\n", start, position)
        start = _skip_space(text, position)
    return tuple(values)


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
