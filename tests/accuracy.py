"""How far predictions are from recorded runs, as docs/accuracy.md: ``make accuracy``, where PLIMSOLL_CASES is at hand.

Only differences are written down, none of the records.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from conftest import ROOT, cases_folder
from latency_accuracy import latency_page
from memory_accuracy import memory_page
from offload_accuracy import offload_page

from calc import MODEL_VERSION

PAGE = ROOT / "docs" / "accuracy.md"


def page(folder: Path) -> str:
    """The whole document."""
    today = datetime.now(UTC).date()
    return f"""# How close the numbers are

Made by `make accuracy` on {today} with model version {MODEL_VERSION}, uncalibrated.
An error is predicted ÷ recorded − 1.

## Memory
{memory_page(folder / "memory")}

## Latency under load
{latency_page(folder)}

## KV outside the GPU
{offload_page()}"""


def main() -> int:
    folder = cases_folder()
    if not folder.is_dir():
        print("no folder of real observations: set PLIMSOLL_CASES", file=sys.stderr)  # noqa: T201
        return 1
    PAGE.write_text(page(folder), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
