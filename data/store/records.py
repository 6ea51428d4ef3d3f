"""What goes into and comes out of the store, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calc.checks.run_facts import ERROR, WARNING
from calc.messages import Message
from data.records import BenchmarkRun, GpuLog, MetricsSnapshot, RunDeclaration, RunWarning


@dataclass(frozen=True, kw_only=True)
class AddOutcome:
    """What became of an uploaded file."""

    file_id: str
    stored_ids: tuple[str, ...]
    """Ids of its load points (or metrics snapshots, or logs of GPU readings), in file order."""
    already_there: bool
    """True when the same content was stored before; nothing was added."""


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """One uploaded file."""

    file_id: str
    name: str
    format: str
    size_bytes: int
    uploaded_at: str
    runs: int
    problems: tuple[Mapping[str, Any], ...] = ()
    """Rows not taken: ``line`` and ``reason``."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoredDeclaration:
    """What somebody declared about a run, and when."""

    declaration_id: str
    run_id: str
    declared_by: str
    declared_at: str
    declaration: RunDeclaration


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """Somebody's word that a run may be used although checks refuse it."""

    confirmation_id: str
    run_id: str
    codes: tuple[str, ...]
    """Codes the person knew of; one that appears later is not covered."""
    stands: bool
    """False where the word was taken back."""
    confirmed_by: str
    confirmed_at: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class StoredGpuLog:
    """A log of GPU readings with where it came from."""

    gpu_log_id: str
    file_id: str
    file: str
    """Name of the file."""
    uploaded_at: str
    provenance: str
    warnings: tuple[RunWarning, ...]
    log: GpuLog


@dataclass(frozen=True, kw_only=True)
class GpuLogTie:
    """Somebody's word on whether a log was taken during a run."""

    tie_id: str
    gpu_log_id: str
    run_id: str
    stands: bool
    said_by: str
    said_at: str


@dataclass(frozen=True, kw_only=True)
class TiedLog:
    """A log of GPU readings taken during a run, and how that is known."""

    stored: StoredGpuLog
    said: GpuLogTie | None = None
    """``None`` = the times of both say so."""


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One load point with where it came from."""

    run_id: str
    file_id: str
    run_index: int
    uploaded_at: str
    provenance: str
    warnings: tuple[RunWarning, ...]
    """Those at upload, and those that its declaration reveals."""
    run: BenchmarkRun
    """As the file says it; what the file leaves open as it was declared."""
    declaration: StoredDeclaration | None = None
    declared: tuple[str, ...] = ()
    """Fields of ``run`` whose value somebody declared."""
    contradictions: tuple[Message, ...] = ()
    """Where file and declaration differ; the file's value stands."""
    confirmation: Confirmation | None = None
    gpu_logs: tuple[TiedLog, ...] = ()
    """Readings of GPUs taken during it, newest log first."""

    @property
    def refusals(self) -> tuple[RunWarning, ...]:
        """Why it cannot be used as it stands: E-findings that nobody confirmed."""
        covered = self.confirmation.codes if self.confirmation else ()
        return tuple(one for one in self.warnings if one.severity == ERROR and one.code not in covered)

    @property
    def is_evidence(self) -> bool:
        """Whether calibration, comparison and decision may rest on it."""
        return not self.refusals

    @property
    def caveats(self) -> tuple[RunWarning, ...]:
        """What must be said wherever its figures go: warnings, and refusals that somebody overruled."""
        return tuple(one for one in self.warnings if one.severity in (ERROR, WARNING))


@dataclass(frozen=True, kw_only=True)
class StoredSnapshot:
    """One metrics snapshot with where it came from."""

    snapshot_id: str
    file_id: str
    uploaded_at: str
    snapshot: MetricsSnapshot


@dataclass(frozen=True, kw_only=True)
class ScenarioVersion:
    """One saved state of a named scenario; ``case`` is its JSON form."""

    scenario_id: str
    version: int
    name: str
    case: Mapping[str, Any]
    saved_at: str


@dataclass(frozen=True, kw_only=True)
class StoredReview:
    """A saved review, frozen with everything it was made of."""

    review_id: str
    title: str
    saved_at: str
    snapshot: Mapping[str, Any]
    snapshot_hash: str
    model_version: str


@dataclass(frozen=True, kw_only=True)
class StoredProbe:
    """One measurement of this machine's GPU."""

    probe_id: str
    measured_at: str
    stored_at: str
    probe: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StoredStartupLog:
    """What the start-up log of an engine said, and the start it measured as a case carries it."""

    log_id: str
    name: str
    stored_at: str
    engine: str
    engine_version: str
    model: str
    read: Mapping[str, Any]
    measured: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StoredCalibration:
    """Constants fitted to measured points."""

    calibration_id: str
    source: str
    measured_on: str
    stored_at: str
    model: str
    gpu: str
    model_version: str
    """Of the calculation that was fitted; another one is better fitted again."""
    calibration: Mapping[str, Any]
    """As a case carries it."""
    points: tuple[Mapping[str, Any], ...]
    """Case and measured figures of each."""
    fit: Mapping[str, Any]
    """What the fit said of itself: residuals, errors, intervals."""


@dataclass(frozen=True, kw_only=True)
class OwnEntry:
    """A model, GPU or price the team added to the catalogue. A price is named after its GPU."""

    entry_id: str
    name: str
    entry: Mapping[str, Any]
    source: str
    added_at: str
    checked_on: str = ""
    """ISO date on which somebody last looked at the source."""
    version: int = 1
    """1 = the first entry of this name."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """A deletion or its undoing."""

    action_id: str
    kind: str
    target_id: str
    action: str
    acted_at: str
    actor: str | None = None
    """Who did it; None = done by a version that did not ask."""
    reason: str | None = None
