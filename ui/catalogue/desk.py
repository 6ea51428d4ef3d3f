"""What all views of the catalogue share: fields of a form, the tables, and removing with its undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import streamlit as st

from calc.errors import PlimsollError
from data.own_text import EARLIEST, checked_date, one_line
from data.store import OwnEntry
from ui import format as show
from ui import parts, resources, state
from ui.glossary import OWN_FIELDS
from ui.story import about_catalogue
from ui.text import t

PROBLEM, DONE, HIDDEN = "catalogue_problem", "catalogue_done", "catalogue_hidden"
VIEW, PLACE = "catalogue_view", "catalogue_place"
"""The view shown, and the one in which the last button was pressed."""
TABLE_HEIGHT, HEAD_HEIGHT, ROW_HEIGHT = 480, 40, 35
"""Pixels of a table that scrolls, of its head and of a row, as Streamlit draws them."""


def label(key: str) -> str:
    """A field's words and unit."""
    field = OWN_FIELDS[key]
    return f"{t(field.label)} ({show.unit(field.unit)})" if field.unit else t(field.label)


def number(key: str) -> float | None:
    """A number box, empty where nothing is known."""
    field = OWN_FIELDS[key]
    low, high, step = (None if bound is None else float(bound) for bound in (field.low, field.high, field.step))
    value: float | None = st.number_input(
        label(key), low, high, None, step, key=key, help=t(field.help), format="%g", persist_state="session"
    )
    return value


def line(key: str, form: str = "") -> None:
    """A line of text; ``form`` tells fields apart that several forms have."""
    st.text_input(label(key), key=form + key, help=t(OWN_FIELDS[key].help), persist_state="session")


def tick(key: str) -> None:
    """A yes or no."""
    st.toggle(label(key), key=key, help=t(OWN_FIELDS[key].help), persist_state="session")


def select(key: str, names: Mapping[str, str]) -> str:
    """One of some codes, shown by their names."""
    chosen = st.selectbox(
        label(key), list(names), key=key, help=t(OWN_FIELDS[key].help), persist_state="session",
        format_func=lambda code: names.get(code, str(code)),
    )  # fmt: skip
    return str(chosen)


def told_origin(form: str) -> dict[str, str]:
    """Source and date as typed; an own row without a source is refused."""
    return {
        "source": one_line(state.get(f"{form}source") or "", "source"),
        "checked_on": checked_date(state.get(f"{form}checked_on") or state.today(), state.today()),
    }


def upload(key: str) -> bytes:
    """The content of an uploaded file, else the pasted text."""
    file = state.get(f"{key}_file")
    pasted: bytes = file.getvalue() if file is not None else str(state.get(key) or "").encode(errors="replace")
    return pasted


def origin(form: str) -> None:
    """Source and date, which every own row has."""
    left, right = st.columns([2, 1])
    with left:
        line("source", form)
    with right:
        st.date_input(
            label("checked_on"), "today", EARLIEST, state.today(), key=f"{form}checked_on",
            help=t(OWN_FIELDS["checked_on"].help), format="YYYY-MM-DD",
        )  # fmt: skip


def action(body: Callable[..., str]) -> Callable[..., None]:
    """For a button: what it did, or why it did not, is said beside the forms."""

    @wraps(body)
    def guarded(*asked: Any) -> None:
        state.put(**{PROBLEM: None, DONE: None, HIDDEN: (), PLACE: state.get(VIEW)})
        try:
            state.put(**{DONE: body(*asked)})
        except PlimsollError as error:
            state.put(**{PROBLEM: error.message})

    return guarded


def outcome() -> None:
    """What the last button of this view did; a removal can be undone here."""
    if state.get(PLACE) != state.get(VIEW):
        return
    if problem := state.get(PROBLEM):
        st.error(parts.escape(t(problem)), icon=":material/error:")
    if done := state.get(DONE):
        st.success(parts.escape(done), icon=":material/check_circle:")
    if state.get(HIDDEN):
        st.button(t("Undo"), key="catalogue_undo", icon=":material/undo:", on_click=_undo)


@action
def remove(kind: str, chosen: str, name: str) -> str:
    """Hide an own row, and say so."""
    hidden = resources.remove_price(chosen) if kind == "own_price" else resources.remove_own(kind, chosen)
    state.put(**{HIDDEN: hidden})
    return t("{name} is removed. Scenarios saved with it keep it.", name=name)


def _undo() -> None:
    hidden = state.get(HIDDEN) or ()
    _bring_back(hidden)


@action
def _bring_back(hidden: Sequence[Any]) -> str:
    resources.bring_back(tuple(hidden))
    return t("Brought back.")


def own_table(kind: str, rows: Sequence[Mapping[str, str]], names: Mapping[str, str]) -> str | None:
    """The team's rows, one of which can be chosen and removed; the code of the chosen one."""
    parts.section(t("Your own"))
    if not rows:
        st.caption(t("Nothing added yet."))
        return None
    parts.table(rows, key=f"{kind}_table")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if state.get(f"{kind}_chosen") not in names:
            state.put(**{f"{kind}_chosen": next(iter(names))})
        chosen = parts.pick(t("Own row"), names, f"{kind}_chosen")
        st.button(
            t("Remove"), key=f"{kind}_remove", icon=":material/delete:", on_click=remove,
            args=(kind, chosen, names[chosen]),
        )  # fmt: skip
        st.download_button(
            t("Export as CSV"), lambda: resources.store().export_csv(kind), f"{kind}.csv", "text/csv",
            key=f"{kind}_csv", on_click="ignore", icon=":material/download:",
        )  # fmt: skip
    return chosen


def own_rows(kind: str, rows: Sequence[OwnEntry], shown: Sequence[Mapping[str, str]]) -> OwnEntry | None:
    """:func:`own_table` of rows known by their names, whose newest version comes first; the chosen row."""
    chosen = own_table(kind, shown, {row.name: row.name for row in rows})
    return next((row for row in rows if row.name == chosen), None)


def use_button(kind: str, on_click: Callable[..., None], *args: Any, refused: str = "") -> None:
    """Puts the chosen row into the scenario; ``refused`` says why it cannot."""
    st.button(
        t("Use in the scenario"), key=f"{kind}_use", icon=":material/arrow_back:", disabled=bool(refused),
        help=refused or None, on_click=on_click, args=args,
    )  # fmt: skip


def shipped_table(kind: str, rows: Sequence[Mapping[str, str]]) -> None:
    """What ships, and a box to find a row in it."""
    parts.section(t("Shipped with Plimsoll"))
    wanted = st.text_input(t("Find"), key=f"{kind}_find", persist_state="session", icon=":material/search:")
    kept = about_catalogue.found(rows, wanted)
    if kept:
        parts.table(kept, key=f"{kind}_shipped", height=min(TABLE_HEIGHT, HEAD_HEIGHT + ROW_HEIGHT * len(kept)))
    else:
        st.caption(t("No row holds these words."))


def fold(title: str, key: str) -> Any:
    """A form that is drawn only while it is open."""
    return st.expander(title, state.get(key) or False, key=key, icon=":material/add:", on_change="rerun")
