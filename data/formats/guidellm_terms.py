"""GuideLLM's words for a load, the same in its reports and tables: strategies, prompt sources, and what its TPOT is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_OPEN = ("constant", "poisson", "async")
_SHARED_TEXT = re.compile(r"prefix_tokens\s*[=:]\s*[1-9]|turns\s*[=:]\s*(?:[2-9]|1\d)")


@dataclass(frozen=True, kw_only=True)
class Load:
    """How requests arrived."""

    strategy: str
    rate_per_s: float | None = None
    all_at_once: bool = False
    concurrency: int | None = None


def load_of(strategy: str, *, rate: float | None, streams: int | None, cap: int | None) -> Load:
    """Arrivals of a strategy; ``cap`` is the limit the user set, not the number of workers the tool starts."""
    if strategy in _OPEN:
        return Load(strategy=strategy, rate_per_s=rate, concurrency=cap)
    if strategy == "throughput":
        return Load(strategy=strategy, all_at_once=True, concurrency=cap)
    if strategy == "synchronous":
        return Load(strategy=strategy, concurrency=1)
    return Load(strategy=strategy, concurrency=streams)


def load_of_label(label: str) -> Load:
    """Arrivals of a label such as ``constant@2.00`` or ``concurrent@4``."""
    strategy, _, amount = label.partition("@")
    try:
        value = float(amount)
    except ValueError:
        value = None
    usable = value is not None and 0 < value < 1e9  # noqa: PLR2004
    rate = value if usable else None
    return load_of(strategy, rate=rate, streams=None if rate is None else round(rate), cap=None)


def flags_of(has_tpot: bool, *, shared: bool) -> tuple[str, ...]:
    """What the reader of a GuideLLM file knows: its TPOT is E2E over all tokens; prompts may share a prefix."""
    named = {"tpot_includes_first_token": has_tpot, "prompts_shared": shared}
    return tuple(code for code, fires in named.items() if fires)


def is_prefix_shared(data: Any) -> bool:
    """True when synthetic prompts share a prefix or go on over several turns."""
    sources = data if isinstance(data, list) else [data]
    return any(_shares(source) for source in sources)


def _shares(source: Any) -> bool:
    if isinstance(source, str):
        return _SHARED_TEXT.search(source) is not None
    if not isinstance(source, dict):
        return False
    turns = source.get("turns")
    return bool(source.get("prefix_buckets") or source.get("prefix_tokens")) or (
        isinstance(turns, int | float) and turns > 1
    )
