"""Many cases in one text: a JSON object, a JSON array or JSON Lines, each case in its place."""

from __future__ import annotations

import json
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg


def split_cases(content: bytes) -> list[Any]:
    """Each case in input order; a JSON line that cannot be read is an :class:`UnreadableFile` in its place."""
    text = _decode(content).strip()
    if not text:
        raise UnreadableFile(msg("The input is empty: give a JSON object, a JSON array or JSON Lines."))
    whole = _parse(text, 1)
    if not isinstance(whole, UnreadableFile):
        return whole if isinstance(whole, list) else [whole]
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    cases = [_parse(line, number) for number, line in numbered]
    if not any(isinstance(case, dict) for case in cases):
        raise whole
    return cases


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            msg("The input is not UTF-8 text (byte {position}): save it as UTF-8.", position=error.start)
        ) from error


def _parse(text: str, line: int) -> Any:
    """The JSON value, or what is wrong with it (syntax, nesting too deep, a number of thousands of digits)."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where, reason = line + error.lineno - 1, error.msg
    except (RecursionError, ValueError) as error:
        where, reason = line, str(error)
    return UnreadableFile(msg("Line {line} is not JSON ({reason}): correct it.", line=where, reason=reason))
