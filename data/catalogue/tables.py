"""Reading the catalogue's tables. They ship with the project and are read once."""

from __future__ import annotations

import csv
import difflib
import functools
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from calc.engine import BatchClass, Engine, FractionOf, Reserve, TokensMeaning
from calc.errors import UnknownName
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.model import ModelSpec
from calc.room.runtime_constants import RuntimeConstants
from calc.units import GB, GIB, MIB, TERA

FOLDER = Path(__file__).parent
CLOSE_NAMES = 3
"""How many similar names an error offers."""


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A model of the catalogue with its Hub config."""

    id: str
    name: str
    family: str
    config: Mapping[str, Any]
    source: str
    checked_on: str
    confidence: str

    def spec(
        self,
        *,
        weight_dtype: str | None = None,
        kv_dtype: str | None = None,
        weights_bytes_declared: int | None = None,
    ) -> ModelSpec:
        """The model for calculation; dtypes as in :meth:`ModelSpec.from_config`."""
        return _spec(self.id, weight_dtype, kv_dtype, weights_bytes_declared)


KEPT_SPECS = 256
"""Catalogue models kept as read: a page asks for the same one at every change of a slider."""


@functools.lru_cache(KEPT_SPECS)
def _spec(id: str, weight_dtype: str | None, kv_dtype: str | None, weights_bytes_declared: int | None) -> ModelSpec:
    return ModelSpec.from_config(
        models()[id].config,
        id,
        weight_dtype=weight_dtype,
        kv_dtype=kv_dtype,
        weights_bytes_declared=weights_bytes_declared,
    )


@functools.cache
def models() -> Mapping[str, ModelEntry]:
    """Models by Hub id."""
    rows = json.loads((FOLDER / "models.json").read_text(encoding="utf-8"))
    return MappingProxyType({row["id"]: ModelEntry(name=row["id"].split("/")[-1], **row) for row in rows})


def model(name: str) -> ModelEntry:
    """One model by Hub id (case does not matter), or by the part after the slash where that is unique."""
    found = models().get(_match(name, models()) or "")
    if found is not None:
        return found
    short = [entry for entry in models().values() if entry.name.lower() == name.strip().lower()]
    if len(short) == 1:
        return short[0]
    raise _unknown(msg("model"), name, models())


@functools.cache
def gpus() -> Mapping[str, Gpu]:
    """GPUs by id.

    Memory is what a driver or engine log showed. Where none was seen it is derived from the nominal size and marked
    ``memory_is_declared``: 98.5 % of it for HBM, 91.9 % for GDDR with ECC (the lowest shares seen in logs).
    """
    with (FOLDER / "gpus.csv").open(encoding="utf-8", newline="") as file:
        return MappingProxyType({row["id"]: _gpu(row) for row in csv.DictReader(file)})


def gpu(name: str) -> Gpu:
    """One GPU by id (case does not matter)."""
    found = _match(name, gpus())
    if found is None:
        raise _unknown(msg("GPU"), name, gpus())
    return gpus()[found]


def _gpu(row: Mapping[str, str]) -> Gpu:
    peaks = {
        "bf16": "bf16_tflops",
        "fp16": "fp16_tflops",
        "fp8": "fp8_tflops",
        "int8": "int8_tops",
        "fp4": "fp4_tflops",
    }
    nvlink_total = _number(row["nvlink_total_gb_per_s"], GB)
    return Gpu(
        id=row["id"],
        name=row["name"],
        memory_bytes=round(float(row["memory_gib"]) * GIB),
        memory_is_declared=row["memory_from"] != "driver",
        bandwidth_bytes_per_s=_number(row["bandwidth_gb_per_s"], GB),
        flops_per_s={code: float(row[column]) * TERA for code, column in peaks.items() if row[column]},
        nvlink_bytes_per_s=None if nvlink_total is None else nvlink_total / 2,
        pcie_bytes_per_s=_number(row["pcie_gb_per_s"], GB),
        source=row["source"],
        checked_on=row["checked_on"],
        confidence=row["confidence"],
    )


def _number(text: str, unit: float) -> float | None:
    return float(text) * unit if text else None


@functools.cache
def runtimes() -> Mapping[str, RuntimeConstants]:
    """What starts take beside weights and pool, by generation of an engine."""
    table = tomllib.loads((FOLDER / "runtime.toml").read_text(encoding="utf-8"))
    return MappingProxyType({row["id"]: RuntimeConstants(**_in_bytes(row)) for row in table["runtime"]})


@functools.cache
def engines() -> tuple[Engine, ...]:
    """Engine versions whose defaults changed, oldest first within an engine."""
    table = tomllib.loads((FOLDER / "engines.toml").read_text(encoding="utf-8"))
    return tuple(_engine(row) for row in table["engine"])


def _engine(row: Mapping[str, Any]) -> Engine:
    read = {
        "fraction_of": FractionOf(row["fraction_of"]),
        "tokens_meaning": TokensMeaning(row["tokens_meaning"]),
        "batch_classes": tuple(_batch_class(*values) for values in row["batch_classes"]),
        "fraction_by_ranks": tuple((ranks, share) for ranks, share in row.get("fraction_by_ranks", ())),
        "reserves": tuple(_reserve(values) for values in row.get("reserves", ())),
        "runtime": runtimes()[row["runtime"]],
    }
    return Engine(**{**row, **read})


def _batch_class(from_gib: float, tokens: int, seqs: int, not_a100: bool, names: Iterable[str] = ()) -> BatchClass:
    return BatchClass(
        min_memory_bytes=round(from_gib * GIB),
        batched_tokens=tokens,
        seqs=seqs,
        not_a100=not_a100,
        names=tuple(names),
    )


def _reserve(row: Mapping[str, Any]) -> Reserve:
    values = dict(row)
    return Reserve(min_memory_bytes=round(values.pop("from_gib") * GIB), **_in_bytes(values))


def _in_bytes(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with every size in bytes, under the name that says so."""
    units = {"_gib": GIB, "_mib": MIB}
    return {
        (key[:-4] + "_bytes" if key[-4:] in units else key): (
            round(value * units[key[-4:]]) if key[-4:] in units else value
        )
        for key, value in row.items()
    }


def engine(
    id: str = "vllm",
    version: str | None = None,
    on_date: str | None = None,
) -> tuple[Engine, tuple[Message, ...]]:
    """Defaults of an engine version and notes on how it was chosen.

    A version between two rows takes the older one, a name without a number (nightly, main) the newest. Without a
    version: the newest released by ``on_date`` (ISO date), else the newest.
    """
    rows = [row for row in engines() if row.id == id.strip().lower()]
    if not rows:
        raise _unknown(msg("engine"), id, {row.id: row for row in engines()})
    if version is not None and version.strip():
        return _by_version(rows, version)
    known = [row for row in rows if on_date is None or row.released <= on_date]
    if known:
        return known[-1], ()
    note = msg("no {id} version known before {date}: the oldest row, {version}, is used.", id=id, date=on_date,
               version=rows[0].version)  # fmt: skip
    return rows[0], (note,)


def _by_version(rows: list[Engine], version: str) -> tuple[Engine, tuple[Message, ...]]:
    asked = _version_key(version)
    is_numbered = any(ch.isdigit() for ch in version)
    older = [row for row in rows if not is_numbered or _version_key(row.version) <= asked]
    row = older[-1] if older else rows[0]
    if _version_key(row.version) == asked:
        return row, ()
    note = msg(
        "{engine} {asked} has no row of its own: the defaults of {used} are used.",
        engine=row.id,
        asked=version,
        used=row.version,
    )
    return row, (note,)


def _version_key(version: str) -> tuple[int, ...]:
    numbers = []
    for part in str(version).strip().lower().removeprefix("v").split("+")[0].split(".")[:3]:
        digits = "".join(ch for ch in part if ch.isdigit())
        numbers.append(int(digits[:6]) if digits else 0)
    return tuple(numbers + [0] * (3 - len(numbers)))


def _match(name: str, table: Iterable[str]) -> str | None:
    wanted = str(name).strip().lower()
    return next((key for key in table if key.lower() == wanted), None)


def _unknown(what: Message, name: str, table: Mapping[str, Any]) -> UnknownName:
    lowered = {key.lower(): key for key in table}
    close = [lowered[hit] for hit in difflib.get_close_matches(str(name).lower(), lowered, n=CLOSE_NAMES, cutoff=0.4)]
    if close:
        return UnknownName(
            msg(
                "{what} {name!r} is not in the catalogue: did you mean {close}?",
                what=what,
                name=name,
                close=", ".join(close),
            )
        )
    return UnknownName(
        msg("{what} {name!r} is not in the catalogue: enter its figures yourself.", what=what, name=name)
    )
