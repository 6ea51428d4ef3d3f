"""Logs of GPU readings in words: what one says, GPU by GPU, and during which runs it was taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from data.gpu_evidence import caveats_of, use_of
from data.gpu_ties import overlap
from data.records import GpuLog
from data.store import StoredGpuLog, StoredRun, TiedLog
from ui import format as show
from ui.story import about_validity, words
from ui.text import t

SECONDS_OF_TIME = 19
"""2026-11-30T12:00:00 of an ISO time."""


def figure_rows(log: GpuLog) -> list[Mapping[str, str]]:
    """One row per figure, with its unit; what the log does not hold says so."""
    return [
        {t("Figure"): name, t("Value"): value}
        for name, value in (
            (t("GPUs"), _gpus(log)),
            (t("Readings of each GPU"), _samples(log)),
            (t("GPU busy"), _busy(log)),
            (t("Memory peak, fullest GPU"), peak_of_total(log)),
            (t("Memory read or written"), _highest(show.percent(log.memory_busy_share_max))),
            (t("Power"), _power(log)),
            (t("Temperature"), _temperature(log)),
        )
    ]


def gpu_rows(log: GpuLog) -> list[Mapping[str, str]]:
    """One row per GPU, where there are several."""
    if log.gpus < 2:  # noqa: PLR2004 - one GPU is told already
        return []
    use = use_of(log)
    return [
        {
            t("GPU"): str(number),
            t("GPU busy, mean"): show.percent(busy),
            t("Memory peak"): show.gib(peak),
            t("Power / limit, mean"): show.percent(power),
        }
        for number, (busy, peak, power) in enumerate(
            zip(use.busy_shares, use.peaks_bytes, use.power_shares, strict=True)
        )
    ]


def duty_cycle() -> str:
    """What GPU busy is not."""
    return t(
        "GPU busy is the share of time in which a kernel ran (a duty cycle): it says nothing of how well the GPU was "
        "used. Memory in use includes what the engine reserved and has not filled."
    )


def peak_of_total(log: GpuLog) -> str:
    """The fullest GPU's largest reading, beside its memory where the log has that."""
    peak, total = log.memory_used_peak_bytes, log.memory_total_bytes
    if peak is None or not total:
        return show.gib(peak)
    return t("{peak:gib} of {total:gib} ({share:pct})", peak=peak, total=total, share=peak / total)


def stored_rows(logs: Sequence[StoredGpuLog], runs: Sequence[StoredRun]) -> list[Mapping[str, str]]:
    """One row per stored log, and the runs during which it was taken."""
    return [
        {
            t("File"): one.file,
            t("Taken during"): taken_during(one, runs),
            t("GPU busy"): _busy(one.log),
            t("Memory peak"): peak_of_total(one.log),
            t("Findings"): findings(one),
            t("Power"): _power(one.log),
            t("GPUs"): _gpus(one.log),
            t("Readings"): show.count(one.log.samples),
            t("Tool"): one.log.source,
        }
        for one in logs
    ]


def findings(stored: StoredGpuLog) -> str:
    """Warnings by name, the gravest first."""
    return t(", ").join(about_validity.name(one.code) for one in stored.warnings) or t("none")


def taken_during(stored: StoredGpuLog, runs: Sequence[StoredRun]) -> str:
    """The runs it belongs to, by load point."""
    own = [run for run in runs if any(tied.stored.gpu_log_id == stored.gpu_log_id for tied in run.gpu_logs)]
    if not own:
        return t("not known")
    return t("1 run") if len(own) == 1 else t("{count:count} runs", count=len(own))


def name(stored: StoredGpuLog) -> str:
    """A log as people know it."""
    return f"{stored.file} · {words.day(stored.uploaded_at)}"


def likely_first(stored: StoredGpuLog, runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Runs in the order of how well they fit: tied, the same time on any clock, as many GPUs, then the newest."""
    return sorted(
        runs,
        key=lambda run: (
            not any(tied.stored.gpu_log_id == stored.gpu_log_id for tied in run.gpu_logs),
            not overlap(stored.log, run.run, any_zone=True),
            run.run.gpu_count not in (None, stored.log.gpus),
        ),
    )


def tied(stored: StoredGpuLog, run: StoredRun | None) -> TiedLog | None:
    """How the log belongs to the run, if it does."""
    logs = run.gpu_logs if run else ()
    return next((one for one in logs if one.stored.gpu_log_id == stored.gpu_log_id), None)


def says(stored: StoredGpuLog, run: StoredRun, found: TiedLog | None) -> list[str]:
    """How it is known that both belong together, what the log then gives the run, and what does not fit."""
    if found is None:
        return [t("Nothing of this log is evidence for this run yet.")]
    said = found.said
    if said is None:
        how = t("The times of both overlap, so the log counts for this run.")
    else:
        how = t("{who} said on {day} that it was taken during this run.", who=said.said_by, day=words.day(said.said_at))
    use = use_of(stored.log, run.run.gpu_count)
    what = t(
        "It gives the run: GPU busy {busy}, power / limit {power}, memory peak {peak}.",
        busy=show.percent(use.busy_share), power=show.percent(use.power_share), peak=show.gib(use.peak_bytes),
    )  # fmt: skip
    return [how, what, *(t("Caveat: {caveat}", caveat=caveat) for caveat in caveats_of(stored.log, run.run))]


def _gpus(log: GpuLog) -> str:
    return " · ".join((str(log.gpus), *log.names))


def _samples(log: GpuLog) -> str:
    if log.first_at is None or log.last_at is None:
        return show.count(log.samples)
    first, last = (at[:SECONDS_OF_TIME].replace("T", " ") for at in (log.first_at, log.last_at))
    return f"{show.count(log.samples)} · {first} – {last}"


def _busy(log: GpuLog) -> str:
    if log.busy_share_mean is None:
        return show.missing()
    return t("mean {mean:pct}, highest {most:pct}", mean=log.busy_share_mean, most=log.busy_share_max)


def _power(log: GpuLog) -> str:
    if log.power_max_w is None:
        return show.missing()
    mean = use_of(log).power_share
    if mean is None:
        return t("highest {most:.0f} W", most=log.power_max_w)
    return t("highest {most:.0f} W, mean {mean:pct} of the limit", most=log.power_max_w, mean=mean)


def _temperature(log: GpuLog) -> str:
    if log.temperature_max_c is None:
        return show.missing()
    if log.memory_temperature_max_c is None:
        return t("highest {most:.0f} °C", most=log.temperature_max_c)
    return t("highest {most:.0f} °C, memory {memory:.0f} °C", most=log.temperature_max_c,
             memory=log.memory_temperature_max_c)  # fmt: skip


def _highest(figure: str) -> str:
    return figure if figure == show.missing() else t("highest {figure}", figure=figure)
