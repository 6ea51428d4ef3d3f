"""The upload desk of the Benchmarks page."""

from __future__ import annotations

from ui import uploading
from ui.resources import Asked


def show(asked: Asked) -> None:  # noqa: ARG001 - same signature for all views
    """Choose files, see what was understood, store it."""
    uploading.desk()
