"""What the checks say of stored runs: a badge in every row, the sentences of a chosen one, and a person's word."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from data.own_text import one_line
from data.store import StoredRun
from ui import parts, resources, state
from ui.benchmarks import runs
from ui.benchmarks.facts import BY, MOST_CHARACTERS
from ui.story import about_validity
from ui.text import t

CONFIRMED_BY, REASON = "confirmed_by", "confirm_reason"
LONG, MANY_ROWS = 400, 9
"""Pixels of a table of more rows than that; the rest scrolls."""


def table(stored: Sequence[StoredRun], key: str, places: Sequence[str] = ()) -> StoredRun | None:
    """Runs with their badges, and their places in the matrix if given; the one whose row is chosen."""
    rows: list[dict[str, str]] = [
        {t("Validity"): about_validity.badge(one), **row}
        for one, row in zip(stored, runs.rows([one.run for one in stored]), strict=True)
    ]
    for row, place in zip(rows, places, strict=False):
        row[t("Place")] = place
    st.caption(parts.escape(about_validity.counted(stored)))
    event = st.dataframe(
        rows, key=key, hide_index=True, width="stretch", on_select="rerun",
        height=LONG if len(rows) > MANY_ROWS else "content",
        selection_mode="single-row",
    )  # fmt: skip
    chosen = event.selection.rows
    return stored[chosen[0]] if chosen and chosen[0] < len(stored) else None


def show(stored: StoredRun | None) -> None:
    """Every finding on a run with its numbers and what to do, where its facts are from, and whether it counts."""
    if stored is None:
        st.caption(t("Choose a row to read what its badge means."))
        return
    st.markdown(f"**{parts.escape(runs.label(stored))}**")
    if not stored.warnings:
        st.caption(t("No check found anything to say about this run."))
    for warning in about_validity.gravest_first(stored.warnings):
        colour, icon = about_validity.COLOURS[warning.severity], about_validity.ICONS[warning.severity]
        name = parts.escape(f"{about_validity.name(warning.code)} · {about_validity.severity(warning)}")
        st.markdown(f":{colour}[{icon} **{name}**]  \n{parts.escape(t(warning.text))}")
    parts.remarks(about_validity.provenance(stored))
    _word(stored)


def _word(stored: StoredRun) -> None:
    """Somebody may take a refused run as evidence, with name and reason, and may take that back."""
    if not stored.refusals and stored.confirmation is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if not state.get(CONFIRMED_BY):
            state.put(**{CONFIRMED_BY: state.get(BY) or ""})
        st.text_input(t("Your name"), key=CONFIRMED_BY, max_chars=MOST_CHARACTERS, persist_state="session")
        st.text_input(t("Reason"), key=REASON, max_chars=MOST_CHARACTERS)
        if stored.refusals:
            st.button(
                t("Use it all the same"), key="confirm_run", icon=":material/verified_user:", on_click=_confirm,
                args=(stored.run_id, tuple(one.code for one in stored.refusals)),
            )  # fmt: skip
        if stored.confirmation is not None:
            st.button(
                t("Take the word back"), key="withdraw_run", icon=":material/undo:", on_click=_withdraw,
                args=(stored.run_id,),
            )  # fmt: skip


@state.callback
def _confirm(run_id: str, codes: Sequence[str]) -> None:
    before = resources.store().declarations.confirmations().get(run_id)
    known = (*(before.codes if before else ()), *codes)
    resources.store().declarations.confirm(run_id, tuple(dict.fromkeys(known)), **_signed())


@state.callback
def _withdraw(run_id: str) -> None:
    resources.store().declarations.withdraw(run_id, **_signed())


def _signed() -> dict[str, str]:
    return {
        "by": one_line(state.get(CONFIRMED_BY) or "", t("Your name")),
        "reason": one_line(state.get(REASON) or "", t("Reason")),
    }
