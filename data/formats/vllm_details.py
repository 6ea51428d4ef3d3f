"""Per-request arrays of a detailed ``vllm bench serve`` file: percentiles the summary lacks, and token lengths.

The arrays are used only where they reproduce the summary's own figures; a shortened array must not speak for the run.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calc.checks.growth import latency_growth_ratio
from data.formats.request_figures import length_percentiles

AGREES = 0.01
"""Largest relative difference between the arrays' mean or percentile and the summary's; beyond it they are ignored."""
_NUMBERS = frozenset({int, float})
_PERCENTILES = {"p50_s": 50, "p90_s": 90, "p95_s": 95, "p99_s": 99}


@dataclass(frozen=True, kw_only=True)
class Details:
    """Latencies in seconds and token lengths of single requests, as far as the file has them."""

    seconds: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    tokens: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    growth_ratio: float | None = None
    """Latency late in the run over early in it, where starts are listed and a trend is seen."""

    def complete(self, name: str, stats: Mapping[str, float]) -> dict[str, float]:
        """``stats`` with the percentiles it lacks, when the arrays agree with those it has."""
        values = self.seconds.get(name)
        if values is None or not values.size:
            return dict(stats)
        found = np.percentile(values, list(_PERCENTILES.values()))
        computed = dict(zip(_PERCENTILES, map(float, found), strict=True))
        computed["mean_s"] = float(values.mean())
        if any(abs(computed[key] - stats[key]) > AGREES * stats[key] for key in computed.keys() & stats.keys()):
            return dict(stats)
        return computed | dict(stats)

    def further(self) -> dict[str, float]:
        """Percentiles of prompt and output tokens over requests, and the growth of latency."""
        found: dict[str, float] = {}
        for name, values in self.tokens.items():
            found |= length_percentiles(name, values)
        return found if self.growth_ratio is None else found | {"latency_growth_ratio": self.growth_ratio}


def from_details(raw: Mapping[str, Any]) -> Details:
    """The arrays of one run; failed requests (no output) are left out."""
    prompts, outputs = _numbers(raw.get("input_lens")), _numbers(raw.get("output_lens"))
    first, gaps = _numbers(raw.get("ttfts")), raw.get("itls")
    answered = outputs > 0
    if not outputs.size or first.size != outputs.size:
        return Details()
    tokens = {"output": outputs[answered]}
    if prompts.size == outputs.size:
        tokens["input"] = prompts[answered]
    seconds = {"ttft": first[answered]}
    if isinstance(gaps, list) and len(gaps) == outputs.size:
        seconds |= _from_gaps(first, gaps, outputs)
    whole, started = _numbers(raw.get("latencies")), _numbers(raw.get("start_times"))
    if whole.size == outputs.size:
        seconds["e2e"] = whole[answered]
    begun = started[answered] if started.size == outputs.size else np.empty(0)
    growth = latency_growth_ratio(seconds["e2e"], begun) if "e2e" in seconds else None
    return Details(seconds=seconds, tokens=tokens, growth_ratio=growth)


def _from_gaps(
    first: NDArray[np.float64], gaps: list[Any], outputs: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """ITL over all gaps, E2E = TTFT + sum of gaps, TPOT = sum of gaps / (output tokens − 1)."""
    pooled, decode = _pooled(gaps)
    several = outputs > 1
    return {
        "itl": pooled,
        "e2e": (first + decode)[outputs > 0],
        "tpot": decode[several] / (outputs[several] - 1),
    }


def _pooled(gaps: list[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every gap of every request, and their sum by request; gaps that are no finite numbers count as none."""
    each = [gap if isinstance(gap, array) else _numbers(gap) for gap in gaps]
    pooled = np.concatenate([np.empty(0), *each])
    if _checked(pooled).size != pooled.size:
        each = [_numbers(gap) for gap in gaps]
        pooled = np.concatenate([np.empty(0), *each])
    counts = np.array([len(gap) for gap in each], dtype=np.int64)
    sums = np.zeros(counts.size)
    some = counts > 0
    if pooled.size:
        sums[some] = np.add.reduceat(pooled, (np.cumsum(counts) - counts)[some])
    return pooled, sums


def _numbers(values: Any) -> NDArray[np.float64]:
    """A list of finite non-negative numbers; empty when it is anything else. Large files bring arrays."""
    if isinstance(values, array):
        return _checked(np.frombuffer(values))
    if not isinstance(values, list) or not set(map(type, values)) <= _NUMBERS:
        return np.empty(0)
    try:
        return _checked(np.asarray(values, dtype=np.float64))
    except OverflowError:
        return np.empty(0)


def _checked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values if bool(np.isfinite(values).all() and (values >= 0).all()) else np.empty(0)
