"""Words about what is stored: files, load points with their findings, and who did what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from data.store import StoredFile, StoredGpuLog, StoredRun, TrailEntry
from ui import format as show
from ui.story import words
from ui.text import t

SECONDS_OF_TIME = 19
"""2026-11-30T12:00:00 of an ISO time."""


def file_rows(
    files: Sequence[StoredFile], runs: Sequence[StoredRun], logs: Sequence[StoredGpuLog] = ()
) -> list[Mapping[str, str]]:
    """One row per file, newest first, with what was found wrong in it."""
    held: list[StoredRun | StoredGpuLog] = [*runs, *logs]
    return [
        {
            t("File"): file.name,
            t("Format"): file.format,
            t("Stored on"): words.day(file.uploaded_at),
            t("Load points"): show.count(file.runs),
            t("Rows left out"): show.count(len(file.problems)),
            t("Findings"): findings([one for one in held if one.file_id == file.file_id]),
        }
        for file in files
    ]


def findings(held: Sequence[StoredRun | StoredGpuLog]) -> str:
    """How many findings of each kind, gravest first."""
    every = [warning.severity for one in held for warning in one.warnings]
    names = {"E": t("to clear up"), "W": t("warnings"), "I": t("remarks")}
    single = names | {"W": t("warning"), "I": t("remark")}
    counts = {code: every.count(code) for code in names if code in every}
    told = [f"{count} {(single if count == 1 else names)[code]}" for code, count in counts.items()]
    return ", ".join(told) or t("none")


def kinds() -> Mapping[str, str]:
    """Kinds of rows in words, those asked for most first."""
    return {
        "run": t("Load points"),
        "file": t("Files"),
        "declaration": t("Declarations"),
        "confirmation": t("Confirmations"),
        "snapshot": t("Metrics"),
        "gpu_log": t("GPU logs"),
        "gpu_log_tie": t("Runs of GPU logs"),
        "request_log": t("Request logs"),
        "log_request": t("Requests of logs"),
        "recording": t("Recordings"),
        "recorded_scrape": t("Lines of recordings"),
        "startup_log": t("Start-up logs"),
        "probe": t("Probes"),
        "calibration": t("Calibrations"),
        "scenario": t("Scenarios"),
        "review": t("Reviews"),
        "own_model": t("Own models"),
        "own_gpu": t("Own GPUs"),
        "own_price": t("Own prices"),
        "addition": t("Who added what"),
        "deletion": t("Who removed what"),
    }


def trail_rows(entries: Sequence[TrailEntry]) -> list[Mapping[str, str]]:
    """Who, what, when and why, newest first."""
    names = {"add": t("added"), "delete": t("removed"), "undo": t("brought back")}
    return [
        {
            t("When"): entry.acted_at[:SECONDS_OF_TIME].replace("T", " "),
            t("Who"): entry.actor or t("not known"),
            t("Done"): names[entry.action],
            t("What"): trail_name(entry),
            t("Why"): entry.reason or "",
        }
        for entry in entries
    ]


def trail_name(entry: TrailEntry) -> str:
    """A row as people know it."""
    return f"{kinds()[entry.kind]}: {entry.name or entry.target_id[:12]}"
