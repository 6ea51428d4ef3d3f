"""Where the time goes, at the mean and in the tail: the parts of the requests around a percentile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.anatomy.run import Run
from calc.workload import IntArray

NEAR_SHARE = 0.02
"""Requests within this share of ranks above and below a percentile speak for it; at P99 half a per cent."""
PERCENTILES = (("P50", 0.5), ("P95", 0.95), ("P99", 0.99))


@dataclass(frozen=True, kw_only=True)
class Split:
    """T_e2e = T_queue + T_prefill + T_decode + T_network of a group of requests, means in seconds."""

    name: str
    """``mean`` of all, or the percentile they lie around."""
    queue_s: float
    prefill_s: float
    decode_s: float
    network_s: float
    requests: int
    """How many the means are of."""

    @property
    def total_s(self) -> float:
        """The sum of the parts: the group's mean, close to the percentile."""
        return self.queue_s + self.prefill_s + self.decode_s + self.network_s


def splits(run: Run, metric: str) -> tuple[Split, ...]:
    """All requests, then those around P50, P95 and P99 of ``ttft`` or ``e2e``; a first token has no decode part."""
    times = run.times
    values, decode = (
        (times.ttft_s, np.zeros_like(times.decode_s)) if metric == "ttft" else (times.e2e_s, times.decode_s)
    )
    order = np.argsort(values)

    def split(name: str, chosen: IntArray | slice) -> Split:
        return Split(
            name=name,
            queue_s=float(times.queue_s[chosen].mean()),
            prefill_s=float(times.prefill_s[chosen].mean()),
            decode_s=float(decode[chosen].mean()),
            network_s=run.replica.model.http_s,
            requests=int(values[chosen].size),
        )

    around = tuple(split(name, order[_near(share, values.size)]) for name, share in PERCENTILES)
    return (split("mean", slice(None)), *around)


def _near(share: float, count: int) -> slice:
    """Ranks around a percentile, as many below as above; at least one."""
    half = min(NEAR_SHARE, (1 - share) / 2)
    middle = round(share * (count - 1))
    low, high = round((share - half) * (count - 1)), round((share + half) * (count - 1))
    return slice(max(0, min(low, middle)), min(count, max(high, middle) + 1))
