"""Files, folders and archives given to the command line: each file they hold, in order, ready to be answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calc.errors import PlimsollError
from data.formats.bundle import BundleItem, read_files
from data.formats.bundle_files import GivenFile, clean_path, files_of, folder_files
from data.formats.workbook import is_workbook
from data.formats.zip_limits import ZIP
from data.store import content_id


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """A file of a folder or an archive, read together with those beside it."""

    shown: str
    """Its path with that of the folder or archive before it."""
    root: str
    item: BundleItem


def found_files(paths: Sequence[Path]) -> Iterator[Path | FoundFile]:
    """Single files as they are; folders and archives as the files they hold."""
    for path in paths:
        given = _given(path)
        if given is None:
            yield path
            continue
        root = str(path) if path.is_dir() else str(path.parent)
        for item in read_files(files_of(given)):
            yield FoundFile(shown=str(Path(root) / item.path), root=root, item=item)


def outline(found: FoundFile) -> dict[str, Any]:
    """What became of the file among the others, as far as there is something to say."""
    item = found.item
    said = {
        "left_out": None if item.left_out is None else str(item.left_out),
        "belongs_to": item.belongs_to and str(Path(found.root) / item.belongs_to),
        "same_as": item.same_as and str(Path(found.root) / item.same_as),
        "companions": [str(Path(found.root) / file.path) for file in item.companions] or None,
        "suggested": dict(item.suggestions) or None,
    }
    return {key: value for key, value in said.items() if value is not None}


def reading_id(item: BundleItem, columns: Mapping[str, str] | None = None) -> str:
    """Id under which what was read is stored: of the file, its column meanings, and the companions added to it."""
    joined = {file.name: content_id(file.load()) for file in item.companions}
    return content_id(item.file.load(), {**(columns or {}), **joined})


def _given(path: Path) -> Iterator[GivenFile] | None:
    """The files of a folder, or an archive as the one file it is; ``None`` for any other file."""
    if path.is_dir():
        return folder_files(path)
    if not path.is_file() or not _is_archive(path):
        return None
    return iter([GivenFile(path=clean_path(path.name), size_bytes=path.stat().st_size, load=path.read_bytes)])


def _is_archive(path: Path) -> bool:
    """A damaged one is none: as a single file it is refused with the reason."""
    with path.open("rb") as file:
        if file.read(len(ZIP)) != ZIP:
            return False
    try:
        return not is_workbook(path.read_bytes(), path.name)
    except PlimsollError:
        return False
