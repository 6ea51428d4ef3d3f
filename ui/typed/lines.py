"""Lines of the form ``name value …``: the name may hold spaces, or any sign in double quotes; ``;`` ends a line too."""

from __future__ import annotations

import json
import re

from calc.errors import InputError
from calc.messages import Message, msg
from ui.typed.numbers import quoted

MAX_LINE_CHARACTERS = 500
MAX_LINES = 64
_PIECES = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"|[^;；\n])+')
_NAMED = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|(.*?))\s+(?=[\d.])(.*)')
_WORD = r'[^\s;；"\\%％\d.][^\s;；"\\%％]*'
_PLAIN_NAME = re.compile(f"{_WORD}(?: {_WORD})*")


def split_lines(text: str) -> list[str]:
    """The lines that hold something."""
    lines = [line.strip() for line in _PIECES.findall(text) if line.strip()]
    if len(lines) > MAX_LINES:
        raise InputError(
            msg(
                "{number:count} lines are more than the {limit} read here: take fewer.",
                number=len(lines),
                limit=MAX_LINES,
            )
        )
    return lines


def name_and_rest(line: str, example: Message) -> tuple[str, str]:
    """The name before the first number, and what follows."""
    found = _NAMED.fullmatch(line) if len(line) <= MAX_LINE_CHARACTERS else None
    if found is None or not (found[1] or found[2]):
        raise wrong(line, example)
    if found[1] is None:
        return found[2], found[3]
    try:
        return str(json.loads(f'"{found[1]}"')), found[3]
    except json.JSONDecodeError as error:
        raise wrong(line, example) from error


def wrong(piece: str, example: Message) -> InputError:
    """A sentence naming the piece, with a line that would be right."""
    return InputError(msg("{piece} is not understood: write {example}.", piece=quoted(piece), example=example))


def written_name(name: str) -> str:
    """The name as :func:`name_and_rest` reads it, in quotes where it holds a number or a sign that ends it."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)
