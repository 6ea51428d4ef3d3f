"""The engine's own start-up log beside the estimate, and in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from calc.errors import PlimsollError
from calc.memory import MemoryReport
from calc.startup.comparison import LogComparison, compare_log
from calc.startup.log import StartupLog
from calc.startup.match import is_comparable
from calc.startup.start import MeasuredStart, measured_start
from data import catalogue
from data.case_measured import log_answer, measured_text, write_measured
from data.case_of_log import case_of_log
from data.formats.startup_log import read_startup_bytes
from data.store import content_id
from ui import parts, resources, state
from ui.resources import Asked
from ui.story import about_startup_log
from ui.text import t

SAMPLE = "sample-startup-vllm.log"
PASTED = "pasted.log"
MAX_UPLOAD_MB = 25
READ, PROBLEM, REMOVED = "log_read", "log_problem", "log_removed"


@dataclass(frozen=True, kw_only=True)
class ReadLog:
    """A log that was read in this session; its text is gone."""

    log_id: str
    name: str
    log: StartupLog
    is_sample: bool = False


def show(asked: Asked, memory: MemoryReport) -> None:
    """Which memory counts, a field for a log, the comparison, and the stored logs."""
    _in_force(asked, memory)
    _desk()
    read = state.get(READ)
    if isinstance(read, ReadLog):
        _read_log(asked, read)
    _stored(asked, memory)


def _in_force(asked: Asked, memory: MemoryReport) -> None:
    carried = asked.scenario.deployment.measured_memory
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(parts.escape(about_startup_log.in_force(memory, carried)))
        if memory.log_id:
            st.button(t("Use the estimate again"), key="log_estimate", icon=":material/undo:", on_click=_use,
                      args=(asked, False))  # fmt: skip
        elif carried is not None and not carried.used:
            st.button(t("Use the measured memory"), key="log_measured", icon=":material/straighten:", on_click=_use,
                      args=(asked, True))  # fmt: skip


@state.callback
def _use(asked: Asked, used: bool) -> None:
    carried = asked.scenario.deployment.measured_memory
    if carried is not None:
        state.put(measured=measured_text(replace(carried, used=used)))


def _desk() -> None:
    parts.section(
        t("Paste your log"),
        t(
            "What vLLM, SGLang or TensorRT-LLM writes while it starts. Only figures and the words they stand in are "
            "kept; the text is not."
        ),
    )
    st.text_area(t("Start-up log"), key="log_text", height=140, on_change=_read_pasted)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.file_uploader(
            t("Log file"), type=["log", "txt", "json", "jsonl", "out"], key="log_file",
            max_upload_size=MAX_UPLOAD_MB, on_change=_read_uploaded,
        )  # fmt: skip
        st.button(t("Try the sample log"), key="log_sample", icon=":material/science:", on_click=_read_sample)
    if problem := state.get(PROBLEM):
        st.error(t(problem), icon=":material/error:")


def _read_pasted() -> None:
    text = str(state.get("log_text") or "")
    if text.strip():
        _read(text.encode("utf-8", "replace"), PASTED)
        state.put(log_text="")


def _read_uploaded() -> None:
    upload = state.get("log_file")
    if upload is not None:
        _read(upload.getvalue(), upload.name)


def _read_sample() -> None:
    _read(resources.sample(SAMPLE), SAMPLE, is_sample=True)


def _read(content: bytes, name: str, *, is_sample: bool = False) -> None:
    state.put(**{READ: None, PROBLEM: None})
    try:
        log = read_startup_bytes(content, name)
    except PlimsollError as error:
        state.put(**{PROBLEM: error.message})
        return
    state.put(**{READ: ReadLog(log_id=content_id(content), name=name, log=log, is_sample=is_sample)})


@st.cache_resource(
    max_entries=resources.KEPT, show_spinner=False,
    hash_funcs={Asked: lambda asked: asked.key, ReadLog: lambda read: read.log_id},
)  # fmt: skip
def _compared(asked: Asked, read: ReadLog, day: str) -> tuple[MeasuredStart, LogComparison | None]:
    names = {entry.name for entry in catalogue.models().values()}
    start = measured_start(read.log, asked.scenario.deployment, log_id=read.log_id, date=day, known_models=names)
    if not is_comparable(start.memory, asked.scenario.deployment):
        return start, None
    return start, compare_log(read.log, start.memory, asked.scenario.deployment)


def _read_log(asked: Asked, read: ReadLog) -> None:
    start, comparison = _compared(asked, read, state.today().isoformat())
    sentence = parts.escape(about_startup_log.headline(read.log, comparison))
    (st.error if read.log.refusals else st.info)(f"**{sentence}**")
    if read.is_sample:
        st.caption(t("Made up, to show the form; not measurements."))
    said = [about_startup_log.several(read.log), t(start.note) if start.note else ""]
    if comparison is not None:
        parts.prose(about_startup_log.table(comparison))
        _reasons(about_startup_log.reasons(comparison))
        said.insert(0, about_startup_log.other_settings(comparison))
    else:
        said.insert(0, t("The log is of another engine or model: make it the scenario to compare them."))
    parts.remarks(filter(None, said))
    with st.container(horizontal=True):
        st.button(
            t("Store as measured"), key="log_store", type="primary", icon=":material/save:", disabled=read.is_sample,
            on_click=_store, args=(read, start), help=t("From then on it is used wherever it matches the scenario."),
        )  # fmt: skip
        st.button(
            t("Make this the scenario"), key="log_scenario", icon=":material/input:", on_click=_make_scenario,
            args=(asked, start),
        )  # fmt: skip
    with st.expander(t("What was read"), icon=":material/segment:"):
        _lines(about_startup_log.lines(read.log))


def _reasons(why: Mapping[str, str]) -> None:
    """Below the figures, so that a phone shows those side by side."""
    lines = [f":gray[**{parts.escape(part)}**  {parts.escape(words)}]" for part, words in why.items()]
    with st.expander(t("Why"), icon=":material/difference:"):
        st.markdown("  \n".join(lines))


def _lines(rows: about_startup_log.Rows) -> None:
    """Each figure with its words below, so that a phone shows both."""
    shown = []
    for row in rows:
        figure, value, (_, words) = row.items()
        below = f"  \n:gray[{parts.escape(words)}]"
        shown.append({figure[0]: parts.escape(figure[1]), value[0]: f"**{parts.escape(value[1])}**{below}"})
    st.table(shown, hide_index=True, border="horizontal", width="stretch")


@state.callback
def _store(read: ReadLog, start: MeasuredStart) -> None:
    resources.store_log(log_answer(read.log), write_measured(start.memory), read.name)
    state.put(measured="")


@state.callback
def _make_scenario(asked: Asked, start: MeasuredStart) -> None:
    state.load(case_of_log(state.canonical(asked), start.memory, asked.scenario.deployment.gpu))


def _stored(asked: Asked, memory: MemoryReport) -> None:
    logs = resources.startup_logs()
    removed = state.get(REMOVED)
    if removed:
        st.button(t("Bring the removed log back"), key="log_restore", icon=":material/undo:", on_click=_restore)
    if not logs:
        return
    parts.section(t("Stored logs"))
    parts.prose(about_startup_log.stored_rows(logs, memory.log_id))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = parts.pick(t("Stored log"), about_startup_log.stored_names(logs), "log_chosen")
        st.button(t("Remove"), key="log_remove", icon=":material/delete:", on_click=_remove, args=(asked, chosen))
        st.download_button(
            t("Stored logs as CSV"), resources.logs_csv, "startup_logs.csv", "text/csv", key="log_csv",
            on_click="ignore",
        )  # fmt: skip


@state.callback
def _remove(asked: Asked, log_id: str) -> None:
    state.put(**{REMOVED: resources.remove_log(log_id)})
    carried = asked.scenario.deployment.measured_memory
    if carried is not None and carried.log_id == log_id:
        state.put(measured="")


@state.callback
def _restore() -> None:
    resources.restore_log(state.get(REMOVED))
    state.put(**{REMOVED: None})
