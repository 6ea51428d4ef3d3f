"""What one review holds: numbers with their origin, evidence, the decision, and what people still have to confirm.

Independent of language and of look. A saved review shows the same numbers whenever it is opened again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from calc.evidence import Provenance
from calc.messages import Message


class Party(StrEnum):
    """Who signs."""

    BUSINESS = "business"
    PLATFORM = "platform"
    SECURITY = "security"


class Kind(StrEnum):
    """The four kinds of evidence."""

    CONFIGURATION = "configuration"
    RUNTIME = "runtime"
    RESPONSIBILITY = "responsibility"
    RETROSPECTIVE = "retrospective"


class State(StrEnum):
    """How far a piece of evidence carries today."""

    VERIFIED = "verified"
    PARTIAL = "partial"
    MISSING = "missing"
    STALE = "stale"


class Status(StrEnum):
    """Where the sheet stands. Only signatures on paper make it accepted."""

    DEMONSTRATION = "demonstration"
    """An entry condition is not met: no real requests, roles or figures."""
    DRAFT = "draft"
    """No runtime evidence that is measured, younger than 30 days and of the same deployment."""
    FOR_REVIEW = "for-review"


@dataclass(frozen=True, kw_only=True)
class Filing:
    """What people add to the numbers before the sheet is handed in. Dates are ISO (2026-11-30)."""

    title: str = ""
    author_role: str = ""
    created_at: str = ""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Name by party (business, platform, security); absent = nobody yet."""
    real_requests: bool = False
    """Lengths, arrivals and repetition come from the team's own traffic."""
    real_roles: bool = False
    """Access was tried with the permission roles of production."""
    real_figures: bool = False
    """Prices, targets and operating figures are the team's own."""
    look_back_on: str = ""
    """Date on which prediction and operation are compared."""
    snapshot_ids: tuple[str, ...] = ()
    """Ids of the stored uploads and measurements the numbers rest on."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number in base units (``unit`` is a code of ``ui.format.UNITS``) with all that makes it usable."""

    value: float | str | bool | None
    unit: str
    percentile: str = ""
    """``P95`` and so on; empty for a figure that is not a statistic."""
    provenance: Provenance
    source: str = ""
    date: str = ""


@dataclass(frozen=True, kw_only=True)
class NumberRow:
    """One line of the numbers table; several figures are percentiles or an interval of the same thing."""

    key: str
    label: Message
    figures: tuple[Figure, ...]
    measured: tuple[Figure, ...] = ()
    """The same thing from an uploaded run at this load, beside the calculated one."""
    target: Figure | None = None
    at_least: bool = False
    """True: the value should reach the target; False: it should not exceed it."""
    passes: bool | None = None
    instead: Message | None = None
    """What is said where no number would be true: the load exceeds what can be served, or no load met the SLO."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One line of the what-if table: the scenario with one lever pulled, or as it is."""

    lever: str
    """Code; empty for the scenario as it is."""
    title: Message
    hit_share: Figure
    memory_peak: Figure
    """Weights, runtime and KV demand of one GPU; without the demand where there is no steady one."""
    memory_fits: bool | None
    ttft_p99: Figure
    e2e_p99: Figure
    unit_cost: Figure
    """Per million output tokens."""
    meets_slo: bool | None
    unstable: bool = False
    """True: the load exceeds what can be served with this option."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One of the four kinds of evidence: what it says now, how to check it, who answers for it."""

    kind: Kind
    state: State
    says: Message
    check: Message
    owner: tuple[Party, ...]
    date: str = ""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing to verify by hand: in the logs, the metrics, the configuration, or with an owner."""

    group: str
    text: Message


@dataclass(frozen=True, kw_only=True)
class Step:
    """One next action with the metric it must reach and who does it; the due date is agreed at the table."""

    action: Message
    owner: Party


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The decision as it stands on top of the sheet."""

    outcome: str
    bottleneck: str
    headline: Message
    because: tuple[Message, ...]
    runner_up: str | None
    flips_when: Message | None
    first_lever: Message | None
    conditions_met: int
    """Conditions for this outcome that the evidence meets; guards against it are not counted."""
    conditions_not_met: int
    conditions_unknown: int
    legs_agree: bool


@dataclass(frozen=True, kw_only=True)
class MemoryBar:
    """Bytes of the fullest GPU, in the order of the bar."""

    total_bytes: int
    budget_bytes: int
    weights_bytes: int
    runtime_bytes: int
    """The part of the runtime zone inside the engine's budget."""
    demand_bytes: int
    pool_bytes: int
    outside_bytes: int
    """The part of the runtime zone outside the budget."""
    over_bytes: int
    """What weights, runtime and KV demand need beyond the budget."""


@dataclass(frozen=True, kw_only=True)
class LoadCurve:
    """One latency over rising load. ``None`` in a series = no steady value at that load."""

    metric: str
    """``TTFT``, ``ITL`` or ``E2E``: the one with the tightest target."""
    axis: str
    """``rate`` or ``concurrency``."""
    loads: tuple[float, ...]
    p50_s: tuple[float | None, ...]
    p95_s: tuple[float | None, ...]
    p99_s: tuple[float | None, ...]
    slo_s: float | None
    slo_percentile: str
    operating_load: float
    knee_load: float | None
    limit_load: float | None
    """Beyond it queues grow without end."""


@dataclass(frozen=True, kw_only=True)
class Review:
    """Everything one sheet shows."""

    filing: Filing
    status: Status
    scenario_name: str
    model: str
    gpu: str
    gpu_count: int
    engine: str
    model_version: str
    """Version of the calculation (``calc.MODEL_VERSION``)."""
    verdict: Verdict
    applies: tuple[Message, ...]
    boundaries: tuple[Message, ...]
    numbers: tuple[NumberRow, ...]
    options: tuple[Option, ...]
    chosen_lever: str | None
    memory: MemoryBar
    curve: LoadCurve | None
    saturated: bool
    """The planned load exceeds what can be served; latency then has no steady value."""
    split_s: tuple[float, float, float, float] | None
    """Mean T_queue, T_prefill, T_decode, T_network; their sum is the mean E2E. ``None`` when nothing is served."""
    proofs: tuple[Proof, ...]
    missing: tuple[Message, ...]
    checks: tuple[Check, ...]
    risks: tuple[Message, ...]
    steps: tuple[Step, ...]
    case: Mapping[str, Any] = field(default_factory=dict)
    """The scenario as a JSON case, so that it can be opened again."""
