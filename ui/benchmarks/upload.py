"""Upload: files, a folder or an archive; what was understood of each; columns to be settled; then it is stored."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from data.bundle_answer import reading_id
from data.formats import records
from data.formats.bundle import BundleItem
from data.records import ReadResult
from ui import parts, resources, state
from ui.benchmarks import columns, facts, gpu_logs, reading, runs
from ui.benchmarks.reading import Mark
from ui.resources import Asked
from ui.story import about_upload, about_validity
from ui.text import t

MAX_UPLOAD_MB = 200
SAMPLES = ("sample-vllm-serve.json", "sample-sweep-en.csv", "sample-sweep-zh-gb18030.csv")
_TEXTS = ("json", "jsonl", "csv", "tsv", "txt", "log", "md", "yaml", "yml", "prom", "metrics")
TYPES = [*_TEXTS, "xlsx", "xlsm", "zip", "gz", "db", "sqlite"]
MOST_ERRORS = 5
"""Refused files said in boxes of their own; more are a table."""
STORED, STORED_RUNS, HINTS, STORED_LOGS = "bench_stored", "bench_stored_runs", "bench_hints", "bench_stored_logs"
LONG, MANY_ROWS = 400, 9
"""Pixels of a table of more rows than that; the rest scrolls."""


def show(asked: Asked) -> None:  # noqa: ARG001 - same signature for all views
    """Choose files, see what was understood, store it, and say what the files leave out."""
    uploads = _uploads()
    if uploads:
        _desk(uploads)
    if said := state.get(STORED):
        st.success(t(said), icon=":material/check:")
        if ids := state.get(STORED_RUNS):
            parts.section(t("What the files leave out"))
            facts.ask(ids, state.get(HINTS))
        if logs := [one for one in gpu_logs.kept() if one.gpu_log_id in (state.get(STORED_LOGS) or ())]:
            parts.section(t("During which run"), t("A log counts for the runs during which it was taken."))
            gpu_logs.ask(logs, resources.runs())


def _uploads() -> list[UploadedFile]:
    st.caption(
        t(
            "Results of {tools}, as JSON, CSV, YAML, Excel, SQLite, metrics texts or packed as ZIP or gzip; tables of "
            "your own with English, Chinese or German headers. Up to {size} MB each; prompts and answers are dropped.",
            tools="vLLM, SGLang, GuideLLM, AIPerf, inference-perf, llm-d, llmperf, evalscope, TensorRT-LLM, k6, "
            "Locust, nvidia-smi, gpustat, …",
            size=MAX_UPLOAD_MB,
        )
    )
    ways = {"files": t("Files"), "folder": t("A whole folder")}
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        way = parts.switch(t("Upload as"), ways, "bench_way", "files")
        _samples()
    if way == "folder":
        return st.file_uploader(
            t("Folder with results"), accept_multiple_files="directory", key="bench_folder", type=TYPES,
            max_upload_size=MAX_UPLOAD_MB,
        )  # fmt: skip
    return st.file_uploader(
        t("Benchmark results"), accept_multiple_files=True, key="bench_file", type=TYPES, max_upload_size=MAX_UPLOAD_MB,
    )  # fmt: skip


def _samples() -> None:
    with st.popover(t("Sample files"), icon=":material/science:"):
        st.caption(t("Made up, to show the form; not measurements."))
        for name in SAMPLES:
            st.download_button(name, resources.sample(name), name, key=f"sample_{name}", on_click="ignore")


def _desk(uploads: Sequence[UploadedFile]) -> None:
    mark = reading.mark_of(uploads)
    items = reading.read_uploads(uploads, columns.corrections(mark))
    _refused([item for item in items if item.error is not None])
    found = sorted(
        (item for item in items if item.result is not None and item.belongs_to is None),
        key=lambda item: not item.to_store,
    )
    if len(items) > 1:
        st.markdown(f"**{parts.escape(about_upload.outline(items))}**")
    chosen = _choose([item for item in items if item.to_store])
    _others(items)
    if found:
        _look(mark, found)
    if found:
        st.button(
            t("Store {what}", what=about_upload.amount(chosen)), key="bench_store", type="primary",
            icon=":material/save:", disabled=not any(about_upload.number(chosen)), on_click=_store, args=(mark, chosen),
        )  # fmt: skip


def _refused(items: Sequence[BundleItem]) -> None:
    sentences = [t(item.error) for item in items if item.error is not None]
    for sentence in sentences[:MOST_ERRORS]:
        st.error(parts.escape(sentence), icon=":material/error:")
    if len(sentences) > MOST_ERRORS:
        with st.expander(t("{number:count} more files could not be read", number=len(sentences) - MOST_ERRORS)):
            parts.bullets(sentences[MOST_ERRORS:])


def _choose(items: Sequence[BundleItem]) -> list[BundleItem]:
    """The files to store: all of them unless some are unticked."""
    if len(items) < 2:  # noqa: PLR2004 - one file needs no choice
        return list(items)
    rows = [{"store": True, **about_upload.file_row(item)} for item in items]
    st.caption(parts.escape(about_upload.severity_help()))
    edited = st.data_editor(
        rows,
        key=f"bench_chosen_{abs(hash(tuple(item.path for item in items))):x}",
        hide_index=True,
        width="stretch",
        height=LONG if len(rows) > MANY_ROWS else "content",
        disabled=[name for name in rows[0] if name != "store"],
        column_config={"store": st.column_config.CheckboxColumn(t("Store"), width="small")},
    )
    return [item for item, row in zip(items, edited, strict=True) if row["store"]]


def _others(items: Sequence[BundleItem]) -> None:
    lines = about_upload.others(items)
    if lines:
        with st.expander(t("{number:count} files add nothing of their own", number=len(lines))):
            parts.bullets(lines)


def _look(mark: Mark, items: Sequence[BundleItem]) -> None:
    """One file in full."""
    names = {str(index): item.path for index, item in enumerate(items)}
    index = parts.pick(t("Look at"), names, f"bench_look_{len(items)}") if len(items) > 1 else "0"
    item = items[int(index)]
    if item.result is None:
        return
    columns.ask(mark, item)
    st.markdown("**" + t("What was understood") + "** · " + parts.escape(about_upload.kind(item.result)))
    if item.result.startup is not None:
        st.info(t("This is the start-up log of an engine: give it on the Memory page, under Engine log."))
        return
    _figures(item.result)
    _findings(item.result)
    if said := about_upload.suggestions(item):
        st.caption(f":material/lightbulb: {parts.escape(said)}")
    if item.result.problems:
        st.warning(t("{number:count} rows were left out:", number=len(item.result.problems)))
        rows = runs.problems(item.result)
        parts.table(rows, key="bench_problems", height=LONG if len(rows) > MANY_ROWS else "content")


def _figures(result: ReadResult) -> None:
    if result.gpu_logs:
        gpu_logs.show(result.gpu_logs[0])
    elif result.runs:
        rows = runs.rows(result.runs)
        parts.table(rows, key="bench_preview", height=LONG if len(rows) > MANY_ROWS else "content")
    elif found := records(result):
        rows = [{t("Figure"): name, t("Value"): str(value)} for name, value in found[0].items()]
        parts.table(rows, key="bench_record", height=LONG if len(rows) > MANY_ROWS else "content")


def _findings(result: ReadResult) -> None:
    for warning in about_validity.gravest_first(result.warnings):
        colour, icon = about_validity.COLOURS[warning.severity], about_validity.ICONS[warning.severity]
        name = parts.escape(f"{about_validity.name(warning.code)} · {about_validity.severity(warning)}")
        st.markdown(f":{colour}[{icon} **{name}**]  \n{parts.escape(t(warning.text))}")


@state.callback
def _store(mark: Mark, items: Sequence[BundleItem]) -> None:
    corrected = columns.corrections(mark)
    new: list[BundleItem] = []
    known = 0
    run_ids: list[str] = []
    log_ids: list[str] = []
    for item in items:
        if item.result is None or item.result.startup is not None:
            continue
        file_id = reading_id(item, corrected.get(item.path))
        outcome = resources.store().add_file(item.result, file_id=file_id, size_bytes=item.file.size_bytes)
        known += outcome.already_there
        new += [] if outcome.already_there else [item]
        run_ids += outcome.stored_ids[: len(item.result.runs)]
        log_ids += outcome.stored_ids if item.result.gpu_logs else ()
    hints = items[0].suggestions if len(items) == 1 else None
    said = about_upload.stored(new, known)
    state.put(**{STORED: said, STORED_RUNS: tuple(run_ids), HINTS: hints, STORED_LOGS: tuple(log_ids)})
