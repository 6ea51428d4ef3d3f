"""What people type of a GPU and of its price, checked and turned into the rows the store keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calc.errors import InputError
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.workload import Prices
from data import catalogue
from data.case import FLOP_CODES, read_gpu
from data.case_fields import Fields
from data.case_prices import read_prices
from data.own_text import one_line
from data.store.records import OwnEntry

SPARSE_FACTOR = 2.0
"""Vendor sheets state peaks with 2:4 structured sparsity at twice the dense figure (NVIDIA A100 white paper)."""
BOTH_DIRECTIONS = 2.0
"""NVLink is printed as the sum of both directions."""
ODD_FACTOR = 3.0
"""How far FLOP per byte may lie outside the shipped GPUs before it looks like a wrong unit."""
PCIE_GB_PER_S_PER_LANE = {1: 0.25, 2: 0.5, 3: 1.0, 4: 2.0, 5: 4.0, 6: 8.0}
"""PCIe generation → GB/s of one lane in one direction, rounded up as data sheets print it (x16: 16, 32, 64)."""
OWN_PRICE = "own:"
"""Prices of an own GPU are kept under this and its name, whatever its version."""


def gpu_entry(typed: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and case form of a typed GPU. ``sparse`` and ``link_both`` say how the sheet states peaks and NVLink."""
    name = one_line(typed.get("name") or "", "name")
    if name in catalogue.gpus() or name == "own":
        raise InputError(msg("{name} is the name of a shipped row: choose another name.", name=name))
    entry: dict[str, Any] = {
        key: typed[key] for key in ("memory_gib", "bandwidth_gb_per_s", "pcie_gb_per_s") if typed.get(key) is not None
    }
    for code in FLOP_CODES:
        if (peak := typed.get(f"{code}_tflops")) is not None:
            entry[f"{code}_tflops"] = peak / SPARSE_FACTOR if typed.get("sparse") else peak
    if (link := typed.get("link_gb_per_s")) is not None:
        entry["link_gb_per_s"] = link / BOTH_DIRECTIONS if typed.get("link_both") else link
    read_gpu(Fields({"name": name, **entry}, "gpu"))
    return name, entry


def gpu_of(row: OwnEntry) -> Gpu:
    """The GPU of a stored row."""
    return read_gpu(Fields(gpu_case(row), "gpu"))


def gpu_case(row: OwnEntry) -> dict[str, Any]:
    """A stored GPU as a case writes it, source and date included: another machine reads the same GPU."""
    told = {"source": row.source, "checked_on": row.checked_on}
    return {"name": row.name, **row.entry, **{key: text for key, text in told.items() if text}}


def odd_figures(gpu: Gpu) -> tuple[Message, ...]:
    """What looks like a wrong unit or a sparse figure; said, never corrected."""
    return tuple(note for note in (_odd_peaks(gpu), _odd_ratio(gpu)) if note is not None)


def _odd_peaks(gpu: Gpu) -> Message | None:
    wide, narrow = gpu.flops_per_s.get("bf16"), gpu.flops_per_s.get("fp8")
    if wide is None or narrow is None or wide <= narrow:
        return None
    return msg(
        "BF16 peak {wide:tflops} is above FP8 {narrow:tflops}: check whether one is sparse.", wide=wide, narrow=narrow
    )


def _odd_ratio(gpu: Gpu) -> Message | None:
    ratio = _flop_per_byte(gpu)
    usual = [value for row in catalogue.gpus().values() if (value := _flop_per_byte(row)) is not None]
    if ratio is None or min(usual) / ODD_FACTOR <= ratio <= max(usual) * ODD_FACTOR:
        return None
    return msg(
        "{ratio:,.3g} FLOP per byte of memory traffic; shipped GPUs have {least:,.0f} to {most:,.0f}: check the units.",
        ratio=ratio,
        least=min(usual),
        most=max(usual),
    )


def _flop_per_byte(gpu: Gpu) -> float | None:
    peak = gpu.flops_per_s.get("bf16") or gpu.flops_per_s.get("fp16")
    return peak / gpu.bandwidth_bytes_per_s if peak and gpu.bandwidth_bytes_per_s else None


def nearest(memory_bytes: float, gpus: Iterable[Gpu]) -> Gpu:
    """The GPU with the nearest memory; the first of equals."""
    return min(gpus, key=lambda gpu: abs(gpu.memory_bytes - memory_bytes))


def pcie_gb_per_s(generation: int | None, width: int | None) -> float | None:
    """One direction of a host link; ``None`` where the driver does not tell or the generation is not known."""
    per_lane = PCIE_GB_PER_S_PER_LANE.get(generation or 0)
    return None if per_lane is None or not width else per_lane * width


def price_entry(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Case form of a typed price: amount, currency, and what it is a price of."""
    if typed.get("gpu_hour") is None:
        raise InputError(msg("{name} is missing: add it.", name="gpu_hour"))
    region = str(typed.get("region") or "").strip()
    entry = {key: typed[key] for key in ("gpu_hour", "currency", "commitment")}
    entry |= {"region": one_line(region, "region")} if region else {}
    read_prices(Fields(entry, "prices"))
    return entry


def price_of(row: OwnEntry) -> Prices:
    """The price of a stored row."""
    return read_prices(Fields({**row.entry, "source": row.source, "checked_on": row.checked_on}, "prices"))


def price_name(gpu: Gpu) -> str:
    """What the prices of a GPU are kept under."""
    return gpu.id if catalogue.gpus().get(gpu.id) == gpu else OWN_PRICE + gpu.name


def prices_of(rows: Iterable[OwnEntry], name: str) -> tuple[OwnEntry, ...]:
    """Prices of one GPU, the one checked last first."""
    own = [row for row in rows if row.name == name]
    return tuple(sorted(own, key=lambda row: (row.checked_on, row.entry_id), reverse=True))
