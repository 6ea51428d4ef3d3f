"""Per-request arrays of a detailed ``vllm bench serve`` file: percentiles the summary lacks, and token lengths.

The arrays are used only where they reproduce the summary's own figures; a shortened array must not speak for the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

AGREES = 0.01
"""Largest relative difference between the arrays' mean or percentile and the summary's; beyond it they are ignored."""
_PERCENTILES = {"p50_s": 50, "p90_s": 90, "p95_s": 95, "p99_s": 99}
_LENGTH_PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, kw_only=True)
class Details:
    """Latencies in seconds and token lengths of single requests, as far as the file has them."""

    seconds: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    tokens: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def complete(self, name: str, stats: Mapping[str, float]) -> dict[str, float]:
        """``stats`` with the percentiles it lacks, when the arrays agree with those it has."""
        values = self.seconds.get(name)
        if values is None or not values.size:
            return dict(stats)
        computed = {key: float(np.percentile(values, share)) for key, share in _PERCENTILES.items()}
        computed["mean_s"] = float(values.mean())
        if any(abs(computed[key] - stats[key]) > AGREES * stats[key] for key in computed.keys() & stats.keys()):
            return dict(stats)
        return computed | dict(stats)

    def lengths(self) -> dict[str, float]:
        """Percentiles of prompt and output tokens over requests."""
        return {
            f"{name}_tokens_p{share}": float(np.percentile(values, share))
            for name, values in self.tokens.items()
            if values.size
            for share in _LENGTH_PERCENTILES
        }


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
    return Details(seconds=seconds, tokens=tokens)


def _from_gaps(
    first: NDArray[np.float64], gaps: list[Any], outputs: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """ITL over all gaps, E2E = TTFT + sum of gaps, TPOT = sum of gaps / (output tokens − 1)."""
    per_request = [_numbers(g) for g in gaps]
    decode = np.array([g.sum() for g in per_request])
    several = outputs > 1
    return {
        "itl": np.concatenate(per_request),
        "e2e": (first + decode)[outputs > 0],
        "tpot": decode[several] / (outputs[several] - 1),
    }


def _numbers(values: Any) -> NDArray[np.float64]:
    """A list of finite non-negative numbers; empty when it is anything else."""
    if not isinstance(values, list) or not all(isinstance(v, int | float) for v in values):
        return np.empty(0)
    try:
        array = np.asarray(values, dtype=np.float64)
    except OverflowError:
        return np.empty(0)
    return array if bool(np.isfinite(array).all() and (array >= 0).all()) else np.empty(0)
