"""Files given together: uploads, a folder, archives. What is no result is named and left out.

A path is for the reader's eyes and for finding neighbours only: nothing is written by it, and nothing is unpacked to
disk.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from calc.errors import PlimsollError, UnreadableFile
from calc.messages import Message, msg
from data.formats.decode import MAX_FILE_BYTES
from data.formats.workbook import is_workbook
from data.formats.zip_limits import MAX_TOTAL_BYTES, ZIP, member_bytes, open_zip

MAX_FILES = 1_000
"""Most files of one folder, archive or upload."""
MAX_DEPTH = 12
"""Folders within folders; deeper ones are left out."""
_MAX_PATH = 300
_MAX_NAME = 120
_UTF8_NAMES = 0x800
"""Bit of a member's flags: its name is UTF-8 (APPNOTE.TXT 4.4.4)."""
_JUNK = frozenset({"__macosx", "thumbs.db", "desktop.ini"})
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".pdf", ".ico", ".mp4"})
_PROGRAMS = frozenset({".py", ".sh", ".js", ".css", ".html", ".htm", ".ipynb", ".pkl", ".pyc", ".so", ".pt", ".bin"})
_TWINS = ".pytorch.json"
"""A second form of a result that lies beside it."""


@dataclass(frozen=True, kw_only=True)
class GivenFile:
    """A file that may be read: its content comes only when it is asked for."""

    path: str
    """With ``/`` between folders; cleaned of everything that is not printable or leads elsewhere."""
    size_bytes: int = 0
    load: Callable[[], bytes]
    left_out: Message | None = None
    """Why it is not read."""
    error: Message | None = None
    """Why it cannot be read."""
    chosen: bool = False
    """Given by hand, one by one: it is read or refused, never left out."""

    @property
    def name(self) -> str:
        """Without folders."""
        return PurePosixPath(self.path).name

    @property
    def folder(self) -> str:
        """The folders it lies in; empty at the top."""
        parent = str(PurePosixPath(self.path).parent)
        return "" if parent == "." else parent


def given(content: bytes, path: str) -> GivenFile:
    """One uploaded file."""
    return GivenFile(path=clean_path(path), size_bytes=len(content), load=lambda: content)


def files_of(files: Iterable[GivenFile]) -> Iterator[GivenFile]:
    """Every file, archives opened one level deep, within a number and a total size; the rest is refused."""
    total = 0
    seen: Counter[str] = Counter()
    for file in files:
        for member in _members(file):
            seen[member.path] += 1
            total += member.size_bytes
            if seen.total() > MAX_FILES or total > MAX_TOTAL_BYTES:
                yield _too_much(file)
                return
            yield _judged(_told_apart(member, seen[member.path]))


def _told_apart(file: GivenFile, times: int) -> GivenFile:
    """The same path a second time gets a number: a path names one file."""
    return file if times == 1 else replace(file, path=f"{file.path} ({times})")


def folder_files(folder: Path) -> Iterator[GivenFile]:
    """Every file below a folder in order of its path; links are not followed."""
    for path in sorted(folder.rglob("*")):
        shown = clean_path(str(path.relative_to(folder)))
        if path.is_symlink():
            yield GivenFile(path=shown, load=bytes, left_out=msg("a link, which is not followed"))
        elif path.is_file():
            yield GivenFile(path=shown, size_bytes=path.stat().st_size, load=partial(_file_bytes, path))


def clean_path(path: str) -> str:
    """A path to show: no drive, no ``..``, nothing unprintable, of bounded length."""
    parts = (_clean_part(part) for part in path.replace("\\", "/").split("/"))
    kept = [part for part in parts if part and not part.endswith(":") and part.strip(".")]
    return "/".join(kept)[-_MAX_PATH:] or "file"


def _clean_part(part: str) -> str:
    name = "".join(letter if letter.isprintable() else "_" for letter in part).strip()
    return name if len(name) <= _MAX_NAME else name[: _MAX_NAME // 2] + "…" + name[-_MAX_NAME // 2 :]


def _file_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableFile(
            msg("The file {file} cannot be opened ({reason}): check its path.", file=path.name, reason=error.strerror)
        ) from error


def _members(file: GivenFile) -> Iterator[GivenFile]:
    """The files of an archive; any other file is its own only member."""
    try:
        content = file.load() if _may_be_archive(file) else b""
        if not content.startswith(ZIP) or is_workbook(content, file.path):
            yield file
            return
        archive = open_zip(content, file.path)
    except PlimsollError as error:
        yield replace(file, error=error.message)
        return
    for member in archive.infolist():
        if not member.is_dir():
            path = clean_path(f"{file.path}/{_member_name(member)}")
            yield GivenFile(
                path=path,
                size_bytes=member.file_size,
                load=partial(member_bytes, archive, member, path),
            )


def _may_be_archive(file: GivenFile) -> bool:
    return _left_out(file) is None and file.size_bytes <= MAX_FILE_BYTES


def _member_name(member: zipfile.ZipInfo) -> str:
    """The name as it was meant: Windows in Chinese writes GB18030 where the format says otherwise."""
    if member.flag_bits & _UTF8_NAMES or member.filename.isascii():
        return member.filename
    for encoding in ("utf-8", "gb18030"):
        try:
            return member.filename.encode("cp437").decode(encoding)
        except (UnicodeEncodeError, UnicodeDecodeError):
            continue
    return member.filename


def _judged(file: GivenFile) -> GivenFile:
    """With the reason why it is not read, if there is one."""
    if file.left_out is None and file.error is None and not file.chosen:
        return replace(file, left_out=_left_out(file))
    return file


def _left_out(file: GivenFile) -> Message | None:
    parts = PurePosixPath(file.path.lower()).parts
    suffix = PurePosixPath(parts[-1]).suffix
    if any(part in _JUNK or part.startswith(".") for part in parts):
        return msg("a hidden file or one of the operating system")
    if suffix in _PICTURES or suffix in _PROGRAMS:
        return msg("a picture, a document or a program")
    if parts[-1].endswith(_TWINS):
        return msg("a second form of the result beside it")
    if not file.size_bytes:
        return msg("empty")
    return msg("too many folders within folders") if len(parts) > MAX_DEPTH else None


def _too_much(file: GivenFile) -> GivenFile:
    return GivenFile(
        path=file.path,
        load=bytes,
        error=msg(
            "{file}: at most {files:count} files of {bytes:count} bytes together are read at once, the others are left "
            "out from here on: give fewer.",
            file=file.path,
            files=MAX_FILES,
            bytes=MAX_TOTAL_BYTES,
        ),
    )
