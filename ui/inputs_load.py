"""The load at the side: arrivals and their log, lengths, kinds of requests and their clients."""

from __future__ import annotations

import streamlit as st

from calc.errors import PlimsollError
from data.arrival_log import ArrivalLog, read_arrival_log
from data.case_lengths import lengths_of_log, write_lengths
from data.case_traffic import RECORDED_LENGTHS
from ui import fields, parts, state
from ui.text import t
from ui.typed import pairs_text, trace_text
from ui.typed.trace import MAX_SCREEN_ARRIVALS, parse_trace
from ui.widgets import choice, line, lines, number, share, toggle

KINDS = ("lognormal", "fixed", "uniform", "empirical")
ARRIVALS = ("poisson", "constant", "gamma", "per-minute", "mmpp", "trace", "closed")
MAX_LOG_MB = 5
CLASSES_EXAMPLE = "chat 90% hit=60%\nreports 10% prompt=20000 output=800/2000 max=4"
TRACE_EXAMPLE = "0.0\n0.4\n1.9"
LOG_PROBLEM = "trace_problem"


def arrivals() -> None:
    """How requests come, and the fields of that kind."""
    match choice("arrivals", ARRIVALS):
        case "closed":
            number("concurrency")
        case "per-minute":
            line("minute_rates")
        case "mmpp":
            line("state_rates")
            line("state_stays")
        case "trace":
            _log()
        case kind:
            number("rate")
            if kind == "gamma":
                number("cv")


def _log() -> None:
    """Times pasted or read from a file; what is kept is the log as it was understood."""
    kept = str(state.get("trace") or "")
    if kept:
        _kept_log(kept)
        return
    st.text_area(t("Times, one a line"), key="trace_pasted", height=90, placeholder=TRACE_EXAMPLE, on_change=_paste)
    st.file_uploader(
        t("or a file: one number a line, or a CSV with time, prompt tokens, output tokens"), type=["csv", "txt", "log"],
        key="trace_file", max_upload_size=MAX_LOG_MB, on_change=_upload,
    )  # fmt: skip
    if problem := state.get(LOG_PROBLEM):
        st.error(parts.escape(t(problem)))


def _kept_log(kept: str) -> None:
    log = parse_trace(kept)
    times_s = log["times_s"]
    st.caption(t("{count:count} arrivals over {span:s}.", count=len(times_s), span=times_s[-1] - times_s[0]))
    if any(key in log for key in RECORDED_LENGTHS):
        st.caption(t("Each request keeps its own lengths."))
    if not fields.fits_link(state.values()):
        st.caption(t("Too long for a link: it stays in this session and in saved scenarios."))
    st.button(t("Another log"), key="trace_forget", icon=":material/delete:", on_click=_forget, width="stretch")


def _forget() -> None:
    state.put(trace="", trace_pasted="")


def _paste() -> None:
    _take(str(state.get("trace_pasted") or "").encode(errors="replace"), "log")


def _upload() -> None:
    if (upload := state.get("trace_file")) is not None:
        _take(upload.getvalue(), upload.name)


def _take(content: bytes, name: str) -> None:
    """Keep the log, and let its lengths stand in for the load's where it has them."""
    state.put(**{LOG_PROBLEM: None})
    if not content.strip():
        return
    try:
        log = read_arrival_log(content, name, MAX_SCREEN_ARRIVALS)
    except PlimsollError as error:
        state.put(**{LOG_PROBLEM: error.message})
        return
    given = {key: getattr(log, key) for key in ("times_s", *RECORDED_LENGTHS)}
    state.put(trace=trace_text({key: values for key, values in given.items() if values}), **_lengths_of(log))


def _lengths_of(log: ArrivalLog) -> dict[str, str]:
    values = {}
    for what, tokens in (("prompt", log.prompt_tokens), ("output", log.output_tokens)):
        if tokens:
            values[f"{what}_kind"] = "empirical"
            values[f"{what}_quantiles"] = pairs_text(write_lengths(lengths_of_log(tokens))["quantiles"])
    return values


def both_lengths() -> None:
    """Prompt and output lengths."""
    for what in ("prompt", "output"):
        _lengths(what)


def _lengths(what: str) -> None:
    kind = choice(f"{what}_kind", KINDS)
    if kind == "empirical":
        line(f"{what}_quantiles")
        return
    number(f"{what}_p50")
    if kind != "fixed":
        number(f"{what}_p95")


def clients() -> None:
    """Kinds of requests told apart, and who stops, gives up or tries again."""
    lines("classes", CLASSES_EXAMPLE)
    share("cancel_share")
    number("patience")
    if state.get("patience") is not None:
        number("retries")
        if state.get("retries"):
            number("retry_after")
    number("num_requests")
    toggle("http")
