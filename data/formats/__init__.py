"""Readers of other tools' result files: one small file a tool, one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats import vllm_serve
from data.formats.document import Document, open_document
from data.formats.record import records, to_record
from data.records import ReadResult

__all__ = ["READERS", "Reader", "read", "records", "to_record"]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One tool's format: how to recognise it by content, and how to read it."""

    title: str
    looks_like: Callable[[Document], bool]
    read: Callable[[Document], ReadResult]


READERS: tuple[Reader, ...] = (
    Reader(title="vllm bench serve (JSON, JSON Lines, sweep)", looks_like=vllm_serve.looks_like, read=vllm_serve.read),
)
"""Tools with a signature of their own, most specific first; the generic table is tried last."""


def read(content: bytes, name: str, columns: Mapping[str, str] | None = None) -> ReadResult:
    """Read a result file of any known tool. The content decides which tool wrote it, never the name."""
    document = open_document(content, name)
    for reader in READERS:
        if reader.looks_like(document):
            return reader.read(document)
    raise UnreadableFile(
        msg(
            "{file}: expected one of {formats}; this file has none of their keys. Give the tool's own result file.",
            file=name,
            formats="; ".join(reader.title for reader in READERS),
        )
    )
