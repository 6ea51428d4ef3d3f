"""The review sheet's form and its saved snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from calc import MODEL_VERSION
from calc.cost import cost_of
from calc.poc.status import gap
from data.run_evidence import same_deployment
from ui import parts, resources, state, text
from ui.benchmarks import found, progress
from ui.glossary import OUTCOMES
from ui.resources import Asked
from ui.sheet import (
    Filing,
    Party,
    Review,
    build_review,
    render_html,
    render_markdown,
    render_pdf,
    review_from_json,
    review_hash,
    review_to_json,
)
from ui.sheet.page import STATUS_NAMES
from ui.story.words import Figure
from ui.text import t

DRAFT = "draft"
FORMATS: Mapping[str, tuple[str, str, Callable[[Review, str], str | bytes]]] = {
    "pdf": ("PDF", "application/pdf", render_pdf),
    "html": ("HTML", "text/html", render_html),
    "md": ("Markdown", "text/markdown", render_markdown),
}
"""File ending → name, MIME type and how it is made."""
PARTIES = tuple(Party)


def form() -> Filing:
    """What people add to the numbers: title, owners, and which facts are real."""
    left, right = st.columns(2, gap="medium")
    with left:
        title = st.text_input(t("Title"), key="sheet_title", persist_state="session")
        role = st.text_input(t("Author's role"), key="sheet_role", persist_state="session")
        look_back = st.date_input(t("Look back on"), None, key="sheet_look_back", persist_state="session")
    with right:
        owners = {
            party.value: st.text_input(label, key=f"sheet_owner_{party.value}", persist_state="session")
            for party, label in zip(
                PARTIES, (t("Business owner"), t("Platform owner"), t("Security owner")), strict=True
            )
        }
    with st.container(horizontal=True):
        real = [
            st.checkbox(label, key=f"sheet_{key}", persist_state="session", help=help_text)
            for key, label, help_text in (
                ("requests", t("Real requests"), t("Lengths, arrivals and repetition come from your own traffic.")),
                ("roles", t("Real permission roles"), t("Access was tried with the roles of production.")),
                ("figures", t("Real operating figures"), t("Prices, targets and figures are your own.")),
            )
        ]
    return Filing(
        title=title, author_role=role, owners={key: name for key, name in owners.items() if name},
        created_at=datetime.now(UTC).date().isoformat(), look_back_on=look_back.isoformat() if look_back else "",
        real_requests=real[0], real_roles=real[1], real_figures=real[2],
    )  # fmt: skip


def draft(asked: Asked, filing: Filing) -> Review:
    """The sheet of the scenario as it stands, with the uploaded runs of this model."""
    scenario, memory = asked.scenario, resources.memory(asked)
    latency = resources.latency(asked) if memory.fits else None
    runs = [one for one in resources.runs() if one.is_evidence]
    cost = cost_of(scenario, latency)
    review = build_review(
        scenario,
        memory,
        latency,
        resources.decision(asked),
        sweep=resources.load_sweep(asked) if latency else None,
        runs=[stored.run for stored in runs],
        caveats=[stored.caveats for stored in runs],
        refused=sum(not one.is_evidence and same_deployment(one.run, scenario.deployment) for one in resources.runs()),
        cost_per_million_tokens=cost.per_million_output_tokens if cost else None,
        filing=filing,
        case=state.canonical(asked),
    )
    return replace(review, missing=(*gap(progress.required(asked, found.kept(asked))), *review.missing))


def figures(review: Review) -> list[Figure]:
    """Decision, status, and what names exactly these numbers."""
    return [
        Figure(label=t("Decision"), value=t(OUTCOMES[review.verdict.outcome]), provenance="estimated"),
        Figure(label=t("Status"), value=t(STATUS_NAMES[review.status]), provenance="declared"),
        Figure(label=t("Model version"), value=review.model_version, provenance="declared"),
        Figure(label=t("Hash"), value=review_hash(review)[:12], provenance="declared"),
    ]


def choose() -> str:
    """Which sheet is shown: the draft, or a saved one."""
    saved = {
        row.review_id: f"{row.title or t('Review sheet')} · {row.saved_at[:16]}" for row in resources.store().reviews()
    }
    return parts.pick(t("Sheet"), {DRAFT: t("Draft of the current scenario"), **saved}, "sheet_chosen")


def opened(review_id: str) -> Review:
    """A saved sheet, with the numbers it was saved with."""
    return review_from_json(json.dumps(dict(resources.store().review(review_id).snapshot)))


def language() -> str:
    """The sheet's language, whatever the screen speaks."""
    return parts.switch(t("Language of the sheet"), text.LANGUAGES, "sheet_language", text.current())


def downloads(review: Review, spoken: str) -> None:
    """One button per form of the file; each is made only when asked for."""
    for ending, (label, mime, make) in FORMATS.items():
        st.download_button(
            label, partial(make, review, spoken), f"plimsoll-review.{ending}", mime,
            key=f"sheet_download_{ending}", on_click="ignore", icon=":material/download:",
        )  # fmt: skip


@state.callback
def save(review: Review, title: str) -> None:
    """Freeze the sheet: reopening shows the same numbers, hash and model version."""
    resources.store().save_review(title, json.loads(review_to_json(review)), model_version=MODEL_VERSION)
