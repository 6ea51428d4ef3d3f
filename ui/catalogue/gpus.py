"""GPUs: the team's own, a form to add one, and those that ship."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import streamlit as st

from calc.errors import InputError, PlimsollError
from calc.hardware import Gpu
from calc.messages import msg
from calc.units import GB, GIB, TERA
from data import catalogue
from data.case import FLOP_CODES, read_gpu
from data.case_fields import Fields
from data.own_hardware import gpu_entry, gpu_of, nearest, odd_figures, pcie_gb_per_s
from probe.nvml import GpuFacts
from ui import parts, resources, state
from ui.catalogue import desk
from ui.story import about_catalogue
from ui.text import t

FORM = "gpu_"
PEAKS = tuple(f"{code}_tflops" for code in FLOP_CODES)
FIGURES = ("memory_gib", "bandwidth_gb_per_s", *PEAKS, "link_gb_per_s", "pcie_gb_per_s")
TICKS = ("sparse", "link_both")
DECIMALS = 3
"""Of a figure filled in: a driver's MiB / 1024 has no more that matter."""


def show() -> None:
    """The whole view."""
    fold = desk.fold(t("Add a GPU"), "gpu_fold")
    if fold.open:
        with fold:
            _form()
    desk.outcome()
    rows = resources.own_versions("own_gpu")
    chosen = desk.own_rows("own_gpu", rows, about_catalogue.own_gpus(rows))
    if chosen is not None:
        desk.use_button("own_gpu", _use, chosen.entry_id, chosen.name)
        parts.notes(odd_figures(gpu_of(chosen)))
    desk.shipped_table("gpu", about_catalogue.shipped_gpus())


def _form() -> None:
    _beginnings()
    desk.line("gpu_name")
    for row in (("memory_gib", "bandwidth_gb_per_s", "pcie_gb_per_s"), PEAKS[:3], PEAKS[3:]):
        for column, name in zip(st.columns(3), row, strict=False):
            with column:
                desk.number(FORM + name)
    desk.tick("gpu_sparse")
    desk.number("gpu_link_gb_per_s")
    desk.tick("gpu_link_both")
    desk.origin(FORM)
    _preview()
    st.button(t("Store this GPU"), key="gpu_add", type="primary", icon=":material/save:", on_click=_add)


def _beginnings() -> None:
    """Two ways not to type everything: a known GPU, or this machine's driver."""
    names = {code: gpu.name for code, gpu in _starts().items()}
    now = list(names).index(str(state.get("gpu"))) if state.get("gpu") in names else 0
    with st.container(horizontal=True, vertical_alignment="bottom"):
        parts.pick(t("Start from"), names, "gpu_start", now)
        st.button(t("Fill in its figures"), key="gpu_fill", on_click=_fill, icon=":material/edit_note:")
        st.button(t("Ask this machine's driver"), key="gpu_driver", on_click=_ask_driver, icon=":material/memory:")


def _starts() -> dict[str, Gpu]:
    """GPUs to begin with, by the picker's codes: own ones, shipped ones, and figures typed at the side."""
    own = {state.OWN_PREFIX + row.entry_id: gpu_of(row) for row in resources.own_gpus()}
    typed = {"own": state.current().scenario.deployment.gpu} if state.get("gpu") == "own" else {}
    return own | typed | dict(catalogue.gpus())


def _typed() -> dict[str, Any]:
    return {name: state.get(FORM + name) for name in ("name", *FIGURES, *TICKS)}


def _preview() -> None:
    """What will be kept, as soon as it can be read."""
    typed = _typed()
    if not typed["name"] or typed["memory_gib"] is None:
        st.caption(t("Name and memory are enough for memory; latency needs bandwidth and a peak, TP above 1 the link."))
        return
    try:
        name, entry = gpu_entry(typed)
    except PlimsollError as error:
        st.warning(parts.escape(t(error.message)))
        return
    gpu = read_gpu(Fields({"name": name, **entry}, "gpu"))
    figures = about_catalogue.gpu_figures(gpu).items()
    st.caption(t("Kept: {figures}", figures=" · ".join(f"{label} {value}" for label, value in figures)))
    parts.notes(odd_figures(gpu))


@desk.action
def _add() -> str:
    name, entry = gpu_entry(_typed())
    row = resources.add_own_gpu(name, entry, **desk.told_origin(FORM))
    state.put(gpu_fold=False)
    return t("{name} is stored as version {number:count}.", name=row.name, number=row.version)


@desk.action
def _fill() -> str:
    gpu = _starts()[str(state.get("gpu_start"))]
    checked_on = date.fromisoformat(gpu.checked_on) if gpu.checked_on else state.today()
    _put(_figures_of(gpu) | {"source": gpu.source, "checked_on": checked_on})
    return t("Figures of {gpu} are filled in: change what differs.", gpu=gpu.name)


def _figures_of(gpu: Gpu) -> dict[str, Any]:
    return {
        "memory_gib": _in(gpu.memory_bytes, GIB),
        "bandwidth_gb_per_s": _in(gpu.bandwidth_bytes_per_s, GB),
        **{f"{code}_tflops": _in(gpu.flops_per_s.get(code), TERA) for code in FLOP_CODES},
        "link_gb_per_s": _in(gpu.nvlink_bytes_per_s, GB),
        "pcie_gb_per_s": _in(gpu.pcie_bytes_per_s, GB),
    }


def _in(value: float | None, unit: float) -> float | None:
    return None if value is None else round(value / unit, DECIMALS)


@desk.action
def _ask_driver() -> str:
    report = resources.driver()
    facts = next((gpu for gpu in report.gpus if gpu.memory_total_bytes), None)
    if facts is None or facts.memory_total_bytes is None:
        raise InputError(report.reason or msg("The driver names no GPU with memory: type the figures."))
    _put(
        _driver_figures(facts)
        | {
            "name": facts.name or "",
            "source": f"NVIDIA driver {report.driver_version}",
            "checked_on": state.today(),
            "start": nearest(facts.memory_total_bytes, catalogue.gpus().values()).id,
        }
    )
    return t("Name, memory and PCIe of {gpu} are filled in; the driver tells no speed.", gpu=facts.name)


def _driver_figures(facts: GpuFacts) -> dict[str, Any]:
    known = {
        "memory_gib": _in(facts.memory_total_bytes, GIB),
        "pcie_gb_per_s": pcie_gb_per_s(facts.pcie_generation, facts.pcie_width),
    }
    return dict.fromkeys(FIGURES) | known


def _put(values: Mapping[str, Any]) -> None:
    """Figures stand as one direction and dense from here on."""
    ticks = dict.fromkeys(TICKS, False)
    state.put(**{FORM + name: value for name, value in {**ticks, **values}.items()})


@desk.action
def _use(entry_id: str, name: str) -> str:
    state.use_gpu(state.OWN_PREFIX + entry_id)
    return t("{name} is the scenario's GPU now.", name=name)
