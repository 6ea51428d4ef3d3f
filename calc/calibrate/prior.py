"""How far each factor may be off before anything is measured, and how well each kind of figure is predicted.

Widths are standard deviations of the logarithm of a factor. They began as the scatter of kernel tables (10th to 90th
percentile of the share of bandwidth and of peak reached by one GPU's kernels: ± 10 to 20 %) and of what was left when
each measured setup alone was fitted; then one common scale of all widths was chosen by leaving one setup out at a time
(see docs/accuracy.md). Within half and twice these widths the errors of the remaining points hardly change.
"""

from __future__ import annotations

from collections.abc import Mapping

WIDTHS: Mapping[str, float] = {
    "memory": 0.15,
    "compute": 0.20,
    "link": 0.30,
    "step": 0.40,
    "sequence": 1.0,
    "request": 1.0,
    "network": 1.5,
    "first_token_steps": 1.5,
}
"""Of log factor; of log(1 + steps) for the first token. Engine and network costs differ most between set-ups."""

SIGMA: Mapping[str, float] = {"ttft": 0.08, "tpot": 0.02, "itl": 0.05, "e2e": 0.03, "throughput": 0.03}
"""Relative error of a mean that a fitted model leaves, by latency: what repeated runs and the queue's chance leave."""
STATISTICS: Mapping[str, float] = {"mean": 1.0, "p50": 1.25, "p90": 2.0, "p95": 2.5, "p99": 4.0}
"""How much less a percentile says: by so much its error is larger."""
PEAK_SHARE = 1.05
"""Highest share of a peak a fit may find: boost clocks and L2 hits reach a few per cent more than data sheets say."""
ROBUST_SIGMAS = 3.0
"""Beyond so many sigmas a figure pulls with constant force (pseudo-Huber), so that one bad point bends nothing."""
IDENTIFIED_SHARE = 0.7
"""A factor whose standard deviation is still above this share of its width was not told by the points."""
Z95 = 1.96
"""95 % two-sided quantile of the normal distribution."""
