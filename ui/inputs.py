"""The scenario at the side of every page: one keyed, linkable widget per field, worded by the glossary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from calc.errors import PlimsollError
from data import catalogue
from data.case_workload import write_slo, write_workload
from data.own_model import read_model
from ui import fields, parts, pricing, state, text
from ui import format as show
from ui.glossary import CHOICES, FIELDS
from ui.text import t

PERCENTILES = (0.5, 0.9, 0.95, 0.99)
KV_DTYPES = ("auto", "bf16", "fp8", "nvfp4")
WEIGHT_DTYPES = ("auto", "bf16", "fp8", "int8", "int4", "nvfp4")
KINDS = ("lognormal", "fixed", "uniform", "empirical")
ARRIVALS = ("poisson", "constant", "gamma", "per-minute", "closed")
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
        _section(page, "lengths", t("Lengths"), "straighten", _both_lengths)
        _section(page, "targets", t("Targets (SLO)"), "flag", _targets)
        _section(page, "engine", t("Engine"), "settings", _engine)
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


def _label(key: str) -> str:
    field = FIELDS[key]
    return f"{t(field.label)} ({show.unit(field.unit)})" if field.unit else t(field.label)


def choice(key: str, options: Sequence[Any], **options_of_widget: Any) -> Any:
    """A select box whose options are codes free of language."""
    worded: Callable[[Any], str] = options_of_widget.pop("format_func", word)
    state.settle(key, options)
    shown = {option: worded(option) for option in options}  # in the language of this run, whoever asks later
    return st.selectbox(
        _label(key), options, key=key, format_func=lambda option: shown.get(option, str(option)),
        help=t(FIELDS[key].help), persist_state="session", **options_of_widget,
    )  # fmt: skip


def number(key: str, **options_of_widget: Any) -> Any:
    """A number box, whole or not as the field is; empty where the field may be left to its default."""
    field = FIELDS[key]
    kind = int if key in fields.WHOLE else float
    low, high, step = (None if bound is None else kind(bound) for bound in (field.low, field.high, field.step))
    return st.number_input(
        _label(key), low, high, None, step, key=key, help=t(field.help), persist_state="session",
        format="%d" if kind is int else "%g", **options_of_widget,
    )  # fmt: skip


def line(key: str) -> str:
    """A line of text."""
    return st.text_input(_label(key), key=key, help=t(FIELDS[key].help), persist_state="session")


def word(code: Any) -> str:
    """An option code in the visitor's language; codes that are names stay as they are."""
    return t(CHOICES[code]) if code in CHOICES else str(code)


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
    arrivals = choice("arrivals", ARRIVALS)
    if arrivals == "closed":
        number("concurrency")
    elif arrivals == "per-minute":
        line("minute_rates")
    else:
        number("rate")
    if arrivals == "gamma":
        number("cv")
    st.slider(
        _label("hit"), 0.0, 100.0, None, 1.0, key="hit", format="%g", help=t(FIELDS["hit"].help),
        persist_state="session",
    )  # fmt: skip


def _both_lengths() -> None:
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
    st.toggle(_label("ep"), key="ep", help=t(FIELDS["ep"].help), persist_state="session")


def _prices() -> None:
    line("name")
    number("price", on_change=state.price_typed)
    choice("currency", pricing.CURRENCIES, on_change=state.price_typed)
    st.caption(parts.escape(pricing.origin(state.current_prices(), state.today())))
