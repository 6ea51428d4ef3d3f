"""Uploads in words: what became of each file, and how many load points there are to store."""

from __future__ import annotations

from collections.abc import Sequence

from data.formats.bundle import BundleItem
from data.records import ReadResult
from ui.glossary import SEVERITIES
from ui.story import about_validity
from ui.text import t

_SIGNS = dict(zip(about_validity.ORDER, ("✕", "!", "i"), strict=True))
_FACTS = ("gpu", "gpu_count", "tensor_parallel", "max_concurrency", "engine")


def outline(items: Sequence[BundleItem]) -> str:
    """All files in one sentence."""
    stored = [item for item in items if item.to_store]
    refused = sum(item.error is not None for item in items)
    return t(
        "{files:count} files: {read:count} hold {found}, {refused:count} could not be read, "
        "{others:count} add nothing of their own.",
        files=len(items), found=amount(stored), read=len(stored), refused=refused, others=len(others(items)),
    )  # fmt: skip


def number(items: Sequence[BundleItem]) -> tuple[int, int]:
    """Load points, and readings of engines and GPUs."""
    results = [item.result for item in items if item.result is not None]
    points = sum(len(result.runs) for result in results)
    return points, sum(len(result.snapshots) + len(result.gpu_logs) for result in results)


def amount(items: Sequence[BundleItem]) -> str:
    """Load points, and readings of engines and GPUs, as far as there are any."""
    points, readings = number(items)
    if not readings:
        return t("{number:count} load points", number=points)
    if not points:
        return t("{number:count} readings of engines or GPUs", number=readings)
    return t(
        "{points:count} load points and {readings:count} readings of engines or GPUs", points=points, readings=readings
    )


def kind(result: ReadResult) -> str:
    """The format, and what it holds."""
    counts = (
        t("{number:count} load points", number=len(result.runs)) if result.runs else "",
        t("{number:count} metrics snapshots", number=len(result.snapshots)) if result.snapshots else "",
        t("readings of GPUs") if result.gpu_logs else "",
        t("start-up log") if result.startup is not None else "",
    )
    return " · ".join(part for part in (result.format, *counts) if part)


def findings(result: ReadResult) -> str:
    """Warnings by name, the gravest first."""
    found = about_validity.gravest_first(result.warnings)
    said = [f"{_SIGNS[one.severity]} {about_validity.name(one.code)}" for one in found]
    if "columns_assumed" in result.notes:
        said.insert(0, t("? columns to settle"))
    return t(", ").join(said) or "✓"


def file_row(item: BundleItem) -> dict[str, str]:
    """One file with results: what it is and what the checks say."""
    assert item.result is not None  # only files with results have a row here
    return {
        t("File"): item.path,
        t("Understood as"): kind(item.result),
        t("Findings"): findings(item.result),
        t("Rows left out"): str(len(item.result.problems)),
    }


def others(items: Sequence[BundleItem]) -> list[str]:
    """Files that add nothing of their own, and why."""
    return [f"{item.path} · {_why(item)}" for item in items if item.error is None and not item.to_store]


def _why(item: BundleItem) -> str:
    if item.left_out is not None:
        return t("Left out: {reason}.", reason=item.left_out)
    if item.belongs_to is not None:
        return t("Its figures were added to {file}.", file=item.belongs_to)
    if item.same_as is not None:
        return t("The same runs stand in {file}, which says more.", file=item.same_as)
    return t("It holds nothing to be stored: {kind}.", kind=kind(item.result) if item.result else "—")


def suggestions(item: BundleItem) -> str:
    """What the name suggests, as a sentence; empty when it suggests nothing."""
    names = {
        "gpu": t("GPU"),
        "gpu_count": t("number of GPUs"),
        "tensor_parallel": t("tensor parallel size"),
        "max_concurrency": t("concurrency"),
        "engine": t("engine"),
    }
    said = [f"{names[fact]} {item.suggestions[fact]}" for fact in _FACTS if fact in item.suggestions]
    if not said:
        return ""
    return t("Its name suggests: {facts}. Nothing of that is taken before you say so.", facts=t(", ").join(said))


def severity_help() -> str:
    """What the signs of the findings mean."""
    return " · ".join(f"{sign} {t(SEVERITIES[severity])}" for severity, sign in _SIGNS.items())
