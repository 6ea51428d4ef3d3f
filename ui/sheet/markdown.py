"""Page → Markdown for a wiki or a merge request: the same words and numbers, without the pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ui.sheet.page import Labelled, Page, Section, Sign
from ui.sheet.tables import Table

MARKUP = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]|#~!"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})
"""Signs that would be read as Markdown or HTML."""


def page_to_markdown(page: Page) -> str:
    """The sheet as Markdown (tables as on GitHub)."""
    return "\n".join(_lines(page)).rstrip() + "\n"


def _safe(text: str) -> str:
    return text.translate(MARKUP)


def _lines(page: Page) -> Iterator[str]:
    yield f"# {_safe(page.title)}"
    yield ""
    yield f"**{_safe(page.status)}** · {_safe(page.subtitle)} · {_pairs(page.facts)}"
    if page.demonstration:
        yield from ("", f"> {_safe(page.demonstration)}")
    yield from ("", f"## {_safe(page.verdict_label)}: {_safe(page.verdict)}", "", _safe(page.headline), "")
    yield from (f"- {_safe(reason)}" for reason in page.because)
    yield ""
    yield from (f"- **{_safe(aside.label)}**: {_safe(aside.text)}" for aside in page.asides)
    yield from _list(page.applies)
    yield from _list(page.boundaries)
    yield from _table(page.latency)
    yield from ("", _safe(page.load.caption))
    for table in (page.numbers, page.options, page.proofs):
        yield from _table(table)
    yield from _list(page.missing)
    yield from ("", f"## {_safe(page.checks_heading)}", "")
    yield from (f"- [ ] **{_safe(check.label)}** {_safe(check.text)}" for check in page.checks)
    yield from _list(page.risks)
    yield from _table(page.steps)
    yield from _signs(page.signs_heading, page.signs)
    yield from ("", "---", "", _safe(page.footer))
    yield from (_safe(note) for note in page.notes)


def _pairs(facts: Sequence[Labelled]) -> str:
    return " · ".join(f"{_safe(fact.label)} {_safe(fact.text)}" for fact in facts)


def _list(section: Section) -> Iterator[str]:
    if section.items:
        yield from ("", f"## {_safe(section.heading)}", "")
        yield from (f"- {_safe(item)}" for item in section.items)


def _table(table: Table) -> Iterator[str]:
    yield from ("", f"## {_safe(table.heading)}", "")
    yield _cells(table.columns)
    yield _cells(["---"] * len(table.columns))
    yield from (_cells([_safe(cell) for cell in row.cells]) for row in table.rows)


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _signs(heading: str, signs: Sequence[Sign]) -> Iterator[str]:
    yield from ("", f"## {_safe(heading)}", "")
    for sign in signs:
        choices = " / ".join(_safe(choice) for choice in sign.choices)
        yield f"- [ ] **{_safe(sign.party)}** ({_safe(sign.confirms)}): {choices}; {_safe(sign.name)}: ____"
