"""GPUs and the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calc.errors import InputError
from calc.messages import msg


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One accelerator type. ``None`` means the figure is not known; it is never replaced by another GPU's."""

    id: str
    name: str
    memory_bytes: int
    """Memory as the driver shows it, not the box's figure."""
    memory_is_declared: bool = False
    """True when ``memory_bytes`` is derived from the nominal size, since no driver log was seen."""
    bandwidth_bytes_per_s: float | None = None
    flops_per_s: Mapping[str, float] = field(default_factory=dict)
    """Dense peak by dtype code: bf16, fp16, fp8, int8, fp4."""
    nvlink_bytes_per_s: float | None = None
    """NVLink (or similar), one direction, per GPU."""
    pcie_bytes_per_s: float | None = None
    """Host link, one direction."""
    source: str = "declared"
    checked_on: str = ""
    confidence: str = "declared"

    def __post_init__(self) -> None:
        if self.memory_bytes <= 0:
            raise InputError(
                msg(
                    "GPU memory must be above 0 GiB, got {value}: enter what the driver shows.", value=self.memory_bytes
                )
            )

    @property
    def link_bytes_per_s(self) -> float | None:
        """The link tensor parallelism uses: NVLink if there is one, else PCIe."""
        return self.nvlink_bytes_per_s or self.pcie_bytes_per_s
