"""How much of a GPU's peak real kernels reach, and what launches, links and the engine's own code cost on top.

Medians of public kernel tables (aiconfigurator-core 0.12.0: GEMM shapes with N, K ≥ 4096, attention, all-reduce) and of
whole-step measurements of vLLM 0.15 over HTTP. A GPU without a row of its own uses the generic one and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from calc.hardware import Gpu


@dataclass(frozen=True, kw_only=True)
class Efficiency:
    """Shares of peak (0–1) and fixed costs in seconds; calibration replaces single fields."""

    row: str
    """GPU family the shares belong to, or ``generic``."""
    is_alike: bool = False
    """The GPU is not of that family, but of its generation and kind of memory."""
    compute_share: Mapping[str, float]
    """Of peak FLOP/s by dtype code, large matrix products (2,048 rows)."""
    bandwidth_share: Mapping[str, float]
    """Of peak bytes/s by width of the weights (bf16, fp8, fp4), 1–64 rows."""
    expert_bandwidth_share: float = 1.0
    """Of that of other matrix products, reached by grouped products over experts: less where no tuned tiles exist."""
    attention_compute_share: float = 0.5
    """Causal prefill, 4–16 thousand tokens: .49–.67 measured on H100, H200, A100, L40S."""
    attention_bandwidth_share: float = 0.85
    """Decode, once more than 250 MB a layer are read."""
    layer_s: float = 26e-6
    """Per layer and step: four matrix kernels × 3 µs, 9 µs attention, the small kernels between them (CUDA graphs)."""
    moe_layer_s: float = 12e-6
    """More per MoE layer: router, top-k, alignment of tokens to experts (three kernels)."""
    shared_expert_s: float = 11e-6
    """More per MoE layer with shared experts: their two products and the sum."""
    expert_evenness: float = 2.0
    """1 over the squared coefficient of variation of how popular experts are."""
    mla_layer_s: float = 14e-6
    """More per MLA layer: four more projections."""
    layer_sequence_s: float = 0.21e-6
    """Per layer and sequence in decode attention (residual of the H100 table at 8–128 sequences)."""
    sequence_s: float = 9.5e-6
    """Per sequence and step: sampling, detokenising, scheduling."""
    step_s: float = 0.3e-3
    """Per step with asynchronous scheduling."""
    sync_step_s: float = 1.4e-3
    """Per step when the engine prepares the next one only after the last. Between 2–3 ms seen on 1–2 B models in 2025
    and the runs of docs/accuracy.md, whose scripts switched asynchronous scheduling on though no case states it."""
    prefill_s: float = 0.2e-3
    """Once per admitted request."""
    allreduce_s: Mapping[int, float] = field(default_factory=lambda: {2: 8e-6, 4: 9e-6, 8: 10e-6})
    """Latency of one all-reduce over NVLink by ranks, with the skew of the ranks."""
    allreduce_share: float = 0.45
    """Of one direction of NVLink."""
    bulk_allreduce_s: float = 30e-6
    """Latency of NCCL, which takes over large messages: launched outside graphs, ranks waiting for each other."""
    bulk_allreduce_share: float = 0.65
    """Of one direction of NVLink, by NCCL (H100, 64 MB: 250-315 of 450 GB/s)."""
    activation_share: float = 0.65
    """Of bandwidth, reached by the kernels between matrix products."""
    eager_layer_s: float = 0.15e-3
    """Host time per layer of a step too large for a captured graph, whose kernels are launched one by one."""
    eager_moe_layer_s: float = 0.4e-3
    """More per MoE layer."""
    pcie_allreduce_s: Mapping[int, float] = field(default_factory=lambda: {2: 12e-6, 4: 20e-6, 8: 40e-6})
    pcie_allreduce_share: Mapping[int, float] = field(default_factory=lambda: {2: 0.6, 4: 0.27, 8: 0.15})
    """Of one direction of PCIe; depends on switches and sockets (.04–.33 measured at 8 ranks)."""
    http_s: float = 6.5e-3
    """Client, HTTP, tokeniser, first chunk back (warm TTFT = 5.5 ms + steps; vLLM 0.15.1, n = 50)."""
    http_token_s: float = 1e-6
    """More per prompt token: a tokeniser does about a million tokens a second on one core."""


FAMILIES: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]] = {
    "a100": ({"bf16": 0.89}, {"bf16": 0.70}),
    "a800": ({"bf16": 0.89}, {"bf16": 0.70}),
    "h100": ({"bf16": 0.83, "fp8": 0.57}, {"bf16": 0.83, "fp8": 0.82}),
    "h800": ({"bf16": 0.83, "fp8": 0.57}, {"bf16": 0.83, "fp8": 0.82}),
    "h200": ({"bf16": 0.82, "fp8": 0.62}, {"bf16": 0.78, "fp8": 0.77}),
    "b200": ({"bf16": 0.70, "fp8": 0.48, "fp4": 0.39}, {"bf16": 0.75, "fp8": 0.71, "fp4": 0.63}),
    "l40s": ({"bf16": 0.69, "fp8": 0.52}, {"bf16": 0.80, "fp8": 0.75}),
    "rtx4090": ({"bf16": 0.80}, {"bf16": 0.88, "fp8": 0.86}),
    "rtxpro6000": ({"bf16": 0.85, "fp8": 0.78, "fp4": 0.63}, {"bf16": 0.80, "fp8": 0.78, "fp4": 0.58}),
}
"""GPU id prefix → share of peak FLOP/s at 2,048 rows, share of bandwidth at 1–64 rows.

Medians; of narrow weights the BF16 median × the ratio of the 90th percentiles (large matrices), because their medians
are pulled down by launch latency, which ``layer_s`` counts already (table: H100 FP8 median .70, 90th percentile .87),
and then moved by up to 4 % towards measured runs. RTX 4090: bandwidth from one recorded run of vLLM 0.19.
"""

ALIKE: Mapping[str, str] = {
    "gb200": "b200",
    "b300": "b200",
    "gb300": "b200",
    "gh200": "h200",
    "h20": "h100",
    "l40": "l40s",
    "l20": "l40s",
}
"""GPU id prefix → family of the same generation and kind of memory, for GPUs without kernel tables of their own."""

ATTENTION_BANDWIDTH: Mapping[str, float] = {
    "a100": 0.78,
    "a800": 0.78,
    "h100": 0.90,
    "h800": 0.90,
    "h200": 0.84,
    "b200": 0.90,
    "l40s": 0.76,
    "rtx4090": 0.85,
    "rtxpro6000": 0.72,
}
"""GPU id prefix → share of bandwidth decode attention reaches on long caches (A100 .77–.81, H100 .86–.93, H200 5–8
points less, B200 up to .92, L40S .70–.83 beyond its L2 cache; whole steps ask for 2 points less than that.
RTX PRO at the lower end of L40S, and RTX 4090, from one recorded run each)."""

TUNED_EXPERTS = ("a100", "a800", "h100", "h800", "h200", "b200")
"""GPU id prefixes for which vLLM ships tuned tiles of its expert kernels; others get default ones, and the engine's
log says so ("Using default MoE config. Performance might be sub-optimal")."""
UNTUNED_EXPERTS = 0.7

GENERIC = ({"bf16": 0.80, "fp8": 0.57, "fp4": 0.45}, {"bf16": 0.78, "fp8": 0.76, "fp4": 0.60})
"""Median over the families: for a GPU without measurements."""


def efficiency_of(gpu: Gpu) -> Efficiency:
    """The row of the GPU's family, by its id; else of a family like it; ``generic`` when there is none."""
    own = _longest(gpu, FAMILIES)
    like = None if own else _longest(gpu, ALIKE)
    family = own or (ALIKE[like] if like else None)
    if family is None:
        return Efficiency(
            row="generic",
            compute_share=GENERIC[0],
            bandwidth_share=GENERIC[1],
            expert_bandwidth_share=UNTUNED_EXPERTS,
        )
    compute, bandwidth = FAMILIES[family]
    return Efficiency(
        row=family,
        is_alike=own is None,
        compute_share={**GENERIC[0], **compute},
        bandwidth_share={**GENERIC[1], **bandwidth},
        attention_bandwidth_share=ATTENTION_BANDWIDTH[family],
        expert_bandwidth_share=1.0 if family in TUNED_EXPERTS else UNTUNED_EXPERTS,
    )


def _longest(gpu: Gpu, prefixes: Iterable[str]) -> str | None:
    """The longest of the prefixes that the GPU's id starts with."""
    return max((prefix for prefix in prefixes if gpu.id.lower().startswith(prefix)), key=len, default=None)


def for_ranks(table: Mapping[int, float], ranks: int) -> float:
    """The entry of the smallest listed group that holds ``ranks``; beyond the table its last entry."""
    fitting = [size for size in sorted(table) if size >= ranks]
    return table[fitting[0] if fitting else max(table)]
