"""A log on its way into the database: chunk by chunk to UTF-8 with plain line ends, unpacked, hashed, bounded."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from calc.errors import PlimsollError, UnreadableFile
from calc.messages import msg
from data.logs.given import GZIP_ERRORS, PARQUET, GivenLog, broken_gzip
from data.store.incoming import incoming_file

CHUNK_BYTES = 1 << 20
MAX_TEXT_BYTES = 32 * 10**9
"""Largest log brought in, unpacked: two hundred million rows of 150 bytes."""
MAX_RATIO = 200
"""Most bytes out of one of a gzip archive: logs pack 5 to 30 times, a block of zeros 1000 times."""
SPARE_BYTES = 512 * 10**6
"""Room to leave on the disk."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_ENCODINGS = ("utf-8", "gb18030", "latin-1")
"""Tried in this order where no byte order mark says otherwise; every file is valid Latin-1."""

Tell = Callable[[int], None]
"""Told how many bytes of the file have been read so far; raises to stop."""


class Cancelled(PlimsollError):
    """The visitor no longer wants the file."""

    def __init__(self) -> None:
        super().__init__(msg("The load was cancelled: nothing of it was kept."))


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """The file as the database may read it."""

    path: Path
    log_id: str
    """SHA-256 of the content as given, and of the meanings a user gave its columns."""
    encoding: str
    quoted: bool
    """Whether it holds a double quote anywhere."""


@contextmanager
def brought_in(
    given: GivenLog, folder: Path, declared: Mapping[str, str], tell: Tell = lambda _: None
) -> Iterator[Incoming]:
    """The log as a UTF-8 or Parquet file in ``folder``, there only within the block."""
    _refuse_full_disk(given, folder)
    with incoming_file(folder) as path:
        digest, encoding, quoted = _transcode(given, path, tell)
        if declared:
            digest.update(json.dumps(dict(declared), sort_keys=True, ensure_ascii=False).encode())
        yield Incoming(path=path, log_id=digest.hexdigest(), encoding=encoding, quoted=quoted)


def decoded_head(head: bytes, name: str) -> str:
    """The first bytes as text; the last line may be cut."""
    for encoding in _candidates(head):
        try:
            return _checked(codecs.getincrementaldecoder(encoding)().decode(head), name)
        except UnicodeDecodeError:
            continue
    raise AssertionError("every file is valid Latin-1")


def _candidates(head: bytes) -> tuple[str, ...]:
    return next(((encoding,) for mark, encoding in _MARKS if head.startswith(mark)), _ENCODINGS)


def _transcode(given: GivenLog, path: Path, tell: Tell) -> tuple[hashlib._Hash, str, bool]:
    head = given.head()
    if head.startswith(PARQUET):
        return _copied(given, path, tell), "binary", False
    for encoding in _candidates(head):
        try:
            digest, quoted = _as_utf8(given, path, encoding, tell)
        except UnicodeDecodeError:
            continue
        return digest, encoding, quoted
    raise UnreadableFile(
        msg("{file}: its first bytes say UTF-16, but the rest is not: export it as UTF-8.", file=given.name)
    )


def _copied(given: GivenLog, path: Path, tell: Tell) -> hashlib._Hash:
    digest = hashlib.sha256()
    with path.open("wb") as target:
        for chunk in _chunks(given, digest, tell):
            target.write(chunk)
    return digest


def _as_utf8(given: GivenLog, path: Path, encoding: str, tell: Tell) -> tuple[hashlib._Hash, bool]:
    digest, quoted = hashlib.sha256(), False
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
    with path.open("wb") as target:
        for chunk in _chunks(given, digest, tell):
            quoted = quoted or b'"' in chunk
            plain = encoding == "utf-8" and chunk.isascii() and b"\r" not in chunk and not _is_open(decoder)
            clean = chunk if plain else decoder.decode(chunk).encode()
            if b"\x00" in clean:
                raise _holds_nul(given.name)
            target.write(clean)
        target.write(decoder.decode(b"", final=True).encode())
    return digest, quoted


def _is_open(decoder: io.IncrementalNewlineDecoder) -> bool:
    """Whether the last chunk ended within a character or between the two signs of a line end."""
    return decoder.getstate() != (b"", 0)


def _checked(text: str, name: str) -> str:
    if "\x00" in text:
        raise _holds_nul(name)
    return text


def _holds_nul(name: str) -> UnreadableFile:
    return UnreadableFile(
        msg("{file}: a text file was expected, but it holds NUL bytes: export it again as UTF-8 text.", file=name)
    )


def _chunks(given: GivenLog, digest: hashlib._Hash, tell: Tell) -> Iterator[bytes]:
    """The file piece by piece, unpacked; what was read is hashed and told."""
    unpacked_bytes = 0
    with given.opened() as raw:
        watched = _Watched(raw, digest, tell)
        packed = given.is_packed
        source = cast(BinaryIO, gzip.GzipFile(fileobj=cast(BinaryIO, watched))) if packed else watched
        try:
            while chunk := source.read(CHUNK_BYTES):
                unpacked_bytes += len(chunk)
                _refuse_bomb(given, unpacked_bytes, watched.read_bytes)
                yield chunk
        except GZIP_ERRORS as error:
            if not packed:
                raise
            raise broken_gzip(given.name) from error


class _Watched:
    """A file that counts and hashes what is read of it."""

    def __init__(self, raw: BinaryIO, digest: hashlib._Hash, tell: Tell) -> None:
        self._raw, self._digest, self._tell = raw, digest, tell
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._raw.read(size)
        self._digest.update(chunk)
        self.read_bytes += len(chunk)
        self._tell(self.read_bytes)
        return chunk


def _refuse_bomb(given: GivenLog, unpacked_bytes: int, read_bytes: int) -> None:
    if unpacked_bytes > MAX_TEXT_BYTES or unpacked_bytes > MAX_RATIO * (read_bytes + CHUNK_BYTES):
        raise UnreadableFile(
            msg(
                "{file}: it unpacks to more than {limit:count} bytes or {ratio:count} times its size: split it into "
                "parts.",
                file=given.name,
                limit=MAX_TEXT_BYTES,
                ratio=MAX_RATIO,
            )
        )


def _refuse_full_disk(given: GivenLog, folder: Path) -> None:
    place = next(path for path in (folder, *folder.parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    if given.size_bytes + SPARE_BYTES > free:
        raise UnreadableFile(
            msg(
                "{file}: {size:count} bytes do not fit beside the database, where {free:count} are free: free some "
                "disk space.",
                file=given.name,
                size=given.size_bytes,
                free=free,
            )
        )
