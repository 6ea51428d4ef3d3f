"""Uploaded files read once: what was understood is kept while somebody looks at it and corrects columns."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from data.formats import ColumnGuess, propose_columns
from data.formats.bundle import BundleItem, Columns, read_files
from data.formats.bundle_files import GivenFile, clean_path, files_of
from ui.text import t

KEPT = 4
"""Readings kept; one holds the files that it was read from."""
SHOWN_BYTES = 2 * 10**6
"""From here on a progress bar is worth its place."""
Found = TypeVar("Found")
Mark = tuple[str, ...]
"""Which uploads, in order; a new upload of the same file has another id."""


class Shelf:
    """The last few readings, for all visitors; the oldest is dropped first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, object] = OrderedDict()

    def get(self, key: object, make: Callable[[], Found]) -> Found:
        """What is kept under ``key``, else made now. Two visitors who ask at once may both make it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]  # type: ignore[return-value]  # a key stands for one kind of thing
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made


@st.cache_resource(show_spinner=False)
def _shelf() -> Shelf:
    return Shelf()


def mark_of(uploads: Sequence[UploadedFile]) -> Mark:
    """What tells these uploads from others."""
    return tuple(upload.file_id for upload in uploads)


def read_uploads(uploads: Sequence[UploadedFile], columns: Columns) -> tuple[BundleItem, ...]:
    """What became of every file, archives opened; corrected columns are part of the question."""
    corrected = tuple(sorted((path, tuple(sorted(given.items()))) for path, given in columns.items()))
    return _shelf().get((mark_of(uploads), corrected), lambda: _read(uploads, columns))


def _read(uploads: Sequence[UploadedFile], columns: Columns) -> tuple[BundleItem, ...]:
    files = [
        GivenFile(path=path, size_bytes=upload.size, load=upload.getvalue, chosen="/" not in path)
        for upload in uploads
        if (path := clean_path(upload.name))
    ]
    if sum(file.size_bytes for file in files) < SHOWN_BYTES:
        return read_files(files_of(files), columns)
    found = list(files_of(files))
    total = sum(file.size_bytes for file in found) or 1
    sizes = {file.path: file.size_bytes for file in found}
    bar = st.progress(0.0)
    done = 0

    def tell(path: str) -> None:
        nonlocal done
        bar.progress(min(1.0, done / total), t("Reading {file}", file=path))
        done += sizes[path]

    items = read_files(found, columns, tell)
    bar.empty()
    return items


def guesses(mark: Mark, item: BundleItem) -> tuple[ColumnGuess, ...]:
    """What the columns of a hand-made table seem to mean; none for a tool's own format."""
    return _shelf().get((mark, item.path), lambda: propose_columns(item.file.load(), item.file.name))


def changed(guessed: Sequence[ColumnGuess], given: Mapping[str, str]) -> dict[str, str]:
    """Only what differs from our guess."""
    usual = {guess.header: guess.choice for guess in guessed}
    return {header: choice for header, choice in given.items() if usual.get(header) != choice}
