"""What the user is asked when adding a GPU, a model or a price of the team's own."""

from __future__ import annotations

from dataclasses import replace

from calc.messages import Message, msg
from ui.glossary.fields import FIELDS, Field, table_of

NONE_HERE = msg("Empty if the GPU has none.")


def _peak(code: str, label: Message, help: Message) -> Field:
    """A dense peak, in the bounds of the one at the side."""
    return replace(FIELDS["own_bf16"], key=f"gpu_{code}_tflops", label=label, help=help)


OWN_FIELDS = table_of(
    Field(key="gpu_name", label=msg("Name"), help=msg("As the team calls it. The same name again is a new version.")),
    replace(FIELDS["own_memory"], key="gpu_memory_gib"),
    replace(FIELDS["own_bandwidth"], key="gpu_bandwidth_gb_per_s"),
    _peak("bf16", msg("BF16 peak"), msg("Tensor cores. Needed for latency, not for memory.")),
    _peak("fp16", msg("FP16 peak"), msg("Tensor cores; what GPUs without BF16 compute in.")),
    _peak("fp8", msg("FP8 peak"), NONE_HERE),
    replace(_peak("int8", msg("INT8 peak"), NONE_HERE), unit="TOP/s"),
    replace(_peak("fp4", msg("FP4 peak"), NONE_HERE), high=200_000),
    Field(
        key="gpu_sparse",
        label=msg("The sheet states peaks with sparsity"),
        help=msg("Many vendor sheets do; the dense peak is half of it, and only that is kept."),
    ),
    Field(
        key="gpu_link_gb_per_s",
        label=msg("GPU-to-GPU link (NVLink or similar)"),
        unit="GB/s",
        low=1,
        high=10_000,
        step=50,
        help=msg("Per GPU. Empty if GPUs talk over PCIe."),
    ),
    Field(
        key="gpu_link_both",
        label=msg("The link figure is both directions together"),
        help=msg("As NVIDIA prints it: 900 GB/s of an H100 are 450 GB/s in one direction, and only that is kept."),
    ),
    Field(
        key="gpu_pcie_gb_per_s",
        label=msg("PCIe, one direction"),
        unit="GB/s",
        low=1,
        high=1_000,
        step=16,
        help=msg("Gen 4 x16: 32, Gen 5 x16: 64."),
    ),
    Field(key="price_gpu", label=msg("GPU"), help=msg("Which GPU the price is for; your own stand first.")),
    replace(FIELDS["price"], key="price_gpu_hour", help=msg("For one GPU, not for the node it stands in.")),
    Field(key="price_currency", label=msg("Currency"), help=msg("Amounts of different currencies are never compared.")),
    Field(
        key="price_commitment",
        label=msg("Commitment"),
        help=msg("On demand, reserved and spot are different prices of one GPU."),
    ),
    Field(key="price_region", label=msg("Region"), help=msg("Where the price holds, e.g. eu-west-1. May be empty.")),
    Field(
        key="source",
        label=msg("Source"),
        help=msg("Where the figures are from: an address, a document, a quote, nvidia-smi."),
    ),
    Field(key="checked_on", label=msg("Checked on"), help=msg("The day somebody last looked at the source.")),
)
"""Widget key without its form's prefix → the field. Prices and dates are per form."""
