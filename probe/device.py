"""The device torch measures on: which one, its name and its free memory."""

from __future__ import annotations

import platform
from pathlib import Path

from calc.errors import ProbeError
from calc.messages import msg
from calc.units import KIB
from probe.plan import CPU_DTYPE

MEMINFO = Path("/proc/meminfo")
CPUINFO = Path("/proc/cpuinfo")
CGROUP = Path("/sys/fs/cgroup")
"""Where Linux tells memory, CPU name and a container's limit; other systems tell nothing and get ``None``."""


def resolve(asked: str) -> str:
    """``cuda`` or ``cpu`` for ``auto``, ``cuda`` or ``cpu``; asking for a GPU that is not there is an error."""
    import torch

    has_cuda = torch.cuda.is_available()
    if asked == "cuda" and not has_cuda:
        raise ProbeError(msg("torch {version} finds no CUDA GPU: measure on the CPU.", version=torch.__version__))
    return "cuda" if has_cuda and asked != "cpu" else "cpu"


def dtype(kind: str, asked: str) -> str:
    """The dtype to measure in: GPUs before Ampere only emulate bf16 and serve in fp16, as CPUs do both."""
    if kind == "cpu":
        return CPU_DTYPE
    import torch

    emulated = asked == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False)
    return "fp16" if emulated else asked


def name(kind: str) -> str:
    """As the driver or the kernel calls it."""
    if kind == "cuda":
        import torch

        return str(torch.cuda.get_device_name())
    return _fields(CPUINFO).get("model name") or platform.processor() or platform.machine()


def free_bytes(kind: str) -> int | None:
    """Free device memory; for a CPU the smaller of what the system and the container still grant, if they tell."""
    if kind == "cuda":
        import torch

        return int(torch.cuda.mem_get_info()[0])
    known = [free for free in (_available_bytes(), _container_bytes()) if free is not None]
    return min(known, default=None)


def _available_bytes() -> int | None:
    available = _fields(MEMINFO).get("MemAvailable")
    return int(available.split()[0]) * KIB if available else None


def _container_bytes() -> int | None:
    limit, used = CGROUP / "memory.max", CGROUP / "memory.current"
    if not limit.is_file() or not used.is_file() or limit.read_text().strip() == "max":
        return None
    return int(limit.read_text()) - int(used.read_text())


def _fields(path: Path) -> dict[str, str]:
    """First value of each ``key : value`` line."""
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    return found
