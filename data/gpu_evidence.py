"""What logs of GPU readings taken during a run say under the names that conditions ask for. Absent stays absent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calc.checks.gpus import IDLE_SHARE
from calc.evidence import Evidence, Provenance
from calc.messages import Message, msg
from calc.metrics import METRICS
from data.gpu_ties import lasted_s, other_gpu
from data.records import BenchmarkRun, GpuLog
from data.store.records import StoredGpuLog, TiedLog

LONGEST_RATIO = 2.0
"""A log that lasts longer than so many runs has seen more of other things than of the run."""
ID_SHOWN = 6
"""First characters of a log's id, as pages show it."""


@dataclass(frozen=True, kw_only=True)
class GpuUse:
    """The GPUs of a run, one figure each; ``None`` = not in the log."""

    gpus: int
    seen: int
    """GPUs in the log; more than ``gpus`` where others of the machine were read as well."""
    busy_shares: tuple[float | None, ...]
    power_shares: tuple[float | None, ...]
    peaks_bytes: tuple[float | None, ...]

    @property
    def busy_share(self) -> float | None:
        """Mean over the GPUs."""
        return _mean(self.busy_shares)

    @property
    def power_share(self) -> float | None:
        """Mean over the GPUs."""
        return _mean(self.power_shares)

    @property
    def peak_bytes(self) -> float | None:
        """Of the fullest GPU."""
        return max((peak for peak in self.peaks_bytes if peak is not None), default=None)

    @property
    def spread_share(self) -> float | None:
        """How far the least busy GPU stays behind the busiest, or the emptiest behind the fullest: the larger."""
        return max((s for s in (_spread(self.busy_shares), _spread(self.peaks_bytes)) if s is not None), default=None)


def use_of(log: GpuLog, gpu_count: int | None = None) -> GpuUse:
    """The GPUs of a run among those of the log: where more were read than it had, the fullest, then the busiest."""
    columns = [
        tuple(column[place] if place < len(column) else None for place in range(log.gpus))
        for column in (log.busy_shares, log.power_shares, log.memory_used_peaks_bytes)
    ]
    rows = list(zip(*columns, strict=True))
    if gpu_count is not None and gpu_count < len(rows):
        rows = sorted(rows, key=lambda row: (row[2] or 0.0, row[0] or 0.0), reverse=True)[:gpu_count]
    busy, power, peaks = zip(*rows, strict=True) if rows else ((), (), ())
    return GpuUse(gpus=len(rows), seen=log.gpus, busy_shares=busy, power_shares=power, peaks_bytes=peaks)


def evidence_of_logs(tied: Sequence[TiedLog], run: BenchmarkRun) -> dict[str, Evidence]:
    """Every figure of the logs by metric; of several logs the newest that has it."""
    found: dict[str, Evidence] = {}
    for one in tied:
        for evidence in _evidence(one.stored, run):
            found.setdefault(evidence.metric, evidence)
    return found


def caveats_of(log: GpuLog, run: BenchmarkRun) -> tuple[Message, ...]:
    """What the log and the run do not agree on."""
    return tuple(_caveats(log, run))


def _caveats(log: GpuLog, run: BenchmarkRun) -> Iterator[Message]:
    if other_gpu(log, run):
        yield msg("the readings name {seen}, the run {ran}.", seen=", ".join(log.names), ran=run.gpu)
    lasted = lasted_s(log)
    if run.duration_s and lasted is not None and lasted > LONGEST_RATIO * run.duration_s:
        yield msg(
            "the readings go on for {lasted:s}, the run took {ran:s}: means are those of the whole log.",
            lasted=lasted,
            ran=run.duration_s,
        )
    if run.gpu_count is None or log.gpus == run.gpu_count:
        return
    if log.gpus > run.gpu_count:
        yield msg(
            "readings of {seen:count} GPUs, the run had {ran:count}: the fullest of them are taken for its own.",
            seen=log.gpus,
            ran=run.gpu_count,
        )
    else:
        yield msg(
            "readings of {seen:count} GPUs, the run had {ran:count}: of the others nothing is known.",
            seen=log.gpus,
            ran=run.gpu_count,
        )


def _evidence(stored: StoredGpuLog, run: BenchmarkRun) -> Iterator[Evidence]:
    log = stored.log
    caveats = (*(warning.text for warning in stored.warnings), *_caveats(log, run))
    for metric, value in _figures(log, use_of(log, run.gpu_count)):
        if value is not None:
            yield Evidence(
                metric=metric,
                value=value,
                unit=METRICS[metric].unit,
                provenance=Provenance(stored.provenance),
                source=f"{log.source} {stored.gpu_log_id[:ID_SHOWN]}",
                date=log.last_at or stored.uploaded_at,
                caveats=caveats,
            )


def _figures(log: GpuLog, use: GpuUse) -> Iterator[tuple[str, float | None]]:
    yield "gpu_utilisation_share", use.busy_share
    yield "gpu_power_share", use.power_share
    yield "gpu_memory_peak_bytes", use.peak_bytes
    yield "gpu_imbalance_share", use.spread_share
    yield "gpu_memory_bytes", log.memory_total_bytes


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _spread(values: Sequence[float | None]) -> float | None:
    """Of GPUs that all idle there is none to be seen; no GPU in use holds less than a byte."""
    known = [value for value in values if value is not None]
    return 1 - min(known) / max(known) if len(known) > 1 and max(known) > IDLE_SHARE else None
