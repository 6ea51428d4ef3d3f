"""Page → PDF: exactly one A4 page, the same bytes on every machine, set by typst with the project's own fonts."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

import typst

from ui import palette
from ui.sheet import glyphs
from ui.sheet.page import Page
from ui.sheet.plain import breakable
from ui.sheet.shorten import LEVELS, each_text, shorten
from ui.text import speaking, t

TEMPLATE = Path(__file__).parent / "templates" / "sheet.typ"
SIZES_PT = (7.6, 7.4, 7.2, 7.0, 6.8, 6.6, 6.4, 6.2, 6.0)
"""Type sizes tried, largest first; below 6 pt a printed page is no longer read."""
COLOURS = {
    "navy": palette.NAVY,
    "ink": "#1B2B44",
    "quiet": palette.GREY_DARK,
    "rule": palette.GREY_LIGHT,
    "pale": palette.GREY_PALE,
    "water": palette.WATER,
    "water-light": palette.WATER_LIGHT,
    "amber": palette.AMBER,
    "amber-light": palette.AMBER_LIGHT,
    "amber-text": palette.AMBER_TEXT,
    "red": palette.RED,
}


def page_to_pdf(page: Page) -> bytes:
    """The sheet as PDF. Type shrinks until it fits; if that is not enough, text is cut and a note says so."""
    printable = _printable(page)
    versions = (printable, *(shorten(printable, level) for level in range(1, LEVELS + 1)))
    fitting = next((tried, size_pt) for tried in versions if (size_pt := _largest_size(tried)) is not None)
    return _compile(*fitting)


def _largest_size(page: Page) -> float | None:
    """The largest type size at which ``page`` fits; ``None`` when none does."""
    index = bisect_left(SIZES_PT, True, key=lambda size_pt: _fits(page, size_pt))
    return SIZES_PT[index] if index < len(SIZES_PT) else None


def _printable(page: Page) -> Page:
    """The page in signs the fonts have, with places to break long names."""
    lacking = glyphs.unprintable(json.dumps(asdict(page), ensure_ascii=False))
    clean = each_text(page, lambda text: breakable(glyphs.substitute(text, lacking)))
    pictured = replace(
        clean,
        memory=replace(clean.memory, svg=glyphs.substitute(page.memory.svg, lacking)),
        load=replace(clean.load, svg=glyphs.substitute(page.load.svg, lacking)),
    )
    if not lacking:
        return pictured
    with speaking(page.language.replace("-", "_")):
        note = t("Signs this font cannot print are shown as ?: {signs}", signs=glyphs.named(lacking))
    return replace(pictured, notes=(*page.notes, note))


def _inputs(page: Page, size_pt: float) -> dict[str, str]:
    return {
        "page": json.dumps(asdict(page), ensure_ascii=False),
        "colours": json.dumps(COLOURS),
        "size": str(size_pt),
    }


@lru_cache
def _fonts() -> typst.Fonts:
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[glyphs.FONTS])


def _fits(page: Page, size_pt: float) -> bool:
    inputs = _inputs(page, size_pt)
    pages = typst.query(TEMPLATE, "<pages>", field="value", one=True, font_paths=_fonts(), sys_inputs=inputs)
    return int(json.loads(pages)) == 1


def _compile(page: Page, size_pt: float) -> bytes:
    inputs = _inputs(page, size_pt)
    return typst.compile(TEMPLATE, font_paths=_fonts(), sys_inputs=inputs, format="pdf", timestamp=0)
