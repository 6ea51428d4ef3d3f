"""Uploads in words: what became of each file, and how many load points there are to store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from calc.messages import Message, msg
from data.formats.bundle import BundleItem
from data.formats.result import COMPANION_NOTE
from data.records import ReadResult
from ui.glossary import SEVERITIES
from ui.story import about_validity
from ui.text import t

_SIGNS = dict(zip(about_validity.ORDER, ("✕", "!", "i"), strict=True))
_SAID: tuple[Callable[[int], Message], ...] = (
    lambda count: msg("1 load point") if count == 1 else msg("{number:count} load points", number=count),
    lambda count: msg("1 metrics snapshot") if count == 1 else msg("{number:count} metrics snapshots", number=count),
    lambda count: msg("1 GPU log") if count == 1 else msg("{number:count} GPU logs", number=count),
    lambda count: msg("1 companion file") if count == 1 else msg("{number:count} companion files", number=count),
)
"""Kind by kind, in the order of :func:`number`."""
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


def number(items: Sequence[BundleItem]) -> tuple[int, int, int, int]:
    """Load points, metrics snapshots, logs of GPU readings, and files that only complete others."""
    results = [item.result for item in items if item.result is not None]
    return (
        sum(len(result.runs) for result in results),
        sum(len(result.snapshots) for result in results),
        sum(len(result.gpu_logs) for result in results),
        sum(COMPANION_NOTE in result.notes and not result.runs for result in results),
    )


def held(items: Sequence[BundleItem]) -> Message:
    """What the files hold, kind by kind, as far as there is any."""
    found = [say(count) for say, count in zip(_SAID, number(items), strict=True) if count]
    if not found:
        return msg("{number:count} load points", number=0)
    *most, last = found
    if not most:
        return last
    listed = reduce(lambda first, second: msg("{first}, {second}", first=first, second=second), most)
    return msg("{first} and {second}", first=listed, second=last)


def amount(items: Sequence[BundleItem]) -> str:
    """The same in the language of the page."""
    return t(held(items))


def stored(items: Sequence[BundleItem], known: int) -> Message:
    """What was stored now, and how many files were there before."""
    if not items:
        return msg("This file was stored before; nothing was doubled.")
    if known:
        return msg("Stored {what}; {known:count} files were there before.", what=held(items), known=known)
    if not any(number(items)[:3]):
        return msg("Stored {what}: it holds no load point of its own, but completes the others of its run.",
                   what=held(items))  # fmt: skip
    return msg("Stored {what}.", what=held(items))


def kind(result: ReadResult) -> str:
    """The format, and what it holds."""
    counts = (
        t(_SAID[0](len(result.runs))) if result.runs else "",
        t(_SAID[1](len(result.snapshots))) if result.snapshots else "",
        t("readings of GPUs") if result.gpu_logs else "",
        t("no load point of its own: it completes another file") if COMPANION_NOTE in result.notes else "",
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
    signs = [f"{sign} {t(SEVERITIES[severity])}" for severity, sign in _SIGNS.items()]
    return " · ".join([*signs, t("? columns whose meaning you can settle below")])
