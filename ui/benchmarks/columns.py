"""What the columns of a hand-made table mean: our guess, open questions first, corrected before storing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from data.formats import FIELD_CHOICES, ColumnGuess
from data.formats.bundle import BundleItem
from data.formats.generic_csv import FORMAT as CSV
from data.formats.headers import OPEN
from data.formats.sheets import FORMAT as XLSX
from ui import parts, state
from ui.benchmarks import reading, runs
from ui.benchmarks.reading import Mark
from ui.text import t

CORRECTED = "bench_corrected"
"""Which uploads, and path → header → meaning."""


def corrections(mark: Mark) -> dict[str, dict[str, str]]:
    """What was corrected in these uploads."""
    known, given = state.get(CORRECTED, ((), {}))
    return dict(given) if known == mark else {}


def ask(mark: Mark, item: BundleItem) -> None:
    """The table of columns, or nothing for a tool's own format."""
    if item.result is None or item.result.format not in (CSV, XLSX):
        return  # a tool's own file may be large, and there is nothing to ask
    guessed = reading.guesses(mark, item)
    given = corrections(mark).get(item.path, {})
    asked = [guess.header for guess in guessed if guess.code in OPEN and guess.header not in given]
    st.markdown("**" + t("Columns") + "** · " + t("correct what was guessed wrong before storing"))
    if asked:
        names = t(", ").join(asked)
        st.warning(
            parts.escape(t("These headers leave open what is meant, choose it: {names}", names=names)),
            icon=":material/help:",
        )
    _table(mark, item, guessed, given)


def _table(mark: Mark, item: BundleItem, guessed: Sequence[ColumnGuess], given: Mapping[str, str]) -> None:
    rows: list[dict[str, str | bool]] = [
        {
            "header": guess.header,
            "field": given.get(guess.header, guess.choice),
            "assumed": guess.assumed and guess.header not in given,
            "example": ", ".join(guess.samples),
        }
        for guess in guessed
    ]
    key = f"bench_columns_{abs(hash((mark, item.path))):x}"
    st.data_editor(
        rows,
        key=key,
        hide_index=True,
        width="stretch",
        disabled=["header", "assumed", "example"],
        on_change=_correct,
        args=(key, mark, item.path, tuple(guessed)),
        column_config={
            "header": st.column_config.TextColumn(t("Column in the file")),
            "field": st.column_config.SelectboxColumn(
                t("Means"), options=list(FIELD_CHOICES), required=True, format_func=runs.meaning
            ),
            "assumed": st.column_config.CheckboxColumn(t("Guessed")),
            "example": st.column_config.TextColumn(t("Examples")),
        },
    )


@state.callback
def _correct(key: str, mark: Mark, path: str, guessed: Sequence[ColumnGuess]) -> None:
    given = corrections(mark)
    edited = edits(guessed, state.get(key)["edited_rows"])
    given[path] = reading.changed(guessed, {**given.get(path, {}), **edited})
    state.put(**{CORRECTED: (mark, given)})


def edits(guessed: Sequence[ColumnGuess], rows: Mapping[int, Mapping[str, object]]) -> dict[str, str]:
    """Header → the meaning chosen in its row."""
    return {guessed[int(row)].header: str(cells["field"]) for row, cells in rows.items() if "field" in cells}
