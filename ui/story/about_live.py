"""A running engine in words: what it does, what is wrong, the three layers, what drifts, and how a recording stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from calc.judge.decision import Decision, Outcome, Strain
from calc.messages import Message, msg
from calc.trend import Trend
from calc.units import SECONDS_PER_HOUR, SECONDS_PER_MINUTE
from data.live.entry import Entry, Kind, Recording
from data.live.recorder import Look
from data.live.timeline import Mark
from data.live.window import Window
from data.records import MetricsSnapshot
from data.sources.exported import items
from data.store.recordings import StoredRecording
from ui import format as show
from ui.glossary import LAYERS, OUTCOMES, PROVENANCE
from ui.story.about_decision import DIAGNOSES
from ui.story.words import Figure
from ui.text import t

STRAINS: Mapping[Strain, Message] = {
    Strain.CALM: msg("calm"),
    Strain.STRAINED: msg("strained"),
    Strain.UNKNOWN: msg("unknown"),
}
DRIFTING: Mapping[str, tuple[Message, str]] = {
    "kv_usage_share": (msg("KV usage"), "share"),
    "gpu_memory_bytes": (msg("GPU memory used, fullest GPU"), "bytes"),
    "waiting": (msg("Requests waiting"), "number"),
    "ttft_p95_s": (msg("TTFT P95"), "ms"),
    "itl_p95_s": (msg("ITL P95"), "ms"),
}
"""Courses whose drift over hours matters, with the unit they are shown in."""
SHORT_S = 2 * SECONDS_PER_MINUTE
"""Stretches shorter than this are told in seconds."""
FEW_MARKS = 30
"""Events listed; a recording with more shows its newest."""


@dataclass(frozen=True, kw_only=True)
class Diagnosed:
    """A window and what its evidence says."""

    window: Window
    decision: Decision


def diagnosis(decision: Decision) -> str:
    """The one of four, or that nothing is wrong."""
    if decision.outcome is Outcome.NO_CHANGE:
        return t("nothing is wrong")
    return t(DIAGNOSES[decision.diagnosis])


def calm(decision: Decision) -> bool | None:
    """True when nothing is wrong, False when something is, None when it cannot be told."""
    if decision.outcome is Outcome.NO_CHANGE:
        return True
    return None if decision.outcome is Outcome.MEASURE_FIRST else False


def sentence(found: Diagnosed) -> str:
    """What the last minutes say, and what would be done about it."""
    span_s = found.window.last_s - found.window.first_s
    span = f"{span_s:.0f} s" if span_s < SHORT_S else f"{span_s / SECONDS_PER_MINUTE:.0f} min"
    return t(
        "Over the last {span}: {diagnosis}. What the conditions point to: {outcome}.",
        span=span,
        diagnosis=diagnosis(found.decision),
        outcome=OUTCOMES[found.decision.outcome],
    )


def diagnosed(decision: Decision) -> str:
    """The diagnosis and what would be done, of figures whose span is said elsewhere."""
    return t(
        "Diagnosis: {diagnosis}. What the conditions point to: {outcome}.",
        diagnosis=diagnosis(decision), outcome=OUTCOMES[decision.outcome],
    )  # fmt: skip


def figures(window: Window, kind: str) -> list[Figure]:
    """KV usage, hit rate, TTFT, waiting and output of the window."""
    of = window.snapshot
    rows = (
        (t("KV usage, mean"), show.percent(window.kv_usage_mean_share)),
        (t("Hit rate"), show.percent(of.prefix_hit_share)),
        ("TTFT P95", show.ms(of.ttft.p95_s if of.ttft else None)),
        (t("Waiting, mean"), show.decimal(window.waiting_mean)),
        (t("Output"), show.tokens_rate(of.output_tokens_per_s)),
    )
    missing = show.missing()
    return [
        Figure(label=label, value=value, provenance="missing" if value == missing else kind) for label, value in rows
    ]


def layer_rows(decision: Decision) -> list[Mapping[str, str]]:
    """How each layer stands and the numbers that say so."""
    return [
        {
            t("Layer"): t(LAYERS[state.layer]),
            t("State"): t(STRAINS[state.strain]),
            t("What the numbers say"): t(state.statement),
        }
        for state in decision.layers
    ]


def item_rows(snapshot: MetricsSnapshot, kind: str) -> list[Mapping[str, str]]:
    """Every figure of the three layers, and which of them this engine does not export."""
    return [
        {
            t("Layer"): t(LAYERS[item.layer]),
            t("Metric"): t(item.name),
            t("Value"): t(item.reason) if item.reason else show.quantity(item.value, item.unit),
            t("Provenance"): t(PROVENANCE["missing" if item.value is None else kind]),
        }
        for item in items(snapshot)
    ]


def drift_rows(trends: Mapping[str, Trend | None]) -> list[Mapping[str, str]]:
    """Slope per hour with its uncertainty, and what the line says at both ends."""
    rows: list[Mapping[str, str]] = []
    for course, (name, unit) in DRIFTING.items():
        found = trends.get(course)
        rows.append(
            {
                t("Quantity"): t(name),
                t("Drift"): t("not enough recorded") if found is None else _verdict(found),
                t("Per hour"): show.missing() if found is None else _slope(found, unit),
                t("Line from … to"): show.missing() if found is None else _ends(found, unit),
            }
        )
    return rows


def _verdict(found: Trend) -> str:
    if not found.drifts:
        return t("no drift that is sure")
    return t("rises") if found.slope_per_s > 0 else t("falls")


def _slope(found: Trend, unit: str) -> str:
    per_hour = found.slope_per_s * SECONDS_PER_HOUR
    reach = (found.high_per_s - found.low_per_s) / 2 * SECONDS_PER_HOUR
    return f"{_signed(per_hour, unit)} ± {show.quantity(reach, unit)}"


def _signed(value: float, unit: str) -> str:
    return f"{'+' if value >= 0 else '−'}{show.quantity(abs(value), unit)}"


def _ends(found: Trend, unit: str) -> str:
    return f"{show.quantity(max(found.first, 0.0), unit)} → {show.quantity(max(found.last, 0.0), unit)}"


def mark_rows(marks: Sequence[Mark]) -> list[Mapping[str, str]]:
    """What happened when, newest first."""
    return [
        {t("Time (UTC)"): clock(mark.at_s), t("Event"): t(mark.sentence)}
        for mark in sorted(marks, key=lambda mark: -mark.at_s)[:FEW_MARKS]
    ]


def clock(at_s: float) -> str:
    """A moment to the second."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def recording_name(stored: StoredRecording) -> str:
    """A recording in a list."""
    begun = datetime.fromtimestamp(stored.recording.started_at_s, UTC).strftime("%Y-%m-%d %H:%M")
    note = f" · {stored.recording.note}" if stored.recording.note else ""
    return t("{engine}, {begun}, {scrapes:count} scrapes", engine=stored.recording.engine, begun=begun,
             scrapes=stored.scrapes) + note  # fmt: skip


def kind_of(recording: Recording) -> str:
    """Provenance of everything in a recording."""
    return "sample" if recording.made_up else "measured"


def status(look: Look, now_s: float) -> str:
    """Age of the newest scrape, and what is being recorded."""
    scrapes = [entry for entry in look.recent if entry.kind is Kind.SCRAPE]
    seen = t("Newest scrape {age:.0f} s old.", age=max(0.0, now_s - scrapes[-1].at_s)) if scrapes else ""
    if look.recording is None:
        return " ".join([seen, t("Not recorded.")]).strip()
    recorded = t("Recording paused.") if look.paused else t(
        "Recording every {interval:.3g} s; scrapes so far: {count:count}.",
        interval=look.recording.interval_s, count=look.written,
    )  # fmt: skip
    return " ".join([seen, recorded]).strip()


def trouble(engine: str, entries: Sequence[Entry]) -> str | None:
    """Why the engine cannot be read now, or which of its addresses is missing."""
    last = entries[-1] if entries else None
    return None if last is None or last.problem is None else t(last.problem.sentence(engine))
