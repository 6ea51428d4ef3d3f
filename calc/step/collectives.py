"""What ranks exchange in one step: all-reduces of tensor parallelism, tokens on their way to experts and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calc.deployment import Deployment
from calc.hardware import Gpu
from calc.messages import msg
from calc.step.efficiency import Efficiency, for_ranks
from calc.step.kernels import ACTIVATION_BYTES, needed
from calc.workload import FloatArray

ALLREDUCES_PER_LAYER = 2
"""After attention and after the feed-forward block."""
GATHER_AND_SCATTER = 2


@dataclass(frozen=True, kw_only=True)
class Collective:
    """All exchanges of one kind in a step; each takes the quicker of the algorithms a library chooses from."""

    calls: int
    bytes_per_token: float
    """That cross one GPU's link per call."""
    latencies_s: Sequence[float]
    bytes_per_s: Sequence[float]

    def seconds(self, tokens: FloatArray) -> FloatArray:
        """calls · min over algorithms of (latency + bytes / rate)."""
        moved = tokens * self.bytes_per_token
        ways = [latency + moved / rate for latency, rate in zip(self.latencies_s, self.bytes_per_s, strict=True)]
        total: FloatArray = self.calls * np.minimum.reduce(ways)
        return total


def collectives(deployment: Deployment, shares: Efficiency) -> tuple[Collective, ...]:
    """Two all-reduces a layer over the TP ranks; with DP the experts of a MoE layer are shared by TP × DP ranks, which
    gather all ranks' tokens and scatter the results: together as much as one all-reduce of them."""
    model, tp, dp = deployment.model, deployment.tp, deployment.dp
    found = []
    if tp > 1:
        found.append(_ring(deployment.gpu, shares, ALLREDUCES_PER_LAYER * model.layers, model.hidden_size, tp))
    if dp > 1 and model.moe:
        calls = GATHER_AND_SCATTER * model.moe.moe_layers
        found.append(_ring(deployment.gpu, shares, calls, model.hidden_size * dp / GATHER_AND_SCATTER, tp * dp))
    return tuple(found)


def _ring(gpu: Gpu, shares: Efficiency, calls: int, elements_per_token: float, ranks: int) -> Collective:
    """All-reduces of that many elements per token: 2(n−1)/n of the message crosses each link."""
    link = needed(gpu.link_bytes_per_s, gpu, msg("NVLink or PCIe bandwidth (GB/s)"))
    latencies: tuple[float, ...]
    rates: tuple[float, ...]
    if gpu.nvlink_bytes_per_s:
        latencies = (for_ranks(shares.allreduce_s, ranks), shares.bulk_allreduce_s)
        rates = (link * shares.allreduce_share, link * shares.bulk_allreduce_share)
    else:
        latencies = (for_ranks(shares.pcie_allreduce_s, ranks),)
        rates = (link * for_ranks(shares.pcie_allreduce_share, ranks),)
    moved = elements_per_token * ACTIVATION_BYTES * 2 * (ranks - 1) / ranks
    return Collective(calls=calls, bytes_per_token=moved, latencies_s=latencies, bytes_per_s=rates)
