"""What the user is asked: label, unit, help and bounds of every field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calc.messages import Message, msg


@dataclass(frozen=True, kw_only=True)
class Field:
    """One thing the user is asked: its words, unit and sensible bounds (checked again by the reader of the case)."""

    key: str
    label: Message
    help: Message
    unit: str = ""
    low: float | None = None
    high: float | None = None
    step: float | None = None


def table_of(*rows: Field) -> Mapping[str, Field]:
    """Fields by key."""
    return {row.key: row for row in rows}


FIELDS = table_of(
    Field(key="name", label=msg("Name"), help=msg("How this scenario is listed, compared and printed.")),
    Field(key="model", label=msg("Model"), help=msg("A model of the catalogue, or your own config.json below.")),
    Field(key="gpu", label=msg("GPU"), help=msg("A GPU of the catalogue, or your own figures.")),
    Field(
        key="own_memory",
        label=msg("Memory"),
        unit="GiB",
        low=1,
        high=2048,
        step=1,
        help=msg("As the driver shows it (nvidia-smi: MiB / 1024), not the figure on the box."),
    ),
    Field(
        key="own_bandwidth",
        label=msg("Memory bandwidth"),
        unit="GB/s",
        low=10,
        high=50_000,
        step=100,
        help=msg("From the data sheet. Needed for latency, not for memory."),
    ),
    Field(
        key="own_bf16",
        label=msg("BF16 peak, dense"),
        unit="TFLOP/s",
        low=1,
        high=100_000,
        step=50,
        help=msg("Without sparsity. Needed for latency, not for memory."),
    ),
    Field(
        key="own_fp8",
        label=msg("FP8 peak, dense"),
        unit="TFLOP/s",
        low=1,
        high=100_000,
        step=50,
        help=msg("Without sparsity; empty if the GPU has none."),
    ),
    Field(
        key="own_link",
        label=msg("GPU-to-GPU link, one direction"),
        unit="GB/s",
        low=1,
        high=5_000,
        step=50,
        help=msg("NVLink or PCIe, per GPU. Needed for latency when TP is above 1."),
    ),
    Field(
        key="gpus",
        label=msg("GPUs"),
        low=1,
        high=4096,
        step=1,
        help=msg("Replicas = GPUs / (TP · PP · DP); it must come out whole."),
    ),
    Field(
        key="tp",
        label=msg("TP"),
        low=1,
        high=64,
        step=1,
        help=msg("Tensor parallel: each layer is split over this many GPUs."),
    ),
    Field(
        key="pp",
        label=msg("PP"),
        low=1,
        high=64,
        step=1,
        help=msg("Pipeline parallel: layers are dealt to this many stages."),
    ),
    Field(key="dp", label=msg("DP"), low=1, high=64, step=1, help=msg("Data-parallel ranks inside one engine.")),
    Field(
        key="ep", label=msg("Expert parallel"), help=msg("Spread a mixture-of-experts model's experts over TP · DP.")
    ),
    Field(key="engine", label=msg("Engine"), help=msg("Its defaults decide what is inside the memory budget.")),
    Field(
        key="version",
        label=msg("Version"),
        help=msg("Defaults change between versions; an unknown one uses the nearest older row and says so."),
    ),
    Field(
        key="fraction",
        label=msg("Memory fraction"),
        low=0.05,
        high=1.0,
        step=0.01,
        help=msg("Share of GPU memory the engine may use. Empty = the version's default."),
    ),
    Field(
        key="max_len",
        label=msg("Max model length"),
        unit="tokens",
        low=16,
        high=10_000_000,
        step=1024,
        help=msg("Longest prompt + output one request may reach. Empty = the model's own limit."),
    ),
    Field(
        key="max_batched",
        label=msg("Max batched tokens"),
        unit="tokens",
        low=16,
        high=1_000_000,
        step=1024,
        help=msg("Token budget of one engine step. Empty = the version's default."),
    ),
    Field(
        key="max_seqs",
        label=msg("Max sequences"),
        low=1,
        high=100_000,
        step=16,
        help=msg("Most requests in one step. Empty = the version's default."),
    ),
    Field(
        key="kv_dtype",
        label=msg("KV cache dtype"),
        help=msg("Auto = as the model is computed. FP8 halves the cache; check answers for quality."),
    ),
    Field(key="weight_dtype", label=msg("Weight dtype"), help=msg("Auto = as the checkpoint stores them.")),
    Field(
        key="prefix_caching",
        label=msg("Prefix caching"),
        help=msg("Reuse of exactly equal prompt beginnings across requests."),
    ),
    Field(
        key="preset",
        label=msg("Business type"),
        help=msg("Fills in lengths, arrivals and targets; each stays editable."),
    ),
    Field(
        key="prompt_kind", label=msg("Prompt lengths"), help=msg("How prompt lengths spread. Averages hide the tail.")
    ),
    Field(
        key="prompt_p50",
        label=msg("Prompt P50"),
        unit="tokens",
        low=1,
        high=10_000_000,
        step=100,
        help=msg("Half of the prompts are shorter."),
    ),
    Field(
        key="prompt_p95",
        label=msg("Prompt P95"),
        unit="tokens",
        low=1,
        high=10_000_000,
        step=100,
        help=msg("19 of 20 prompts are shorter."),
    ),
    Field(
        key="prompt_quantiles",
        label=msg("Prompt quantiles"),
        help=msg("Pairs share:tokens, rising, e.g. 0:20, 0.5:600, 0.95:4000, 1:16000."),
    ),
    Field(key="output_kind", label=msg("Output lengths"), help=msg("How output lengths spread.")),
    Field(
        key="output_p50",
        label=msg("Output P50"),
        unit="tokens",
        low=1,
        high=10_000_000,
        step=50,
        help=msg("Half of the outputs are shorter."),
    ),
    Field(
        key="output_p95",
        label=msg("Output P95"),
        unit="tokens",
        low=1,
        high=10_000_000,
        step=50,
        help=msg("19 of 20 outputs are shorter."),
    ),
    Field(
        key="output_quantiles",
        label=msg("Output quantiles"),
        help=msg("Pairs share:tokens, rising, e.g. 0:1, 0.5:200, 1:2000."),
    ),
    Field(
        key="arrivals",
        label=msg("Arrivals"),
        help=msg("Open: requests come at a rate whatever the engine does. Closed: each user waits for the answer."),
    ),
    Field(
        key="rate",
        label=msg("Request rate"),
        unit="requests/s",
        low=0.001,
        high=100_000,
        step=0.5,
        help=msg("Mean arrivals per second on the whole deployment."),
    ),
    Field(
        key="concurrency",
        label=msg("Concurrency"),
        unit="requests",
        low=1,
        high=100_000,
        step=1,
        help=msg("Requests in flight at once on the whole deployment."),
    ),
    Field(
        key="cv",
        label=msg("Burstiness (CV)"),
        low=0.05,
        high=100,
        step=0.1,
        help=msg("Spread of the gaps between arrivals; 1 = Poisson."),
    ),
    Field(
        key="minute_rates",
        label=msg("Rate per minute"),
        unit="requests/s",
        help=msg("One rate per minute, e.g. 2, 4, 9, 6."),
    ),
    Field(
        key="hit",
        label=msg("Prefix hit share"),
        unit="%",
        low=0,
        high=100,
        step=1,
        help=msg("Share of prompt tokens found in the cache. Declared until a trace or the engine's counters show it."),
    ),
    Field(
        key="idle_share",
        label=msg("Idle sessions"),
        unit="%",
        low=0,
        high=99,
        step=5,
        help=msg("Share of open sessions whose user pauses while their context is to stay cached."),
    ),
    Field(
        key="idle_context",
        label=msg("Context of an idle session"),
        unit="tokens",
        low=1,
        high=20_000_000,
        step=500,
        help=msg("What it keeps cached. Empty: a finished request, prompt and output."),
    ),
    Field(
        key="slo_ttft",
        label=msg("TTFT target"),
        unit="ms",
        low=1,
        high=600_000,
        step=50,
        help=msg("Empty = no target."),
    ),
    Field(
        key="slo_itl", label=msg("ITL target"), unit="ms", low=1, high=60_000, step=5, help=msg("Empty = no target.")
    ),
    Field(
        key="slo_e2e", label=msg("E2E target"), unit="s", low=0.01, high=36_000, step=1, help=msg("Empty = no target.")
    ),
    Field(
        key="percentile", label=msg("At percentile"), help=msg("The share of requests that must be under the target.")
    ),
    Field(
        key="price",
        label=msg("Price of a GPU-hour"),
        low=0,
        high=10_000,
        step=0.1,
        help=msg("Yours. Empty = costs are not shown."),
    ),
    Field(key="currency", label=msg("Currency"), help=msg("Shown beside every amount.")),
    Field(
        key="costs",
        label=msg("Costs beside GPUs"),
        help=msg("Tiers, traffic, spare replicas and work, as the Alternatives page takes them. Empty = not stated."),
    ),
    Field(
        key="load_source",
        label=msg("Log of the load"),
        help=msg("The request log that lengths and arrivals were taken from; changed by hand, they are its no more."),
    ),
    Field(
        key="measured",
        label=msg("Measured memory"),
        help=msg("A start-up log that stands in for the memory estimate wherever it matches the scenario."),
    ),
    Field(
        key="calibration",
        label=msg("Calibration"),
        help=msg("Constants fitted to measured runs that stand in for the generic ones wherever they hold."),
    ),
)
