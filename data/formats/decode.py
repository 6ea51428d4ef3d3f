"""Bytes to text: which encoding a file has, and a sentence when it is no text at all."""

from __future__ import annotations

import codecs
import re

from calc.errors import UnreadableFile
from calc.messages import msg

MAX_FILE_BYTES = 200 * 10**6
"""Largest file read; a result file with every request's timings stays below 100 MB."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", None),
    (codecs.BOM_UTF16_LE, "utf-16", "encoding_utf16"),
    (codecs.BOM_UTF16_BE, "utf-16", "encoding_utf16"),
)

_BINARY_KINDS = (
    (b"\x89PNG", msg("PNG image")),
    (b"\xff\xd8\xff", msg("JPEG image")),
    (b"GIF8", msg("GIF image")),
    (b"%PDF", msg("PDF document")),
    (b"PK\x03\x04", msg("ZIP archive")),
    (b"PK\x05\x06", msg("ZIP archive without files")),
    (b"\xd0\xcf\x11\xe0", msg("workbook of an old Excel")),
    (b"\x1f\x8b", msg("gzip archive")),
    (b"SQLite format 3", msg("SQLite database")),
    (b"PAR1", msg("Parquet file")),
    (b"\x80\x04\x95", msg("Python pickle")),
    (b"\x80\x05\x95", msg("Python pickle")),
    (b"\x7fELF", msg("program")),
)
"""First bytes of files that people drop on an upload field. None of them is opened, a pickle least of all."""

_LONE_HIGH_BYTE = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")


def decode(content: bytes, name: str) -> tuple[str, str | None]:
    """The text of a file and a note code when it is not UTF-8.

    Order: byte order mark, strict UTF-8, GB18030 (Chinese Excel), Latin-1. GB18030 accepts almost any bytes, so a text
    whose high bytes all stand alone between ASCII letters ("Durée") is taken as Latin-1 instead.
    """
    refuse_size(content, name)
    refuse_binary(content, name)
    text, note = _decode(content, name)
    if "\x00" in text:
        raise UnreadableFile(
            msg("{file}: a text file was expected, but it holds NUL bytes: export it again as UTF-8 text.", file=name)
        )
    return text, note


def refuse_size(content: bytes, name: str) -> None:
    """Raise when a file is empty or too large to be read."""
    if not content or content.isspace():
        raise UnreadableFile(
            msg("{file}: a benchmark result was expected, but the file is empty: export it again.", file=name)
        )
    if len(content) > MAX_FILE_BYTES:
        raise UnreadableFile(
            msg(
                "{file}: at most {limit:count} bytes are read, this file has {size:count}: "
                "write it without per-request details.",
                file=name,
                limit=MAX_FILE_BYTES,
                size=len(content),
            )
        )


def refuse_binary(content: bytes, name: str) -> None:
    """Raise with the kind of file when its first bytes are those of something else than text."""
    for magic, kind in _BINARY_KINDS:
        if content.startswith(magic):
            raise UnreadableFile(
                msg(
                    "{file}: a JSON, CSV or metrics text was expected, this is a {kind}: export the table as CSV "
                    "or give the tool's own JSON.",
                    file=name,
                    kind=kind,
                )
            )


def _decode(content: bytes, name: str) -> tuple[str, str | None]:
    for mark, encoding, note in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            try:
                return content.decode(encoding), note
            except UnicodeDecodeError as error:
                raise UnreadableFile(
                    msg(
                        "{file}: its first bytes say {encoding}, but byte {position:count} is not: export it as UTF-8.",
                        file=name,
                        encoding=encoding,
                        position=error.start,
                    )
                ) from error
    for encoding, note in (("utf-8", None), ("gb18030", "encoding_gbk")):
        if encoding == "gb18030" and _is_latin1(content):
            continue
        try:
            return content.decode(encoding), note
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1"), "encoding_latin1"


def _is_latin1(content: bytes) -> bool:
    """True when no two high bytes stand side by side; Chinese characters need two."""
    return len(_LONE_HIGH_BYTE.findall(content)) == len(_HIGH_BYTE.findall(content))
