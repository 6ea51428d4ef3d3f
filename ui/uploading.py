"""The upload desk: choose a file, see what was understood, correct the columns, store it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from calc.errors import PlimsollError
from calc.messages import Message, msg
from data.formats import FIELD_CHOICES, propose_columns, read
from data.records import ReadResult
from data.store import content_id
from ui import parts, resources, state
from ui.benchmarks import runs
from ui.text import t

MAX_UPLOAD_MB = 200
SAMPLES = ("sample-vllm-serve.json", "sample-sweep-en.csv", "sample-sweep-zh-gb18030.csv")
SEVERITY = {"E": st.error, "W": st.warning, "I": st.info}


def desk() -> None:
    """Uploader, samples and the preview of the chosen file."""
    st.caption(
        t(
            "Accepted: vllm bench serve JSON (old, new, detailed), and tables as CSV or TSV with English or Chinese "
            "headers in UTF-8, UTF-16 or GB18030; up to {size} MB. Prompts and generated text are dropped.",
            size=MAX_UPLOAD_MB,
        )
    )
    upload = st.file_uploader(
        t("Benchmark result"),
        type=["json", "jsonl", "csv", "tsv", "txt"],
        key="bench_file",
        max_upload_size=MAX_UPLOAD_MB,
    )
    with st.popover(t("Sample files"), icon=":material/science:"):
        st.caption(t("Made up, to show the form; not measurements."))
        for name in SAMPLES:
            st.download_button(name, resources.sample(name), name, key=f"sample_{name}", on_click="ignore")
    if upload is not None:
        _preview(upload.getvalue(), upload.name)
    if stored := state.get("bench_stored"):
        st.success(t(stored), icon=":material/check:")


def _preview(content: bytes, name: str) -> None:
    try:
        columns = _columns(content, name)
        result = read(content, name, columns)
    except PlimsollError as error:
        st.error(t(error.message), icon=":material/error:")
        return
    if result.startup is not None:
        st.info(t("This is the start-up log of an engine: give it on the Memory page, under Engine log."))
        return
    st.markdown("**" + t("What was understood") + "** · " + parts.escape(result.format))
    parts.table(runs.rows(result.runs), key="bench_preview")
    for warning in result.warnings:
        SEVERITY[warning.severity](t(warning.text))
    if result.problems:
        st.warning(t("{number:count} rows were left out:", number=len(result.problems)))
        parts.table(runs.problems(result), key="bench_problems")
    st.button(
        t("Store {number:count} load points", number=len(result.runs)), key="bench_store", type="primary",
        icon=":material/save:", disabled=not result.runs, on_click=_store, args=(result, content, columns),
    )  # fmt: skip


def _columns(content: bytes, name: str) -> Mapping[str, str] | None:
    """The column mapping as the user left it; ``None`` for files that are no tables."""
    guesses = propose_columns(content, name)
    if not guesses:
        return None
    st.markdown("**" + t("Columns") + "** · " + t("correct what was guessed wrong before storing"))
    rows: list[dict[str, str | bool]] = [
        {
            "header": guess.header,
            "field": guess.choice,
            "assumed": guess.assumed,
            "example": ", ".join(guess.samples),
        }
        for guess in guesses
    ]
    edited = st.data_editor(
        rows,
        key=f"bench_columns_{content_id(content)[:12]}",
        hide_index=True,
        width="stretch",
        disabled=["header", "assumed", "example"],
        column_config={
            "header": st.column_config.TextColumn(t("Column in the file")),
            "field": st.column_config.SelectboxColumn(
                t("Means"), options=list(FIELD_CHOICES), required=True, format_func=runs.meaning
            ),
            "assumed": st.column_config.CheckboxColumn(t("Guessed")),
            "example": st.column_config.TextColumn(t("Examples")),
        },
    )
    return {str(row["header"]): str(row["field"]) for row in edited}


@state.callback
def _store(result: ReadResult, content: bytes, columns: Mapping[str, str] | None) -> None:
    outcome = resources.store().add_file(result, file_id=content_id(content, columns), size_bytes=len(content))
    state.put(bench_stored=_said(outcome.already_there, len(outcome.stored_ids)))


def _said(already_there: bool, number: int) -> Message:
    if already_there:
        return msg("This file was stored before; nothing was doubled.")
    return msg("Stored {number:count} load points.", number=number)
