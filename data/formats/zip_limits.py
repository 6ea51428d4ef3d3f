"""A ZIP file opened only when what it claims to hold is bounded: members, bytes, ratio; nothing encrypted."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.packed import ALWAYS_UNPACKED_BYTES, MAX_RATIO

ZIP = b"PK\x03\x04"
MAX_MEMBERS = 2_000
MAX_TOTAL_BYTES = 400 * 10**6
"""Most bytes of all members of one archive together."""
_ENCRYPTED = 0x1
"""Bit of a member's flags (APPNOTE.TXT 4.4.4)."""
_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    OSError,
    struct.error,
)
"""What the standard library raises for archives that are damaged or made by hand."""


def open_zip(content: bytes, name: str, *, max_bytes: int = MAX_TOTAL_BYTES) -> zipfile.ZipFile:
    """The archive; its members never give more bytes than they claim, so that checking the claims is enough."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except _DAMAGES as error:
        raise _damaged(name) from error
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise UnreadableFile(
            msg(
                "{file}: at most {limit:count} files of an archive are read, it holds {count:count}: split it.",
                file=name,
                limit=MAX_MEMBERS,
                count=len(members),
            )
        )
    total = sum(member.file_size for member in members)
    limit = min(max_bytes, max(ALWAYS_UNPACKED_BYTES, MAX_RATIO * len(content)))
    if total > limit:
        raise UnreadableFile(
            msg(
                "{file}: at most {limit:count} bytes are unpacked from this archive, it holds {total:count}: "
                "split it or leave details out.",
                file=name,
                limit=limit,
                total=total,
            )
        )
    return archive


def member_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    """The content of one member."""
    if member.flag_bits & _ENCRYPTED:
        raise UnreadableFile(msg("{file}: it is encrypted: pack it without a password.", file=name))
    try:
        return archive.read(member)
    except _DAMAGES as error:
        raise _damaged(name) from error


def _damaged(name: str) -> UnreadableFile:
    return UnreadableFile(
        msg("{file}: a ZIP archive was expected, but it breaks off or is damaged: pack it again.", file=name)
    )
