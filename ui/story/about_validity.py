"""The validity of runs in words: badges, what each finding says, and what refused runs are left out of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.checks.run_facts import ERROR, INFO, WARNING
from data.records import RunWarning
from data.store import StoredRun
from ui.glossary import SEVERITIES, VALIDITY
from ui.story import about_facts, words
from ui.text import t

COLOURS: Mapping[str, str] = {ERROR: "red", WARNING: "orange", INFO: "gray"}
"""Severity → colour of its badge; the word stands beside it, so that colour is not needed."""
ICONS: Mapping[str, str] = {ERROR: ":material/block:", WARNING: ":material/warning:", INFO: ":material/info:"}
ORDER = (ERROR, WARNING, INFO)


def name(code: str) -> str:
    """A code in two or three words."""
    return t(VALIDITY[code])


def gravest_first(warnings: Sequence[RunWarning]) -> list[RunWarning]:
    """What stops the run, then what marks it, then what is only worth knowing."""
    return sorted(warnings, key=lambda one: ORDER.index(one.severity))


def badge(stored: StoredRun) -> str:
    """The state of a run in a few words, for a cell of a table."""
    if stored.refusals:
        return t("✕ not used: {names}", names=_names(stored.refusals))
    told = stored.confirmation
    if told is not None and any(one.severity == ERROR for one in stored.warnings):
        return t("! confirmed by {who}: {names}", who=told.confirmed_by, names=_names(stored.caveats))
    return f"! {_names(stored.caveats)}" if stored.caveats else t("✓ no warning")


def _names(warnings: Sequence[RunWarning]) -> str:
    return t(", ").join(name(one.code) for one in gravest_first(warnings))


def counted(stored: Sequence[StoredRun]) -> str:
    """How many runs count, are marked, or are kept out."""
    refused = sum(not one.is_evidence for one in stored)
    marked = sum(one.is_evidence and bool(one.caveats) for one in stored)
    return t(
        "{all:count} load points: {plain:count} without a warning, {marked:count} with one, {refused:count} not used.",
        all=len(stored), plain=len(stored) - refused - marked, marked=marked, refused=refused,
    )  # fmt: skip


def left_out(stored: Sequence[StoredRun]) -> list[str]:
    """What is said where refused runs would have been used; nothing when there are none."""
    refused = [one for one in stored if not one.is_evidence]
    if not refused:
        return []
    codes = list(dict.fromkeys(one.code for run in refused for one in run.refusals))
    why = t(", ").join(name(code) for code in codes)
    return [t("Stored runs left out: {number:count} ({why}). See Benchmarks, Stored.", number=len(refused), why=why)]


def severity(warning: RunWarning) -> str:
    """What the severity means for the run."""
    return t(SEVERITIES[warning.severity])


def provenance(stored: StoredRun) -> list[str]:
    """Who declared what, and who confirmed what."""
    said = []
    if stored.declaration is not None and stored.declared:
        what = t(", ").join(about_facts.label(fact) for fact in stored.declared)
        told = stored.declaration
        day = words.day(told.declared_at)
        said.append(t("Declared by {who} on {day}: {what}.", who=told.declared_by, day=day, what=what))
    if stored.confirmation is not None:
        said.append(
            t("Confirmed by {who} on {day}: {why}", who=stored.confirmation.confirmed_by,
              day=words.day(stored.confirmation.confirmed_at), why=stored.confirmation.reason)
        )  # fmt: skip
    return said
