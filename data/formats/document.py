"""A file as the readers see it: decoded and parsed once, refused in one sentence when nothing can read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from data.formats.decode import decode, refuse_size
from data.formats.json_values import JsonValue, parse_values
from data.formats.large_json import LARGE_BYTES, StreamedValues, parse_large
from data.formats.packed import unpack
from data.formats.yaml_values import looks_like_yaml, parse_yaml
from data.records import RowProblem

SQLITE = b"SQLite format 3\x00"
"""First bytes of a database; only the reader of its tool opens it."""

_FIRST_BYTES = 100
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
Values: TypeAlias = tuple[JsonValue, ...] | StreamedValues


@dataclass(frozen=True, kw_only=True)
class Document:
    """Text of an uploaded file and, when it is JSON or YAML, its top-level values."""

    name: str
    text: str
    """Decoded; empty for a binary file that a reader opens itself (SQLite), and for large JSON."""
    content: bytes = b""
    """The bytes as they came, unpacked when they were packed with gzip."""
    notes: tuple[str, ...] = ()
    values: Values = ()
    """Top-level JSON or YAML values; empty when the text is neither."""
    problems: Sequence[RowProblem] = ()
    """Lines that could not be read; of a large file complete only after its values have been gone through."""

    @property
    def head(self) -> Sequence[JsonValue]:
        """The values in which a signature is looked for."""
        return self.values.head if isinstance(self.values, StreamedValues) else self.values


def open_document(content: bytes, name: str) -> Document:
    """Unpack, decode and parse an uploaded file."""
    content = unpack(content, name)
    if content.startswith(SQLITE):
        refuse_size(content, name)
        return Document(name=name, text="", content=content)
    if len(content) > LARGE_BYTES and content[:_FIRST_BYTES].lstrip(_BEFORE_JSON).startswith((b"{", b"[")):
        refuse_size(content, name)
        return _streamed(content, name)
    text, note = decode(content, name)
    notes = () if note is None else (note,)
    values, problems = _values(text, name)
    return Document(name=name, text=text, content=content, notes=notes, values=values, problems=problems)


def _streamed(content: bytes, name: str) -> Document:
    values = parse_large(content, name)
    return Document(name=name, text="", content=content, values=values, problems=values.problems)


def _values(text: str, name: str) -> tuple[tuple[JsonValue, ...], tuple[RowProblem, ...]]:
    """Values of JSON or YAML; none of a table, a metrics text or a log."""
    if text.lstrip().startswith(("{", "[")):
        return parse_values(text, name)
    return (parse_yaml(text, name) if looks_like_yaml(text) else ()), ()
