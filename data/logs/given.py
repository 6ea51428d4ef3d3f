"""A request log as it is given: its name, its size, its bytes one after another, and its first ones unpacked."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from calc.errors import UnreadableFile
from calc.messages import Message, msg

HEAD_BYTES = 512 * 1024
"""Looked at to understand a file: some thousand rows of a CSV, some hundred of a trace with block hashes."""
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
_OTHERS = (
    (b"PK\x03\x04", msg("zip archive or Excel workbook")),
    (b"\xd0\xcf\x11\xe0", msg("workbook of an old Excel")),
    (b"SQLite format 3", msg("SQLite database")),
    (b"%PDF", msg("PDF document")),
    (b"\x89PNG", msg("picture")),
    (b"\xff\xd8\xff", msg("picture")),
    (b"\x28\xb5\x2f\xfd", msg("Zstandard archive")),
    (b"BZh", msg("bzip2 archive")),
    (b"\xfd7zXZ", msg("xz archive")),
    (b"\x80\x04\x95", msg("Python pickle")),
    (b"\x80\x05\x95", msg("Python pickle")),
    (b"\x7fELF", msg("program")),
)
"""First bytes of files that are no log."""


@dataclass(frozen=True, kw_only=True)
class GivenLog:
    """A file that may be opened any number of times."""

    name: str
    size_bytes: int
    opened: Callable[[], BinaryIO]

    @staticmethod
    def of_bytes(content: bytes, name: str) -> GivenLog:
        """An upload."""
        return GivenLog(name=name, size_bytes=len(content), opened=lambda: io.BytesIO(content))

    @staticmethod
    def of_path(path: Path) -> GivenLog:
        """A file of this machine."""
        try:
            if not path.is_file():
                raise UnreadableFile(msg("{file}: a request log was expected, there is no such file.", file=str(path)))
            return GivenLog(name=path.name, size_bytes=path.stat().st_size, opened=lambda: path.open("rb"))
        except OSError as error:
            raise UnreadableFile(
                msg("{file}: the file cannot be opened ({reason}).", file=str(path), reason=error.strerror)
            ) from error

    def head(self) -> bytes:
        """The first bytes, unpacked; a file that cannot be a log is refused in words."""
        with self.opened() as raw:
            first = raw.read(HEAD_BYTES)
        if not first.strip():
            raise UnreadableFile(msg("{file}: a request log was expected, but the file is empty.", file=self.name))
        if first.startswith(GZIP):
            return self._unpacked_head()
        for magic, kind in _OTHERS:
            if first.startswith(magic):
                raise UnreadableFile(
                    msg(
                        "{file}: a request log as CSV, TSV, JSON Lines or Parquet was expected, plain or gzipped; this "
                        "is a {kind}: export it as one of these.",
                        file=self.name,
                        kind=kind,
                    )
                )
        return first

    @property
    def is_packed(self) -> bool:
        """Whether it is gzipped."""
        with self.opened() as raw:
            return raw.read(len(GZIP)) == GZIP

    def _unpacked_head(self) -> bytes:
        try:
            with self.opened() as raw, gzip.open(raw) as unpacked:
                return unpacked.read(HEAD_BYTES)
        except GZIP_ERRORS as error:
            raise broken_gzip(self.name) from error


GZIP_ERRORS = (OSError, EOFError, zlib.error)
"""What unpacking a broken gzip file raises."""


def broken_gzip(name: str) -> UnreadableFile:
    """The sentence for a gzip file that ends or goes wrong in the middle."""
    return UnreadableFile(msg("{file}: the gzip archive is broken or cut off: copy the file again.", file=name))


def reason_of(error: Exception) -> Message:
    """The first line of what a library says, short."""
    return msg("{reason}", reason=str(error).splitlines()[0][:120] if str(error) else type(error).__name__)
