"""Readers of other tools' result files: one small file a tool, one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats import metrics_file, vllm_serve
from data.formats.columns import ColumnGuess, guesses
from data.formats.document import Document, open_document
from data.formats.fields import FIELD_CHOICES
from data.formats.generic_csv import read_table
from data.formats.record import records, to_record
from data.formats.table import find_table
from data.records import ReadResult

__all__ = [
    "FIELD_CHOICES",
    "READERS",
    "ColumnGuess",
    "Reader",
    "propose_columns",
    "read",
    "records",
    "to_record",
]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One tool's format: how to recognise it by content, and how to read it."""

    title: str
    looks_like: Callable[[Document], bool]
    read: Callable[[Document], ReadResult]


READERS: tuple[Reader, ...] = (
    Reader(title="vllm bench serve (JSON, JSON Lines, sweep)", looks_like=vllm_serve.looks_like, read=vllm_serve.read),
    Reader(title="metrics text (vLLM, SGLang, DCGM)", looks_like=metrics_file.looks_like, read=metrics_file.read),
)
"""Tools with a signature of their own, most specific first; the generic table is tried last."""

TABLE_TITLE = "a table with a header (CSV, tab, semicolon)"


def read(content: bytes, name: str, columns: Mapping[str, str] | None = None) -> ReadResult:
    """Read a result file of any known tool. The content decides which tool wrote it, never the name.

    ``columns`` corrects what the headers of a hand-made table seem to mean: header → ``ttft.p99:ms``, ``ignore`` …
    """
    document = open_document(content, name)
    reader = _reader(document) if columns is None else None
    if reader is not None:
        return reader.read(document)
    table = None if document.values else find_table(document.text, name)
    if table is None:
        raise _unknown(name)
    return read_table(document, table, columns)


def propose_columns(content: bytes, name: str) -> tuple[ColumnGuess, ...]:
    """What each column of a hand-made table seems to mean, to be shown and corrected before storing.

    Empty when there is nothing to ask: a tool's own format, or a file that :func:`read` refuses with its reason.
    """
    try:
        document = open_document(content, name)
        table = None if document.values or _reader(document) else find_table(document.text, name)
    except UnreadableFile:
        return ()
    return () if table is None else guesses(table)


def _reader(document: Document) -> Reader | None:
    return next((reader for reader in READERS if reader.looks_like(document)), None)


def _unknown(name: str) -> UnreadableFile:
    return UnreadableFile(
        msg(
            "{file}: expected {formats}; the content is none of them. Give the tool's own result file, or a table "
            "whose header names a latency or a throughput.",
            file=name,
            formats="; ".join((*(reader.title for reader in READERS), TABLE_TITLE)),
        )
    )
