"""Words about what is stored: files, load points with their findings, and who did what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from data.store import Action, StoredFile, StoredRun
from ui import format as show
from ui.story import words
from ui.text import t

SECONDS_OF_TIME = 19
"""2026-11-30T12:00:00 of an ISO time."""


def file_rows(files: Sequence[StoredFile], runs: Sequence[StoredRun]) -> list[Mapping[str, str]]:
    """One row per file, newest first, with what was found wrong in it."""
    return [
        {
            t("File"): file.name,
            t("Format"): file.format,
            t("Stored on"): words.day(file.uploaded_at),
            t("Load points"): show.count(file.runs),
            t("Rows left out"): show.count(len(file.problems)),
            t("Findings"): findings([run for run in runs if run.file_id == file.file_id]),
        }
        for file in files
    ]


def findings(runs: Sequence[StoredRun]) -> str:
    """How many findings of each kind, gravest first."""
    every = [warning.severity for run in runs for warning in run.warnings]
    names = {"E": t("to clear up"), "W": t("warnings"), "I": t("remarks")}
    told = [f"{every.count(code)} {name}" for code, name in names.items() if code in every]
    return ", ".join(told) or t("none")


def action_rows(actions: Sequence[Action]) -> list[Mapping[str, str]]:
    """Deletions and undoings, newest first."""
    names = {"delete": t("removed"), "undo": t("brought back")}
    return [
        {
            t("When"): action.acted_at[:SECONDS_OF_TIME].replace("T", " "),
            t("What"): f"{action.kind} {action.target_id[:12]}",
            t("Done"): names.get(action.action, action.action),
        }
        for action in actions
    ]
