"""Shared fixtures. The optional folder of real observations is used when present and skipped, in words, when not."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 240
"""For one run of a page's script: a load with rare features compiles its simulator first, beside another process."""
EXCUSED = ("PLIMSOLL_CASES", "real observations", "--benchmark-skip", "GPU", "administrator", "only Linux")
"""Words in the reason of a skip that is no fault of the machine: optional material, speed tests, hardware, user."""


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """With PLIMSOLL_CI set, whatever is skipped for want of a program or a package counts as failed."""
    if not os.environ.get("PLIMSOLL_CI") or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if not any(words in reason for words in EXCUSED):
        report.outcome = "failed"
        report.longrepr = f"nothing may be missing on this machine: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def cases_folder() -> Path:
    """Where real observations with expected values are, if anywhere: PLIMSOLL_CASES, or beside the project."""
    return Path(os.environ.get("PLIMSOLL_CASES", ROOT.parent / "shared" / "cases"))


LONGEST = (
    "test_browser", "test_simulate", "test_strategies", "test_fleet", "test_edges", "test_own_pages", "test_pages",
)  # fmt: skip
"""Files that take longest begin first: one left for the end would keep a process busy while the other has nothing."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which processes take files (with ``--no-loadscope-reorder``)."""
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session")
def cases_dir() -> Path:
    """Folder of real observations; a test that wants it is skipped where there is none."""
    folder = cases_folder()
    if not folder.is_dir():
        pytest.skip(f"no folder of real observations at {folder.name}: set PLIMSOLL_CASES to check against them")
    return folder


@pytest.fixture(autouse=True, scope="session")
def _checked_pictures() -> None:
    """Plotly checks every property of every picture in tests; pages skip that."""
    from ui.charts.sketch import Sketch

    Sketch.checked = True
