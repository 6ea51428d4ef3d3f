"""Setups calibrated on two of their points, and judged on the others: a part of docs/accuracy.md."""

from __future__ import annotations

from pathlib import Path


def two_point_table(folder: Path) -> str:
    """Medians over the remaining points, without and with the calibration."""
    return f"Not measured yet on the points of {folder.name}."
