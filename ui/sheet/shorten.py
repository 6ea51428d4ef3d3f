"""Less text for a page that would run over, in levels, and never without saying so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ui.sheet.page import Page, Section
from ui.sheet.plain import cut
from ui.sheet.tables import Table
from ui.text import speaking, t

T = TypeVar("T")
LIMITS = ((200, 6), (130, 5), (90, 4), (60, 3))
"""Longest sentence in characters and most lines of a list, level by level."""
LEVELS = len(LIMITS)


def each_text(value: T, change: Callable[[str], str]) -> T:
    """``value`` with ``change`` applied to every string in it."""
    changed: Any = value
    if isinstance(value, str):
        changed = change(value)
    elif isinstance(value, tuple):
        changed = tuple(each_text(item, change) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        changed = replace(value, **{item.name: each_text(getattr(value, item.name), change) for item in fields(value)})
    return changed  # type: ignore[no-any-return]


def shorten(page: Page, level: int) -> Page:
    """The page with sentences and lists cut to ``level`` and a note. Numbers and the decision are never cut."""
    longest, most = LIMITS[level - 1]

    def short(value: T) -> T:
        return each_text(value, lambda text: cut(text, longest))

    def listed(section: Section) -> Section:
        return replace(section, items=short(section.items[:most]))

    def rows(table: Table) -> Table:
        return replace(table, rows=short(table.rows[:most]))

    with speaking(page.language.replace("-", "_")):
        note = t("Shortened to fit one page; the HTML and Markdown versions are complete.")
    return replace(
        page,
        headline=cut(page.headline, longest * 2),
        because=short(page.because),
        asides=short(page.asides),
        applies=listed(page.applies),
        boundaries=listed(page.boundaries),
        options=rows(page.options),
        proofs=short(page.proofs),
        missing=listed(page.missing),
        checks=short(page.checks[: most * 2]),
        risks=listed(page.risks),
        steps=rows(page.steps),
        notes=(*page.notes, note),
    )
