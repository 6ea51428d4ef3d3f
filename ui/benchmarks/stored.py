"""What is stored: files and load points with findings, removing and its undo, tables to take away, who did what."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from data.store import StoredFile
from ui import parts, resources, state
from ui.benchmarks import facts, found, gpu_logs, ledger, validity
from ui.benchmarks.found import Kept
from ui.resources import Asked
from ui.story import about_poc, about_stored
from ui.text import t

REMOVED = "_stored_removed"
LONG = 400
"""Pixels of a long table; the rest scrolls."""
MANY_ROWS = 9


def show(asked: Asked) -> None:
    """Files, load points, exports, and the record of what was removed."""
    kept, files = found.kept(asked), found.files()
    if files:
        _files(files, kept)
    else:
        st.info(t("Nothing is stored yet: upload a result first."))
    if state.get(REMOVED):
        st.button(t("Bring the removed file back"), key="stored_undo", icon=":material/undo:", on_click=_undo)
    if files:
        _runs(kept)
        gpu_logs.stored(kept.stored)
    ledger.exports()
    ledger.trail()


def _table(rows: list[Mapping[str, str]], key: str) -> None:
    parts.table(rows, key=key, **({"height": LONG} if len(rows) > MANY_ROWS else {}))


def _files(files: tuple[StoredFile, ...], kept: Kept) -> None:
    parts.section(t("Files"))
    _table(about_stored.file_rows(files, kept.stored, gpu_logs.kept()), "stored_files")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = {file.file_id: f"{file.name} · {file.uploaded_at[:10]}" for file in files}
        chosen = parts.pick(t("File"), names, "stored_file")
        st.text_input(t("Why (others see it)"), key="stored_reason", max_chars=200)
        st.button(t("Remove"), key="stored_remove", icon=":material/delete:", on_click=_remove, args=(chosen,))


@state.callback
def _remove(file_id: str) -> None:
    state.put(**{REMOVED: resources.store().delete("file", file_id, reason=state.get("stored_reason") or "")})


@state.callback
def _undo() -> None:
    resources.store().undo(state.get(REMOVED))
    state.put(**{REMOVED: None})


def _runs(kept: Kept) -> None:
    if not kept.stored:
        return
    parts.section(t("What files leave out"), t("Without strategy and repetition a run has no place in the matrix."))
    facts.choose(kept.stored)
    parts.section(t("Load points"))
    chosen = validity.table(kept.stored, "stored_runs", [about_poc.place_name(run) for run in kept.placed])
    validity.show(chosen)
    for message in chosen.contradictions if chosen else ():
        st.warning(t(message), icon=":material/compare_arrows:")
