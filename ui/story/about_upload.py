"""Uploads in words: what became of each file, and how many load points there are to store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    points = sum(len(item.result.runs) for item in stored if item.result)
    refused, others = sum(item.error is not None for item in items), _others(items)
    return t(
        "{files:count} files: {points:count} load points in {read:count} of them, {refused:count} could not be read, "
        "{others:count} add nothing of their own.",
        files=len(items), points=points, read=len(stored), refused=refused, others=others,
    )  # fmt: skip


def _others(items: Sequence[BundleItem]) -> int:
    return sum(item.error is None and not item.to_store for item in items)


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
    return t(", ").join(f"{_SIGNS[one.severity]} {about_validity.name(one.code)}" for one in found) or "✓"


def file_row(item: BundleItem) -> dict[str, str]:
    """One file with results: what it is and what the checks say."""
    assert item.result is not None  # only files with results have a row here
    return {
        t("File"): item.path,
        t("Understood as"): kind(item.result),
        t("Findings"): findings(item.result),
        t("Rows left out"): str(len(item.result.problems)),
    }


def other_rows(items: Sequence[BundleItem]) -> list[Mapping[str, str]]:
    """Files that add nothing of their own, and why."""
    return [{t("File"): item.path, t("Why"): _why(item)} for item in items if item.error is None and not item.to_store]


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
