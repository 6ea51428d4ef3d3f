"""Readings of GPUs over time, summed up the same way whatever tool wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from calc.checks.gpus import imbalanced, too_few_samples
from calc.errors import UnreadableFile
from calc.messages import msg
from calc.units import MIB
from data.formats.document import Document
from data.records import GpuLog, ReadResult, RunWarning

_FIGURE = re.compile(r"^[-+]?\d+(?:\.\d+)?(?=\s*(?:%|MiB|MB|GiB|W|C|MHz)?$)")
_LARGEST = 1e9
"""No reading of a GPU is larger; sentinels for "not supported" such as 9223372036854775794 are."""
MAX_READINGS = 3_000_000
"""Most readings of one log: eight GPUs every second for four days."""
_SENTINELS = frozenset({0x7FFFFFF0, 0x7FFFFFF1, 0x7FFFFFF2, 0x7FFFFFF3})
"""DCGM's 32-bit words for blank, not found, not supported and no permission."""


@dataclass(kw_only=True, slots=True)
class Reading:
    """One GPU at one moment; ``None`` = not read. Not frozen: a log has millions."""

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
    document: Document, code: str, source: str, readings: Iterable[Reading], notes: Sequence[str] = ()
) -> ReadResult:
    """The log and what it cannot say."""
    log = summed_up(source, readings)
    if not log.samples:
        raise UnreadableFile(
            msg("{file}: a header was found but no reading below it: record the GPU during a run.", file=document.name)
        )
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


def summed_up(source: str, readings: Iterable[Reading]) -> GpuLog:
    """Means and largest readings, by GPU and over all; the readings pass and are not held."""
    by_gpu: dict[str, _Gpu] = {}
    names: dict[str, None] = {}
    first = last = None
    for reading in readings:
        by_gpu.setdefault(reading.gpu, _Gpu()).add(reading)
        if reading.name:
            names[reading.name] = None
        first, last = first or reading, reading
    groups = list(by_gpu.values())
    every = _Gpu()
    for group in groups:
        every.join(group)
    return GpuLog(
        source=source,
        samples=max((group.samples for group in groups), default=0),
        gpus=len(groups),
        names=tuple(names),
        busy_shares=tuple(group.busy.mean for group in groups),
        busy_share_mean=every.busy.mean,
        busy_share_max=every.busy.largest,
        memory_busy_share_max=every.memory_busy.largest,
        memory_used_peaks_bytes=tuple(group.memory_used.largest for group in groups),
        memory_used_peak_bytes=every.memory_used.largest,
        memory_total_bytes=every.memory_total.largest,
        power_max_w=every.power.largest,
        temperature_max_c=every.temperature.largest,
        memory_temperature_max_c=every.memory_temperature.largest,
        power_shares=tuple(group.power_share.mean for group in groups),
        first_at=moment(first.at) if first else None,
        last_at=moment(last.at) if last else None,
    )


class _Figure:
    """Readings of one figure so far."""

    __slots__ = ("_known", "_total", "largest")

    def __init__(self) -> None:
        self._known = 0
        self._total = 0.0
        self.largest: float | None = None

    def add(self, value: float | None) -> None:
        if value is None:
            return
        self._known += 1
        self._total += value
        if self.largest is None or value > self.largest:
            self.largest = value

    def join(self, other: _Figure) -> None:
        known, total = self._known + other._known, self._total + other._total
        self.add(other.largest)
        self._known, self._total = known, total

    @property
    def mean(self) -> float | None:
        return self._total / self._known if self._known else None


class _Gpu:
    """Readings of one GPU, or of all, so far."""

    def __init__(self) -> None:
        self.samples = 0
        self.busy, self.memory_busy = _Figure(), _Figure()
        self.memory_used, self.memory_total = _Figure(), _Figure()
        self.power, self.power_share = _Figure(), _Figure()
        self.temperature, self.memory_temperature = _Figure(), _Figure()

    def add(self, reading: Reading) -> None:
        self.samples += 1
        self.busy.add(reading.busy_share)
        self.memory_busy.add(reading.memory_busy_share)
        self.memory_used.add(reading.memory_used_bytes)
        self.memory_total.add(reading.memory_total_bytes)
        self.power.add(reading.power_w)
        self.power_share.add(_power_share(reading))
        self.temperature.add(reading.temperature_c)
        self.memory_temperature.add(reading.memory_temperature_c)

    def join(self, other: _Gpu) -> None:
        self.samples += other.samples
        for name in (
            "busy",
            "memory_busy",
            "memory_used",
            "memory_total",
            "power",
            "temperature",
            "memory_temperature",
        ):
            getattr(self, name).join(getattr(other, name))


def _power_share(reading: Reading) -> float | None:
    """Of a GPU whose limit is not told, nothing."""
    return reading.power_w / reading.power_limit_w if reading.power_w is not None and reading.power_limit_w else None
