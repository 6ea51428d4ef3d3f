"""Where KV can lie outside the GPU, and how fast it comes back: a dated row for each kind of link."""

from __future__ import annotations

from dataclasses import dataclass

from calc.deployment import Deployment
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.serving import Tier
from calc.units import GB

CHECKED_ON = "2026-11-30"
PCIE_SHARE = 50 / 64
"""Of one direction of PCIe that copies of large blocks reach: 50 of 64 GB/s on an H100 (vLLM, 2026-01-08); LMCache's
logs show 41-44 GB/s, an H20 54 GB/s."""
COHERENT = ("gh200", "gb200", "gb300")
"""GPU id prefixes with a coherent link to their own CPU's memory (NVLink-C2C)."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """One kind of link to a tier."""

    code: str
    name: Message
    tier: str
    """Name of the tier at its end: ``cpu``, ``disk`` or ``remote``."""
    bytes_per_s: float
    """Reading back, one way; of each GPU where ``per_gpu``, else of the replica."""
    per_gpu: bool
    latency_s: float
    """Look-up and first byte; assumed where the source gives none."""
    source: Message
    checked_on: str = CHECKED_ON

    def speed(self, gpus: int) -> float:
        """Bytes per second of a replica of ``gpus`` GPUs."""
        return self.bytes_per_s * (gpus if self.per_gpu else 1)

    def as_tier(self, gpus: int, *, concurrency: int = 4) -> Tier:
        """The same as a tier of the scenario."""
        return Tier(name=self.tier, bytes_per_s=self.speed(gpus), latency_s=self.latency_s, concurrency=concurrency)


_MEMORY_S, _DISK_S, _NETWORK_S = 0.1e-3, 1e-3, 2e-3
"""Assumed: an index look-up; a file opened; a round trip to a store with its look-up."""

PCIE4, PCIE5, C2C, NVME, RDMA, TCP, NIC400 = "pcie4", "pcie5", "c2c", "nvme", "rdma", "tcp", "nic-400g"

LINKS = (
    Link(
        code=PCIE4,
        name=msg("CPU memory (PCIe Gen4 x16)"),
        tier="cpu",
        bytes_per_s=32 * GB * PCIE_SHARE,
        per_gpu=True,
        latency_s=_MEMORY_S,
        source=msg("32 GB/s × the share measured on Gen5 (50 of 64 GB/s, vLLM blog 2026-01-08); latency assumed"),
    ),
    Link(
        code=PCIE5,
        name=msg("CPU memory (PCIe Gen5 x16)"),
        tier="cpu",
        bytes_per_s=64 * GB * PCIE_SHARE,
        per_gpu=True,
        latency_s=_MEMORY_S,
        source=msg("50 GB/s one way by DMA (vLLM blog 2026-01-08); 41-44 in LMCache logs, 54 on H20; latency assumed"),
    ),
    Link(
        code=C2C,
        name=msg("CPU memory (NVLink-C2C)"),
        tier="cpu",
        bytes_per_s=450 * GB,
        per_gpu=True,
        latency_s=_MEMORY_S,
        source=msg("nominal, one direction; no measured rate was found; latency assumed"),
    ),
    Link(
        code=NVME,
        name=msg("local NVMe disk"),
        tier="disk",
        bytes_per_s=4 * GB,
        per_gpu=False,
        latency_s=_DISK_S,
        source=msg("3-5 GB/s are usual for one disk; latency assumed"),
    ),
    Link(
        code=NIC400,
        name=msg("remote store (400 Gbit/s RDMA)"),
        tier="remote",
        bytes_per_s=42 * GB,
        per_gpu=False,
        latency_s=_NETWORK_S,
        source=msg("42 GB/s reached on one adapter (Mooncake#813); latency assumed"),
    ),
    Link(
        code=RDMA,
        name=msg("remote store (RDMA, cache server)"),
        tier="remote",
        bytes_per_s=6.4 * GB,
        per_gpu=False,
        latency_s=_NETWORK_S,
        source=msg("6.4 GB/s on loading (LMCache#3018); latency assumed"),
    ),
    Link(
        code=TCP,
        name=msg("remote store (TCP)"),
        tier="remote",
        bytes_per_s=3.2 * GB,
        per_gpu=False,
        latency_s=_NETWORK_S,
        source=msg("3.2 GB/s on loading (LMCache#3018); latency assumed"),
    ),
)
"""Every kind of link, fastest of its tier first where they are alternatives."""

PCIE5_BYTES_PER_S = 64 * GB


def links_of(gpu: Gpu) -> tuple[Link, ...]:
    """The links a server with this GPU can have: its own to CPU memory, then disk and network."""
    return (host_link(gpu), *(link for link in LINKS if link.tier != "cpu"))


def host_link(gpu: Gpu) -> Link:
    """The GPU's link to CPU memory; Gen5 where its PCIe generation is not known."""
    codes = {link.code: link for link in LINKS}
    if gpu.id.lower().startswith(COHERENT):
        return codes[C2C]
    slower = gpu.pcie_bytes_per_s is not None and gpu.pcie_bytes_per_s < PCIE5_BYTES_PER_S
    return codes[PCIE4 if slower else PCIE5]


def gpus_sharing(deployment: Deployment) -> int:
    """GPUs over whose links the KV of one scheduler (one DP rank) comes back."""
    return deployment.tp * deployment.pp
