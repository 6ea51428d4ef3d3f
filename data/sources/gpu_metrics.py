"""GPUs in a metrics text of the DCGM exporter, one record a GPU, and whether they share the work evenly."""

from __future__ import annotations

from collections.abc import Sequence

from calc.units import MEGA, MIB
from data.records import GpuMetrics
from data.sources.metrics_text import SOURCE_LABEL, Sample, is_blank

_FIELDS = {
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_hz", float(MEGA)),
    "DCGM_FI_DEV_MEM_CLOCK": ("memory_clock_hz", float(MEGA)),
    "DCGM_FI_DEV_MEMORY_TEMP": ("memory_temperature_c", 1.0),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_c", 1.0),
    "DCGM_FI_DEV_GPU_UTIL": ("busy_share", 0.01),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("memory_busy_share", 0.01),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active_share", 1.0),
    "DCGM_FI_DEV_FB_USED": ("memory_used_bytes", float(MIB)),
    "DCGM_FI_DEV_FB_FREE": ("memory_free_bytes", float(MIB)),
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", 1.0),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_sent_bytes_per_s", 1.0),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_received_bytes_per_s", 1.0),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("nvlink_bytes_per_s", 1.0),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active_share", 1.0),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dram_active_share", 1.0),
    "DCGM_FI_DEV_FB_RESERVED": ("memory_reserved_bytes", float(MIB)),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit_w", 1.0),
    "nv_gpu_utilization": ("busy_share", 1.0),
    "nv_gpu_memory_used_bytes": ("memory_used_bytes", 1.0),
    "nv_gpu_power_usage": ("power_w", 1.0),
    "nv_gpu_power_limit": ("power_limit_w", 1.0),
}
"""Field of DCGM or Triton → ours and the factor from MHz, %, MiB (NVIDIA/dcgm-exporter etc/default-counters.csv)."""
_IMBALANCE = 0.2
_IN_USE_SHARE = 0.1
"""A GPU with less than this share of the fullest one's memory belongs to nobody's run."""


def gpus_of(samples: Sequence[Sample]) -> tuple[GpuMetrics, ...]:
    """Every GPU (and MIG slice) of the text; a value the driver does not support is ``None``."""
    values: dict[str, dict[str, float]] = {}
    names: dict[str, str] = {}
    several_hosts = len({_host(s) for s in samples if s.name in _FIELDS}) > 1
    for sample in samples:
        if sample.name not in _FIELDS or not {"gpu", "gpu_uuid"} & set(sample.labels):
            continue
        gpu = _id(sample, several_hosts)
        known = values.setdefault(gpu, {})
        if "modelName" in sample.labels:
            names[gpu] = sample.labels["modelName"]
        if not is_blank(sample.value):
            field, factor = _FIELDS[sample.name]
            known[field] = sample.value * factor
    return tuple(GpuMetrics(gpu=gpu, name=names.get(gpu), **known) for gpu, known in values.items())


def _id(sample: Sample, several_hosts: bool) -> str:
    gpu = sample.labels.get("gpu") or sample.labels["gpu_uuid"]
    slice_id = sample.labels.get("GPU_I_ID")
    name = gpu if slice_id is None else f"{gpu}:{slice_id}"
    return f"{_host(sample)}/{name}" if several_hosts else name


def _host(sample: Sample) -> str:
    return sample.labels.get("Hostname") or sample.labels.get(SOURCE_LABEL, "")


def imbalanced(gpus: Sequence[GpuMetrics]) -> bool:
    """True when the GPUs in use differ by more than 20 % in memory used, or by 20 points in time busy."""
    fullest = max((gpu.memory_used_bytes or 0 for gpu in gpus), default=0)
    used = [gpu for gpu in gpus if (gpu.memory_used_bytes or 0) >= _IN_USE_SHARE * fullest]
    memory = [gpu.memory_used_bytes for gpu in used if gpu.memory_used_bytes]
    busy = [gpu.busy_share for gpu in used if gpu.busy_share is not None]
    uneven_memory = len(memory) > 1 and max(memory) > (1 + _IMBALANCE) * min(memory)
    return uneven_memory or (len(busy) > 1 and max(busy) - min(busy) > _IMBALANCE)
