"""Which rows of the catalogue a foreign file means by a model's or a GPU's name."""

from __future__ import annotations

import functools
import re

from calc.hardware import Gpu
from data.catalogue.tables import ModelEntry, gpus, models

_CACHE_FOLDER = re.compile(r"models--[^/]+?--([^/]+)")
"""How the Hub's cache names a model's folder: owner and name, then snapshots by their hash."""
_WORDS = re.compile(r"[a-z0-9]+")
MAX_CHARACTERS = 300
"""Longer names are none."""


def short_name(text: str) -> str:
    """A model's name without owner or folder, as people say it."""
    folder = _CACHE_FOLDER.search(text)
    return folder[1] if folder else text.rstrip("/").rpartition("/")[2]


@functools.lru_cache(maxsize=1024)
def model_named(text: str) -> ModelEntry | None:
    """The model by Hub id, by the part after the slash, or by its folder in the Hub's cache; ``None`` if unclear."""
    wanted = text.strip().rstrip("/").lower()[:MAX_CHARACTERS]
    name = short_name(wanted)
    exact = [entry for entry in models().values() if entry.id.lower() == wanted]
    found = exact or [entry for entry in models().values() if entry.name.lower() == name]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=1024)
def gpus_named(text: str) -> tuple[Gpu, ...]:
    """Every GPU that ``text`` may mean: one for an id or a full name, several for ``H100``, none when it is unknown."""
    wanted = text.strip().lower()[:MAX_CHARACTERS]
    exact = tuple(gpu for gpu in gpus().values() if wanted in (gpu.id.lower(), gpu.name.lower()))
    if exact:
        return exact
    words = set(_WORDS.findall(wanted.replace("rtx ", "rtx")))
    near = [gpu for gpu in gpus().values() if gpu.id.split("-")[0] in words]
    sizes = {word.removesuffix("gb") for word in words if word.endswith("gb")}
    near = [gpu for gpu in near if sizes.intersection(gpu.id.split("-")[1:])] or near
    form = {"sxm", "sxm4", "sxm5", "hbm3"} & words, {"pcie"} & words, {"nvl"} & words
    wanted_form = next((name for name, seen in zip(("sxm", "pcie", "nvl"), form, strict=True) if seen), None)
    return tuple(gpu for gpu in near if wanted_form in gpu.id.split("-")[1:]) or tuple(near)
