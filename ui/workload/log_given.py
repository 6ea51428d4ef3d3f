"""A log that is given: uploaded or chosen from the operator's folder, understood, settled, and loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import streamlit as st

from calc.errors import PlimsollError
from data.logs.given import GivenLog
from data.logs.meanings import CHOICES
from data.logs.understood import Understood
from ui import parts, state
from ui.story import about_log_given
from ui.text import t
from ui.workload import logs_found
from ui.workload.desk import LogJob

MAX_UPLOAD_MB = 200
TYPES = ["csv", "tsv", "txt", "jsonl", "ndjson", "json", "parquet", "gz"]


def show() -> None:
    """Give a log, or watch the one on its way."""
    desk = logs_found.desk()
    _said(desk.take())
    if desk.job is not None:
        _progress()
        return
    with st.container(border=True):
        given = _choose()
        if given is not None:
            _settle(*given)


def _said(job: LogJob | None) -> None:
    """What became of the last load, said once; the new log is the one shown."""
    if job is None:
        return
    if job.problem is not None:
        st.warning(parts.escape(t(job.problem)), icon=":material/info:")
    elif job.added is not None:
        logs_found.logs.clear()
        state.put(log_chosen=job.added.log_id)
        text = (
            t("{name} was stored before: nothing was added.", name=job.name)
            if job.added.already_there
            else t("{name}: {requests:count} requests were stored, {problems:count} rows left out.", name=job.name,
                   requests=job.added.requests, problems=job.added.problem_rows)
        )  # fmt: skip
        st.success(parts.escape(text), icon=":material/check:")


def _progress() -> None:
    @state.fragment(run_every=0.5)
    def progress() -> None:
        """Ticks by itself; when the load is over the page runs again."""
        job = logs_found.desk().job
        if job is None or job.over:
            st.rerun()
            return
        told = t("Loading {name}: {done:pct}, {elapsed:s}", name=job.name, done=job.share, elapsed=job.elapsed_s)
        st.progress(job.share, parts.escape(told))
        st.button(t("Cancel"), key="log_cancel", on_click=job.stop.set, icon=":material/stop:")

    progress()


def _choose() -> tuple[str, GivenLog] | None:
    """The file and a key for its content."""
    st.caption(
        t(
            "CSV, TSV, JSON Lines or Parquet, plain or gzipped, a row for each request: its time, prompt and output "
            "tokens, and what else is known. Traces of {traces} are recognised. Prompts and answers are never loaded.",
            traces="Azure, Mooncake, BurstGPT, Bailian, Dynamo, ServeGen",
        )
    )
    files = {path.name: path for path in logs_found.folder_files()}
    ways = {"upload": t("Upload"), "folder": t("From the server's folder")}
    if files and parts.switch(t("Give"), ways, "log_from", "upload") == "folder":
        path = files[parts.pick(t("File"), {name: name for name in files}, "log_file_chosen")]
        given = GivenLog.of_path(path)
        return f"{path}:{given.size_bytes}:{path.stat().st_mtime_ns}", given
    upload = st.file_uploader(t("Request log"), key="log_file", type=TYPES, max_upload_size=MAX_UPLOAD_MB)
    if not files:
        st.caption(t("Larger logs: the operator can name a folder of them in the configuration."))
    if upload is None:
        return None
    return upload.file_id, GivenLog.of_bytes(upload.getvalue(), upload.name)


def _settle(key: str, given: GivenLog) -> None:
    """What was understood, what is asked, and the button."""
    mark = hashlib.sha256(key.encode()).hexdigest()[:12]
    declared = {code: str(value) for code, value in (state.get(f"_log_declared_{mark}") or {}).items()}
    try:
        log = logs_found.understood(key, tuple(sorted(declared.items())), given)
    except PlimsollError as error:
        st.error(parts.escape(t(error.message)), icon=":material/error:")
        return
    st.markdown(f"**{parts.escape(about_log_given.understood_sentence(log))}**")
    if log.columns:
        parts.table(about_log_given.columns(log), f"log_columns_{mark}")
    parts.notes(log.notes)
    if log.missing:
        st.warning(parts.escape(about_log_given.missing(log)), icon=":material/help:")
    _ask(log, declared, mark)
    st.button(
        t("Load this log"), key=f"log_load_{mark}", type="primary", icon=":material/upload:", on_click=_begin,
        args=(given, declared), disabled=bool(log.missing),
    )  # fmt: skip


def _ask(log: Understood, declared: Mapping[str, str], mark: str) -> None:
    """Questions in sight; every other column in a drawer."""
    for question in log.questions:
        options = list(dict.fromkeys([question.assumed, *question.options]))
        st.selectbox(
            parts.escape(t(question.text)), options, key=f"log_ask_{mark}_{question.header}", on_change=_declare,
            format_func=about_log_given.choice, args=(mark, question.header, f"log_ask_{mark}_{question.header}"),
        )  # fmt: skip
    asked = {question.header for question in log.questions}
    headers = [header for header in log.sample.headers if header not in asked]
    taken = {column.header: column.code for column in log.columns}
    with st.expander(t("What the columns mean"), expanded=bool(log.missing), icon=":material/view_column:"):
        header = st.selectbox(t("Column"), headers, key=f"log_header_{mark}") if headers else None
        if header is not None:
            code = declared.get(header) or taken.get(header, "ignore")
            options = list(dict.fromkeys([code, *CHOICES]))
            place = f"log_meaning_{mark}_{headers.index(header)}"
            st.selectbox(
                t("Means"), options, key=place, format_func=about_log_given.choice, on_change=_declare,
                args=(mark, header, place),
            )  # fmt: skip


@state.callback
def _declare(mark: str, header: str, place: str) -> None:
    """Keep what a visitor said of a column; the file is understood again with it."""
    key = f"_log_declared_{mark}"
    state.put(**{key: {**(state.get(key) or {}), header: str(state.get(place))}})


@state.callback
def _begin(given: GivenLog, declared: Mapping[str, str]) -> None:
    logs_found.desk().begin(given, declared, done=lambda: None)
