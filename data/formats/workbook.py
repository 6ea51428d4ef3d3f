"""An Excel workbook as texts, one a sheet: values as they show, cached results of formulas, merged cells filled in.

Nothing in it is run: formulas are not computed, links not followed, pictures and macros not opened.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from typing import Any
from xml.etree.ElementTree import ParseError

from openpyxl import load_workbook
from openpyxl.utils.cell import range_boundaries
from openpyxl.utils.exceptions import InvalidFileException

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.decode import refuse_size
from data.formats.document import Document
from data.formats.table import MAX_COLUMNS, MAX_ROWS
from data.formats.zip_limits import ZIP, member_bytes, open_zip

MAX_SHEETS = 50
MAX_CELLS = 2_000_000
"""Most cells of one sheet, empty ones between filled ones included."""
MAX_UNPACKED_BYTES = 100 * 10**6
MAX_MERGED = 10_000
"""Most merged areas of a sheet that are filled in."""
_MAX_TITLE = 40
_PARTS = frozenset({"[Content_Types].xml", "xl/workbook.xml"})
_DECLARATIONS = (b"<!DOCTYPE", *("<!DOCTYPE".encode(utf_16) for utf_16 in ("utf-16-le", "utf-16-be")))
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s+ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
_MIDNIGHT = "T00:00:00"
_UNDECIDED = re.compile(r"-?\d{1,3}\.\d{3}")
"""In text, this could be thousands with a point; a number of Excel is not in doubt."""
_NOT_A_WORKBOOK = (
    InvalidFileException,
    ParseError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    zipfile.BadZipFile,
    OSError,
)
"""What openpyxl raises for parts of a workbook that are missing or not as they should be."""
Cells = list[list[str]]


def is_workbook(content: bytes, name: str) -> bool:
    """True for an Excel workbook (xlsx, xlsm); any other content, other archives included, is not."""
    if not content.startswith(ZIP):
        return False
    with open_zip(content, name) as archive:
        return _PARTS.issubset(archive.namelist())


def open_workbook(content: bytes, name: str) -> tuple[Document, ...]:
    """Every sheet that holds anything, hidden ones too, as comma-separated text whose lines are the sheet's rows."""
    refuse_size(content, name)
    with open_zip(content, name, max_bytes=MAX_UNPACKED_BYTES) as archive:
        _refuse_entities(archive, name)
        try:
            book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
            with_cells = [(sheet.title, _cells(archive, sheet, name)) for sheet in book.worksheets[:MAX_SHEETS]]
        except _NOT_A_WORKBOOK as error:
            raise UnreadableFile(
                msg("{file}: an Excel workbook was expected, but it is damaged: save it again.", file=name)
            ) from error
    sheets = ((title, _text(cells)) for title, cells in with_cells if cells)
    return tuple(
        Document(name=f"{name} [{_title(title)}]", text=text, content=text.encode(errors="replace"))
        for title, text in sheets
    )


def _refuse_entities(archive: zipfile.ZipFile, name: str) -> None:
    """No workbook declares a document type; those that do want to exhaust memory or to read other files."""
    for member in archive.infolist():
        if not member.filename.endswith((".xml", ".rels")):
            continue
        content = member_bytes(archive, member, name)
        if any(declaration in content for declaration in _DECLARATIONS):
            raise UnreadableFile(
                msg(
                    "{file}: an Excel workbook was expected, this one declares a document type: save it again.",
                    file=name,
                )
            )


def _title(title: str) -> str:
    return "".join(letter for letter in str(title) if letter.isprintable())[:_MAX_TITLE]


def _cells(archive: zipfile.ZipFile, sheet: Any, name: str) -> Cells:
    """The texts of a sheet up to its last filled row."""
    cells = list(_rows(sheet, name))
    while cells and not any(cells[-1]):
        cells.pop()
    # The read-only sheet knows where its XML stands but not which cells are merged.
    source = member_bytes(archive, archive.getinfo(sheet._worksheet_path), name)
    for match in list(_MERGED.finditer(source))[:MAX_MERGED]:
        _fill(cells, range_boundaries(match.group(1).decode()))
    return cells


def _rows(sheet: Any, name: str) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # what the file claims about its size is not to be trusted
    count = 0
    for row in sheet.iter_rows(max_row=MAX_ROWS + 1):
        texts = [_shown(cell) for cell in row[:MAX_COLUMNS]]
        if any(cell.value is not None for cell in row[MAX_COLUMNS:]):
            raise UnreadableFile(
                msg("{file}: at most {limit:count} columns are read: remove some.", file=name, limit=MAX_COLUMNS)
            )
        while texts and not texts[-1]:
            texts.pop()
        count += len(texts)
        if count > MAX_CELLS:
            raise UnreadableFile(
                msg("{file}: at most {limit:count} cells of a sheet are read: split it.", file=name, limit=MAX_CELLS)
            )
        yield texts


def _shown(cell: Any) -> str:
    """A cell's text without line breaks: a share in percent where the sheet shows it so, a date as ISO."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return _number(value, percent="%" in str(cell.number_format))
    if isinstance(value, datetime | date | time):
        return value.isoformat().removesuffix(_MIDNIGHT)
    return " ".join(str(value).split())


def _number(value: float, *, percent: bool) -> str:
    if percent:
        return f"{value * 100:.10g}%"
    text = f"{value:.15g}"
    return f"{text}0" if _UNDECIDED.fullmatch(text) else text


def _fill(cells: Cells, area: Sequence[int | None]) -> None:
    """Put the text of a merged area's first cell into all of its cells, as far as the sheet has rows."""
    left, top, right, bottom = (side or 1 for side in area)
    if top > len(cells) or left > len(cells[top - 1]):
        return
    text = cells[top - 1][left - 1]
    for row in cells[top - 1 : bottom]:
        width = min(right, MAX_COLUMNS)
        row.extend("" for _ in range(width - len(row)))
        row[left - 1 : width] = [text] * (width - left + 1)


def _text(cells: Cells) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(row or [""] for row in cells)
    return text.getvalue()
