"""Readings of GPUs over time, summed up the same way whatever tool wrote them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from calc.checks.gpus import imbalanced, too_few_samples
from calc.messages import msg
from calc.units import MIB
from data.formats.document import Document
from data.records import GpuLog, ReadResult, RunWarning

_FIGURE = re.compile(r"^[-+]?\d+(?:\.\d+)?(?=\s*(?:%|MiB|MB|GiB|W|C|MHz)?$)")
_LARGEST = 1e9
"""No reading of a GPU is larger; sentinels for "not supported" such as 9223372036854775794 are."""
_SENTINELS = frozenset({0x7FFFFFF0, 0x7FFFFFF1, 0x7FFFFFF2, 0x7FFFFFF3})
"""DCGM's 32-bit words for blank, not found, not supported and no permission."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One GPU at one moment; ``None`` = not read."""

    gpu: str
    name: str | None = None
    busy_share: float | None = None
    memory_busy_share: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    power_limit_w: float | None = None
    at: str | None = None
    """The moment as the log writes it."""


def figure(value: object) -> float | None:
    """A number, or the one a cell such as ``95 %`` begins with; ``[N/A]``, ``-`` and sentinels are not known."""
    if isinstance(value, str):
        value = _cell_figure(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _LARGEST and value not in _SENTINELS else None


@lru_cache(maxsize=4096)
def _cell_figure(cell: str) -> float | None:
    """Readings repeat, so most cells were met before."""
    match = _FIGURE.match(cell.strip())
    return float(match[0]) if match else None


def share(value: object) -> float | None:
    """Per cent as a share; more than 100 is no reading."""
    percent = figure(value)
    return percent / 100 if percent is not None and 0 <= percent <= 100 else None  # noqa: PLR2004


def mib(value: object) -> float | None:
    """MiB as bytes."""
    size = figure(value)
    return size * MIB if size is not None and size >= 0 else None


def moment(text: str | None) -> str | None:
    """A date with a time as ISO text; a time of no day is not known."""
    try:
        found = datetime.fromisoformat((text or "").strip().replace("/", "-"))
    except ValueError:
        return None
    return found.isoformat() if ":" in (text or "") else None


def log_result(
    document: Document, code: str, source: str, readings: Sequence[Reading], notes: Sequence[str] = ()
) -> ReadResult:
    """The log and what it cannot say."""
    log = summed_up(source, readings)
    findings = (too_few_samples(log.samples), imbalanced((log.busy_shares, log.memory_used_peaks_bytes)))
    warnings = [
        RunWarning(code=found.code, severity=found.severity, text=found.text, fields=found.fields)
        for found in findings
        if found is not None
    ]
    if log.samples == 1:
        text = msg("the GPUs were read at one moment only: record them all through the run.")
        warnings.append(RunWarning(code="cumulative_counters", severity="W", text=text, fields=("samples",)))
    return ReadResult(
        file=document.name,
        format=code,
        runs=(),
        gpu_logs=(log,),
        warnings=tuple(warnings),
        notes=(*document.notes, *notes),
    )


def summed_up(source: str, readings: Sequence[Reading]) -> GpuLog:
    """Means and largest readings, by GPU and over all."""
    by_gpu: dict[str, list[Reading]] = {}
    for reading in readings:
        by_gpu.setdefault(reading.gpu, []).append(reading)
    groups = list(by_gpu.values())
    peaks = tuple(_largest(reading.memory_used_bytes for reading in group) for group in groups)
    return GpuLog(
        source=source,
        samples=max((len(group) for group in groups), default=0),
        gpus=len(groups),
        names=tuple(dict.fromkeys(reading.name for reading in readings if reading.name)),
        busy_shares=tuple(_mean(reading.busy_share for reading in group) for group in groups),
        busy_share_mean=_mean(reading.busy_share for reading in readings),
        busy_share_max=_over(readings, lambda reading: reading.busy_share),
        memory_busy_share_max=_over(readings, lambda reading: reading.memory_busy_share),
        memory_used_peaks_bytes=peaks,
        memory_used_peak_bytes=_largest(peaks),
        memory_total_bytes=_over(readings, lambda reading: reading.memory_total_bytes),
        power_max_w=_over(readings, lambda reading: reading.power_w),
        temperature_max_c=_over(readings, lambda reading: reading.temperature_c),
        memory_temperature_max_c=_over(readings, lambda reading: reading.memory_temperature_c),
        power_shares=tuple(_mean(_power_share(reading) for reading in group) for group in groups),
        first_at=moment(readings[0].at) if readings else None,
        last_at=moment(readings[-1].at) if readings else None,
    )


def _power_share(reading: Reading) -> float | None:
    """Of a GPU whose limit is not told, nothing."""
    return reading.power_w / reading.power_limit_w if reading.power_w is not None and reading.power_limit_w else None


def _over(readings: Sequence[Reading], figure_of: Callable[[Reading], float | None]) -> float | None:
    return _largest(figure_of(reading) for reading in readings)


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
