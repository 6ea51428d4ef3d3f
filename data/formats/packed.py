"""A single file packed with gzip (``.json.gz``): opened up to a size and a ratio, never written anywhere."""

from __future__ import annotations

import zlib

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.decode import MAX_FILE_BYTES

GZIP = b"\x1f\x8b"
MAX_RATIO = 250
"""Unpacked bytes per packed byte. Result files reach about 30; a file made to exhaust memory reaches 1000."""
ALWAYS_UNPACKED_BYTES = 4 * 10**6
"""Up to here the ratio does not matter: short files of one repeated line pack very well."""
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_TAR_MARK = slice(257, 262)


def unpack(content: bytes, name: str) -> bytes:
    """The file inside a gzip stream; any other content as it is."""
    if not content.startswith(GZIP):
        return content
    unpacked = _inflate(content, name)
    if unpacked[_TAR_MARK] == b"ustar":
        raise UnreadableFile(
            msg("{file}: one packed file was expected, this is an archive (tar): pack its files as ZIP.", file=name)
        )
    return unpacked


def _inflate(content: bytes, name: str) -> bytes:
    limit = min(MAX_FILE_BYTES, max(ALWAYS_UNPACKED_BYTES, MAX_RATIO * len(content)))
    opened = zlib.decompressobj(_GZIP_WINDOW)
    try:
        unpacked = opened.decompress(content, limit + 1)
    except zlib.error as error:
        raise _damaged(name) from error
    if len(unpacked) > limit:
        raise UnreadableFile(
            msg(
                "{file}: at most {limit:count} bytes are unpacked from a gzip file of this size, it holds more: "
                "give a smaller file.",
                file=name,
                limit=limit,
            )
        )
    if not opened.eof:
        raise _damaged(name)
    return unpacked


def _damaged(name: str) -> UnreadableFile:
    return UnreadableFile(
        msg("{file}: a gzip file was expected, but it breaks off or is damaged: copy it again.", file=name)
    )
