"""What the NVIDIA driver says about its GPUs right now, through NVML. ``None`` = this GPU or driver does not tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from calc.messages import Message, msg
from calc.units import MEGA, MILLI

THROTTLE_REASONS: tuple[tuple[int, Message], ...] = (
    (0x001, msg("idle")),
    (0x002, msg("clocks set by an application")),
    (0x004, msg("power cap")),
    (0x008, msg("hardware slowdown")),
    (0x010, msg("sync boost")),
    (0x020, msg("thermal limit (driver)")),
    (0x040, msg("thermal limit (hardware)")),
    (0x080, msg("power brake")),
    (0x100, msg("display clocks")),
)
"""Bits of nvmlClocksEventReasons, from nvml.h."""

BLANK_VALUES = frozenset(
    base + offset
    for base in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 2**47)
    for offset in range(4)  # blank, not found, not supported, not permitted
) | {2**32 - 1, 2**64 - 1}
"""Numbers that mean "no value": DCGM's blanks of 32-bit, 64-bit and real fields (dcgm_structs.h) and NVML's -1."""

MAX_NVLINKS = 36
"""NVML_NVLINK_MAX_LINKS of nvml.h."""


@dataclass(frozen=True, kw_only=True)
class GpuFacts:
    """One GPU at the moment of the report."""

    index: int
    name: str | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    memory_free_bytes: int | None
    utilisation_share: float | None
    """Time with at least one kernel running, over the driver's last sample period; not how busy the cores were."""
    temperature_c: float | None
    power_w: float | None
    power_limit_w: float | None
    sm_clock_hz: float | None
    sm_clock_max_hz: float | None
    memory_clock_hz: float | None
    throttle_reasons: tuple[Message, ...] | None
    """Why clocks are below their maximum; empty = nothing holds them back."""
    pcie_generation: int | None
    pcie_width: int | None
    nvlinks_active: int | None
    process_count: int | None
    """Compute processes."""


@dataclass(frozen=True, kw_only=True)
class NvmlReport:
    """All GPUs of this machine, or why there is nothing to tell."""

    available: bool
    reason: Message | None = None
    driver_version: str | None = None
    gpus: tuple[GpuFacts, ...] = ()
    sampled_at: str
    """UTC, ISO 8601."""


def gpu_facts(binding: Any = None) -> NvmlReport:
    """Ask NVML once, through ``binding`` or else ``pynvml``. A missing driver is a report, not an error."""
    nvml = binding or _pynvml()
    sampled_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return NvmlReport(available=False, reason=_absence(nvml, error), sampled_at=sampled_at)
    try:
        count = _ask(nvml, nvml.nvmlDeviceGetCount) or 0
        return NvmlReport(
            available=True,
            driver_version=_text(_ask(nvml, nvml.nvmlSystemGetDriverVersion)),
            gpus=tuple(_facts(nvml, index) for index in range(count)),
            sampled_at=sampled_at,
        )
    finally:
        nvml.nvmlShutdown()


def _pynvml() -> Any:
    import pynvml

    return pynvml


def _absence(nvml: Any, error: Exception) -> Message:
    if isinstance(error, nvml.NVMLError_LibraryNotFound):
        return msg("No NVIDIA driver was found on this machine: live GPU figures are not available here.")
    if isinstance(error, nvml.NVMLError_DriverNotLoaded):
        return msg("The NVIDIA driver is installed but not loaded: load it or restart the machine.")
    if isinstance(error, nvml.NVMLError_NoPermission):
        return msg("This process may not talk to the NVIDIA driver: give it access to /dev/nvidia*.")
    return msg("The NVIDIA driver did not answer ({reason}): check it with nvidia-smi.", reason=str(error))


def _ask(nvml: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or ``None`` when this GPU, driver or user cannot have it."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


def _facts(nvml: Any, index: int) -> GpuFacts:
    handle = _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, index)

    def ask(call: Callable[..., Any], *arguments: Any) -> Any:
        return None if handle is None else _ask(nvml, call, handle, *arguments)

    memory, use = ask(nvml.nvmlDeviceGetMemoryInfo), ask(nvml.nvmlDeviceGetUtilizationRates)
    processes = ask(nvml.nvmlDeviceGetComputeRunningProcesses)
    return GpuFacts(
        index=index,
        name=_text(ask(nvml.nvmlDeviceGetName)),
        memory_total_bytes=_whole(memory and memory.total),
        memory_used_bytes=_whole(memory and memory.used),
        memory_free_bytes=_whole(memory and memory.free),
        utilisation_share=_scaled(use and use.gpu, 1 / 100),
        temperature_c=_scaled(ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU), 1),
        power_w=_scaled(ask(nvml.nvmlDeviceGetPowerUsage), MILLI),
        power_limit_w=_scaled(ask(nvml.nvmlDeviceGetEnforcedPowerLimit), MILLI),
        sm_clock_hz=_scaled(ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM), MEGA),
        sm_clock_max_hz=_scaled(ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM), MEGA),
        memory_clock_hz=_scaled(ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM), MEGA),
        throttle_reasons=_reasons(_whole(ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons))),
        pcie_generation=_whole(ask(nvml.nvmlDeviceGetCurrPcieLinkGeneration)),
        pcie_width=_whole(ask(nvml.nvmlDeviceGetCurrPcieLinkWidth)),
        nvlinks_active=_active_links(lambda link: ask(nvml.nvmlDeviceGetNvLinkState, link)),
        process_count=None if processes is None else len(processes),
    )


def _active_links(state_of: Callable[[int], Any]) -> int | None:
    """Links that are up; ``None`` on a GPU without NVLink."""
    states = [state for state in map(state_of, range(MAX_NVLINKS)) if state is not None]
    return sum(bool(state) for state in states) if states else None


def _reasons(bits: int | None) -> tuple[Message, ...] | None:
    return None if bits is None else tuple(name for bit, name in THROTTLE_REASONS if bits & bit)


def _whole(value: Any) -> int | None:
    return None if value is None or value in BLANK_VALUES else int(value)


def _scaled(value: Any, factor: float) -> float | None:
    known = _whole(value)
    return None if known is None else known * factor


def _text(value: Any) -> str | None:
    """Older bindings answer in bytes."""
    return value.decode() if isinstance(value, bytes) else value
