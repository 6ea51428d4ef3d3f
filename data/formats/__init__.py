"""Readers of other tools' result files: one small file a tool, one signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats import engine_tools, load_tools, startup_log
from data.formats.columns import ColumnGuess, guesses
from data.formats.decode import refuse_binary
from data.formats.document import Document, open_document
from data.formats.fields import FIELD_CHOICES
from data.formats.generic_csv import read_table
from data.formats.other_tools import name_of_tool
from data.formats.packed import unpack
from data.formats.reader import Reader
from data.formats.record import records, to_record
from data.formats.sheets import read_sheets
from data.formats.table import Table, begins_with_header, find_table
from data.formats.workbook import is_workbook, open_workbook
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


_HEAD_BYTES = 4096
READERS: tuple[Reader, ...] = (*engine_tools.READERS, *load_tools.READERS)
"""Tools with a signature of their own, most specific first; the generic table is tried last."""


def read(content: bytes, name: str, columns: Mapping[str, str] | None = None) -> ReadResult:
    """Read a result file of any known tool. The content decides which tool wrote it, never the name.

    ``columns`` corrects what the headers of a hand-made table seem to mean: header → ``ttft.p99:ms``, ``ignore`` …
    """
    content = unpack(content, name)
    if columns is None and _is_startup_log(content):
        return startup_log.read(content, name)
    if is_workbook(content, name):
        return _read_workbook(open_workbook(content, name), name, columns)
    document = open_document(content, name)
    reader = _reader(document) if columns is None else None
    if reader is not None:
        return reader.read(document)
    return read_table(document, _table(document), columns)


def _is_startup_log(content: bytes) -> bool:
    """True for an engine's log; a table of results may tell of a GPU out of memory too, but begins with its header."""
    return startup_log.looks_like(content) and not begins_with_header(content[:_HEAD_BYTES].decode(errors="ignore"))


def _read_workbook(sheets: Sequence[Document], name: str, columns: Mapping[str, str] | None) -> ReadResult:
    """Each sheet by the reader of its tool, else as a table; corrections count for every sheet with that column."""
    given = columns or {}

    def read_sheet(sheet: Document) -> ReadResult:
        reader = _reader(sheet)
        if reader is not None:
            return reader.read(sheet)
        table = _table(sheet)
        return read_table(sheet, table, {header: given[header] for header in table.headers if header in given})

    return read_sheets(sheets, name, read_sheet)


def propose_columns(content: bytes, name: str) -> tuple[ColumnGuess, ...]:
    """What each column of a hand-made table seems to mean, to be shown and corrected before storing.

    Empty when there is nothing to ask: a tool's own format, or a file that :func:`read` refuses with its reason.
    """
    found: dict[str, ColumnGuess] = {}
    try:
        content = unpack(content, name)
        if _is_startup_log(content):
            return ()
        book = is_workbook(content, name)
        for document in open_workbook(content, name) if book else (open_document(content, name),):
            for guess in _guesses(document):
                found.setdefault(guess.header, guess)
    except UnreadableFile:
        return ()
    return tuple(found.values())


def _guesses(document: Document) -> tuple[ColumnGuess, ...]:
    try:
        return () if _reader(document) else guesses(_table(document))
    except UnreadableFile:
        return ()


def _reader(document: Document) -> Reader | None:
    return next((reader for reader in READERS if reader.looks_like(document)), None)


def _table(document: Document) -> Table:
    """The hand-made table in a file, or the reason why there is none."""
    if not document.text:
        refuse_binary(document.content, document.name)
    tools = ", ".join(dict.fromkeys(reader.title for reader in READERS))
    other = name_of_tool(document)
    if other is not None:
        raise UnreadableFile(
            msg(
                "{file}: results of {tools} or a table of your own were expected, this is a file of {other}, which is "
                "not read: copy its figures into a table whose headers name units.",
                file=document.name,
                tools=tools,
                other=other,
            )
        )
    table = None if document.values else find_table(document.text, document.name)
    if table is None:
        raise UnreadableFile(
            msg(
                "{file}: results of {tools} were expected, or a table (CSV) whose header names a latency or a "
                "throughput; the content is neither: give the tool's own result file.",
                file=document.name,
                tools=tools,
            )
        )
    return table
