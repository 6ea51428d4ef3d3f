"""Tables to take away, and who added, removed and brought back what."""

from __future__ import annotations

from functools import partial

import streamlit as st

from data.store import TrailEntry
from data.store.export import Form
from ui import parts, resources, state
from ui.story import about_stored
from ui.text import t

LONG = 400
"""Pixels of a long table; the rest scrolls."""
MANY_ROWS = 9
FORMS: dict[str, tuple[Form, str]] = {"CSV": ("csv", "text/csv"), "Parquet": ("parquet", "application/octet-stream")}


def exports() -> None:
    """Any table of the store as CSV or Parquet."""
    parts.section(t("Take away"), t("In CSV, cells that a spreadsheet would run as a formula are made text."))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = parts.pick(t("Table"), about_stored.kinds(), "stored_table")
        for label, (form, mime) in FORMS.items():
            st.download_button(
                label, partial(resources.store().exports, kind, form), f"{kind}.{form}", mime,
                key=f"stored_{form}", on_click="ignore", icon=":material/download:",
            )  # fmt: skip


def trail() -> None:
    """Who did what, and bringing back what was removed."""
    entries = resources.store().trail()
    if not entries:
        return
    with st.expander(t("Who did what"), icon=":material/history:"):
        rows = about_stored.trail_rows(entries)
        parts.table(rows, key="stored_trail", **({"height": LONG} if len(rows) > MANY_ROWS else {}))
        if removed := {entry.action_id: entry for entry in standing(entries)}:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                names = {action_id: about_stored.trail_name(entry) for action_id, entry in removed.items()}
                chosen = parts.pick(t("Removed"), names, f"stored_back_{len(removed)}")
                st.button(
                    t("Bring back"), key="stored_back", icon=":material/undo:", on_click=_back, args=(removed[chosen],)
                )


def standing(entries: tuple[TrailEntry, ...]) -> tuple[TrailEntry, ...]:
    """Removals that nobody undid, newest first."""
    newest: dict[str, TrailEntry] = {}
    for entry in entries:
        if entry.action != "add":
            newest.setdefault(entry.target_id, entry)
    return tuple(entry for entry in newest.values() if entry.action == "delete")


@state.callback
def _back(entry: TrailEntry) -> None:
    resources.store().undo(entry)
    resources.forget_logs()
    resources.own_versions.clear()
