"""Shared fixtures. The optional folder of real observations is used when present and skipped, in words, when not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def cases_dir() -> Path:
    """Folder of real observations with expected values (environment variable PLIMSOLL_CASES, or beside the project)."""
    folder = Path(os.environ.get("PLIMSOLL_CASES", ROOT.parent / "shared" / "cases"))
    if not folder.is_dir():
        pytest.skip(f"no folder of real observations at {folder.name}: set PLIMSOLL_CASES to check against them")
    return folder
