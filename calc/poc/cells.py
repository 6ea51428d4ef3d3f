"""The axes of the evaluation matrix: strategy × repetition × context × concurrency."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CacheStrategy(StrEnum):
    """How KV is kept and shared while a run is measured, from nothing to tiers outside the GPU."""

    NO_CACHE = "no-cache"
    """Every decode step recomputes its history; for explanation, no serving engine runs so."""
    PER_REQUEST = "per-request"
    """KV of a request lives as long as the request; no reuse across requests (the baseline)."""
    PREFIX = "prefix"
    PAGED = "paged"
    """Paged blocks without reuse across requests."""
    OFFLOAD = "offload"
    """Prefix reuse with KV kept in CPU memory, on disk or remotely as well."""


class Repetition(StrEnum):
    """How much of the prompts repeats earlier ones, by construction of the load."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class SessionGroup(StrEnum):
    """Kinds of conversations that are observed apart."""

    SHORT = "short"
    LONG = "long"
    MULTI_TURN = "multi-turn"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination to be measured. Runs are compared within a cell only, strategies across one."""

    strategy: CacheStrategy
    repetition: Repetition
    context_tokens: int
    """Mean prompt tokens the cell stands for; a run within 25 % of a planned one belongs here."""
    concurrency: int
    """Requests in flight that the load keeps up, or that its rate amounts to."""
