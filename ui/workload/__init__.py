"""The views of the Workload page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from calc.latency import LatencyReport
from ui.resources import Asked
from ui.text import t
from ui.workload import load, log


@dataclass(frozen=True, kw_only=True)
class View:
    """A view's name on its button, and what shows it."""

    name: str
    show: Callable[[Asked, LatencyReport], None]


def views() -> Mapping[str, View]:
    """The views by their codes."""
    shown = {
        "load": View(name=t("Load"), show=load.show),
        "log": View(name=t("Logs"), show=lambda asked, _: log.show(asked)),
    }
    if find_spec("ui.workload.reuse"):
        reuse = import_module("ui.workload.reuse")
        shown["reuse"] = View(name=t("Reuse"), show=lambda asked, _: reuse.show(asked))
    return shown
