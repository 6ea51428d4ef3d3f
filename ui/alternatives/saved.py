"""Saved scenarios."""

from __future__ import annotations

from ui import library
from ui.resources import Asked


def show(asked: Asked) -> None:
    """The shelf: save, open, export, import."""
    library.shelf(asked)
