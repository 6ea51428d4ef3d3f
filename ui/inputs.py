"""The scenario at the side of every page: one keyed, linkable widget per field, in sections that fold away."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from calc.errors import PlimsollError
from data import catalogue
from data.case_workload import write_slo, write_workload
from data.own_model import read_model
from ui import fields, inputs_load, inputs_serving, parts, pricing, state, text
from ui import format as show
from ui.text import t
from ui.widgets import choice, line, number, share, toggle, word

PERCENTILES = (0.5, 0.9, 0.95, 0.99)
KV_DTYPES = ("auto", "bf16", "fp8", "nvfp4")
WEIGHT_DTYPES = ("auto", "bf16", "fp8", "int8", "int4", "nvfp4")
FILLED_BY_PRESET = (
    "prompt_",
    "output_",
    "slo_",
    "arrivals",
    "rate",
    "concurrency",
    "cv",
    "minute_rates",
    "hit",
    "perc",
)
"""Beginnings of the keys a business type fills in."""


def sidebar(page: str) -> None:
    """Draw the scenario's fields in the sidebar; ``state.current()`` reads them, drawn or folded away.

    ``page`` (its URL path) decides which section begins unfolded there.
    """
    with st.sidebar:
        _language()
        _model()
        _gpus()
        _load()
        _section(page, "lengths", t("Lengths"), "straighten", inputs_load.both_lengths)
        _section(page, "clients", t("Kinds of requests and clients"), "groups", inputs_load.clients)
        _section(page, "targets", t("Targets (SLO)"), "flag", _targets)
        _section(page, "engine", t("Engine"), "settings", _engine)
        _section(page, "details", t("Engine details"), "tune", inputs_serving.engine_details)
        _section(page, "serving", t("Serving"), "hub", inputs_serving.serving)
        _section(page, "prices", t("Name and price"), "sell", _prices)
    state.write_link()


UNFOLDED = {"workload": "lengths", "memory": "engine", "latency": "targets", "alternatives": "prices"}
"""The section that a page's question is about."""


def _section(page: str, name: str, title: str, icon: str, draw: Callable[[], None]) -> None:
    """A foldable group of fields. A folded one is not drawn, which keeps every page quick; its values stay."""
    expander = st.expander(
        title, UNFOLDED.get(page) == name, key=f"fold_{page}_{name}", icon=f":material/{icon}:", on_change="rerun"
    )
    if expander.open:
        with expander:
            draw()


def _language() -> None:
    st.segmented_control(
        "Language / 语言", list(text.LANGUAGES), required=True, key=state.LANGUAGE_KEY, persist_state="session",
        format_func=lambda code: text.LANGUAGES[code], label_visibility="collapsed",
    )  # fmt: skip


def _model() -> None:
    own = state.own_options("own_model", state.get("model"))
    options = [*own, *sorted(catalogue.models(), key=str.lower)]
    choice("model", options, format_func=lambda code: own.get(code, str(code)))
    popover = st.popover(
        t("Use a config.json"),
        key="own_model_popover",
        icon=":material/data_object:",
        width="stretch",
        on_change="rerun",
    )
    if popover.open:
        with popover:
            _own_model_form()


def _own_model_form() -> None:
    st.caption(t("Paste or upload the config.json of a model on the Hub. It is stored here and nowhere else."))
    st.text_input(t("Name"), key="own_model_name", placeholder="team/model", persist_state="session")
    st.text_area("config.json", key="own_model_text", height=160, persist_state="session")
    st.file_uploader("config.json", type=["json"], key="own_model_file", max_upload_size=2)
    st.button(t("Add model"), key="own_model_add", on_click=_add_own_model, width="stretch")
    if problem := state.get("own_model_problem"):
        st.error(t(problem))


def _add_own_model() -> None:
    state.put(own_model_problem=None)
    upload = state.get("own_model_file")
    content = upload.getvalue() if upload is not None else str(state.get("own_model_text", "")).encode(errors="replace")
    try:
        pasted = read_model(content, name=str(state.get("own_model_name") or ""))
        pasted.spec()
        state.add_own_model(pasted.name, pasted.entry)
    except PlimsollError as error:
        state.put(own_model_problem=error.message)


def _gpus() -> None:
    own = state.own_options("own_gpu", state.get("gpu"))
    names = own | {code: gpu.name for code, gpu in catalogue.gpus().items()}
    chosen = choice(
        "gpu", [*names, "own"], format_func=lambda code: names.get(code, word(code)), on_change=state.fill_price
    )
    if chosen == "own":
        number("own_memory")
        for key in ("own_bandwidth", "own_bf16", "own_fp8", "own_link"):
            number(key)
        st.caption(t("To keep and share these figures, store them on the Catalogue page."))
        if (state.get("tp") or 1) > 1 and state.get("own_link") is None:
            st.caption(t("With TP above 1, latency needs the GPU-to-GPU link too."))
    left, middle, right = st.columns(3)
    with left:
        number("gpus")
    with middle:
        number("tp")
    with right:
        number("pp")


def _fill_preset() -> None:
    code = state.get("preset")
    if code in catalogue.presets():
        state.put(**preset_values(catalogue.presets()[code]))


def preset_values(preset: catalogue.Preset) -> fields.Values:
    """Widget values of a business type's load and targets."""
    case = {"model": "", "gpu": "", "workload": write_workload(preset.workload), "slo": write_slo(preset.slo)}
    return {key: value for key, value in fields.to_values(case).items() if key.startswith(FILLED_BY_PRESET)}


def _load() -> None:
    choice("preset", ["custom", *catalogue.presets()], on_change=_fill_preset)
    inputs_load.arrivals()
    share("hit")


def _targets() -> None:
    for key in ("slo_ttft", "slo_itl", "slo_e2e"):
        number(key)
    choice("percentile", PERCENTILES, format_func=show.percentile_name)


def _forget_version() -> None:
    state.put(version=fields.NEWEST)


def _engine() -> None:
    names = list(dict.fromkeys(row.id for row in catalogue.engines()))
    engine = choice("engine", names, on_change=_forget_version)
    versions = [row.version for row in catalogue.engines() if row.id == engine]
    choice("version", [fields.NEWEST, *reversed(versions)])
    choice("kv_dtype", KV_DTYPES)
    choice("weight_dtype", WEIGHT_DTYPES)
    choice("prefix_caching", list(fields.SWITCH))
    for key in ("max_len", "max_seqs", "max_batched", "fraction", "dp"):
        number(key)
    toggle("ep")


def _prices() -> None:
    line("name")
    number("price", on_change=state.price_typed)
    choice("currency", pricing.CURRENCIES, on_change=state.price_typed)
    st.caption(parts.escape(pricing.origin(state.current_prices(), state.today())))
