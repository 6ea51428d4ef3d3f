"""Words about the evaluation: what is measured, what is missing, and what a strategy changed."""

from __future__ import annotations

from collections.abc import Sequence

from data.store import StoredRun
from ui import format as show
from ui.story.words import Figure
from ui.text import t


def sentence(runs: Sequence[StoredRun]) -> str:
    """What the store holds, in one sentence."""
    files = len({run.file_id for run in runs})
    return t("{number:count} load points of {files:count} files are stored.", number=len(runs), files=files)


def figures(runs: Sequence[StoredRun]) -> list[Figure]:
    """How much was measured, and how much of it can be used as it stands."""
    spoiled = sum(any(warning.severity == "E" for warning in run.warnings) for run in runs)
    files = len({run.file_id for run in runs})
    return [
        Figure(label=t("Load points stored"), value=show.count(len(runs)), provenance="measured"),
        Figure(label=t("Files"), value=show.count(files), provenance="measured"),
        Figure(
            label=t("Not usable as they stand"),
            value=show.count(spoiled) if runs else show.missing(),
            provenance="measured" if runs else "missing",
            help=t("Load points with a finding that has to be cleared up first."),
        ),
    ]
