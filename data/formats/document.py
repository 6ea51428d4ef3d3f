"""A file as the readers see it: decoded once, parsed as JSON once, refused in one sentence when it is neither."""

from __future__ import annotations

from dataclasses import dataclass

from data.formats.decode import decode
from data.formats.json_values import JsonValue, parse_values
from data.records import RowProblem


@dataclass(frozen=True, kw_only=True)
class Document:
    """Text of an uploaded file and, when it is JSON, its top-level values."""

    name: str
    text: str
    """Decoded; empty for a binary file that a reader opens itself (SQLite)."""
    content: bytes = b""
    """The bytes as they came."""
    notes: tuple[str, ...] = ()
    values: tuple[JsonValue, ...] = ()
    """Top-level JSON values; empty when the text is not JSON."""
    problems: tuple[RowProblem, ...] = ()


def open_document(content: bytes, name: str) -> Document:
    """Decode and parse an uploaded file."""
    text, note = decode(content, name)
    notes = () if note is None else (note,)
    if not text.lstrip().startswith(("{", "[")):
        return Document(name=name, text=text, content=content, notes=notes)
    values, problems = parse_values(text, name)
    return Document(name=name, text=text, content=content, notes=notes, values=values, problems=problems)
