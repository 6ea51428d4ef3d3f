"""What every reader is: a title, a test by content, and a way to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from data.formats.document import Document
from data.records import ReadResult


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One tool's format: how to recognise it by content, and how to read it."""

    title: str
    looks_like: Callable[[Document], bool]
    read: Callable[[Document], ReadResult]
