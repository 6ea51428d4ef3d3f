"""The one-page review sheet: one data object, three renderings, two languages.

``build_review`` gathers a scenario's results into a :class:`Review`; ``render_pdf``, ``render_html`` and
``render_markdown`` show it; ``review_to_json`` keeps it so that it can be opened again with the same numbers.
"""

from __future__ import annotations

from ui.sheet.build import build_review
from ui.sheet.codec import review_from_json, review_hash, review_to_json
from ui.sheet.html import page_to_html
from ui.sheet.markdown import page_to_markdown
from ui.sheet.page import STATUS_NAMES, compose
from ui.sheet.pdf import page_to_pdf
from ui.sheet.review import Filing, Party, Review, Status

__all__ = [
    "STATUS_NAMES",
    "Filing",
    "Party",
    "Review",
    "Status",
    "build_review",
    "render_html",
    "render_markdown",
    "render_pdf",
    "review_from_json",
    "review_hash",
    "review_to_json",
]


def render_pdf(review: Review, language: str) -> bytes:
    """The sheet as PDF: one A4 page, byte-identical for the same review and language."""
    return page_to_pdf(compose(review, language))


def render_html(review: Review, language: str) -> str:
    """The sheet as one HTML file that asks nothing of the network and prints on A4."""
    return page_to_html(compose(review, language))


def render_markdown(review: Review, language: str) -> str:
    """The sheet as Markdown."""
    return page_to_markdown(compose(review, language))
