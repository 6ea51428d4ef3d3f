"""The offload part of docs/accuracy.md: published points about KV outside the GPU beside our figures of them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from conftest import ROOT
from memory_accuracy import percent, table

from calc.deployment import Deployment
from calc.latency import LatencyReport, predict
from calc.offload.fetch import Offload
from calc.scenario import Scenario
from calc.serving import Serving, Tier
from calc.units import GB, MILLI
from calc.workload import Closed, Fixed, OpenLoop, Workload
from data.shelf import shelf

GOLDEN = ROOT / "tests" / "golden" / "offload.csv"
DMA = Tier(name="cpu", bytes_per_s=50 * GB, latency_s=0.1e-3)
"""One way, as the vLLM post measured it."""
LLMD_BLOCKS, BLOCK_TOKENS = 9271, 16
COLD_SHARE = 1 / 10
"""The first of each group's ten prompts."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One published figure; ``our_error`` is ours ÷ measured − 1 when it was last written down, None = not written."""

    name: str
    measured: float
    unit: str
    our_error: float | None
    source: str


def points() -> list[Point]:
    """As the golden table lists them."""
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        return [
            Point(
                name=row["point"],
                measured=float(row["measured"]),
                unit=row["unit"],
                our_error=float(row["our_error"]) if row["our_error"] else None,
                source=row["source"],
            )
            for row in csv.DictReader(file)
        ]


def deploy(model: str, gpu: str, tp: int = 1) -> Deployment:
    return shelf().deploy(model, gpu, tp=tp)


def _break_even(model: str, gpu: str, tokens: int) -> float:
    """Of a whole prompt, as the sources work it out: KV bytes per token × prefill tokens per second."""
    engine = Offload.of(deploy(model, gpu))
    return engine.moved_bytes(tokens) / engine.prefill_s(tokens) / GB


def _gain(tokens: int) -> float:
    return Offload.of(deploy("meta-llama/Llama-3.1-8B-Instruct", "h100-sxm")).fetch(tokens, 16, DMA).speedup


def _prefill_ms(tokens: int) -> float:
    return Offload.of(deploy("Qwen/Qwen3-8B", "h800", 8)).prefill_s(tokens) / MILLI


def _moved_gb_per_s(tokens: int, seconds: float) -> float:
    return Offload.of(deploy("Qwen/Qwen3-8B", "h800", 8)).moved_bytes(tokens) / seconds / GB


def _burst_per_s(found_share: float) -> float:
    """Prefills per second of 10,000 prompts of 512 tokens at once, ``found_share`` of each in CPU memory."""
    load = Workload(
        prompt_tokens=Fixed(value_tokens=512),
        output_tokens=Fixed(value_tokens=1),
        arrivals=OpenLoop(kind="constant", rate_per_s=10_000.0),
        num_requests=10_000,
        offload_hit_share=found_share,
        http=False,
    )
    bare = deploy("meta-llama/Llama-3.1-8B-Instruct", "h100-sxm")
    tier = replace(DMA, concurrency=8)
    deployment = replace(bare, max_model_len_tokens=2048, serving=Serving(tiers=(tier,)))
    return predict(Scenario(deployment=deployment, workload=load)).request_rate_per_s


def _documents() -> LatencyReport:
    """Four in flight, documents of 10,000 tokens, no hits."""
    load = Workload(
        prompt_tokens=Fixed(value_tokens=10_000),
        output_tokens=Fixed(value_tokens=100),
        arrivals=Closed(concurrency=4),
    )
    whole = replace(deploy("meta-llama/Llama-3.3-70B-Instruct", "gh200-96", 2), max_model_len_tokens=16_384)
    return predict(Scenario(deployment=whole, workload=load))


def _guide() -> LatencyReport:
    """45 groups of ten prompts, 8,000 shared and 256 own tokens, over eight engines that hold all prefixes."""
    load = Workload(
        prompt_tokens=Fixed(value_tokens=8256),
        output_tokens=Fixed(value_tokens=1024),
        arrivals=Closed(concurrency=45),
        num_requests=450,
        prefix_hit_share=(1 - COLD_SHARE) * 8000 / 8256,
    )
    deployment = replace(
        deploy("Qwen/Qwen3-32B", "h100-sxm", 2),
        replicas=8,
        kv_tokens=LLMD_BLOCKS * BLOCK_TOKENS,
        max_model_len_tokens=16_384,
    )
    return predict(Scenario(deployment=deployment, workload=load))


def _mean_ms(mean_s: float | None) -> float:
    assert mean_s is not None
    return mean_s / MILLI


OURS: Mapping[str, Callable[[], float]] = {
    "break-even of Llama-2-7B on H100": lambda: _break_even("meta-llama/Llama-2-7b-hf", "h100-sxm", 4000),
    "break-even of Qwen3-Coder-30B-A3B on H20 at 64k": lambda: _break_even(
        "Qwen/Qwen3-Coder-30B-A3B-Instruct", "h20-96", 65_536
    ),
    "TTFT gain of Llama-3.1-8B on H100 at 100k from CPU memory": lambda: _gain(100_000),
    "throughput gain at 512 tokens all hit in CPU memory": lambda: _burst_per_s(496 / 512) / _burst_per_s(0.0),
    "prefill of Qwen3-8B on H800 TP8 at 2048": lambda: _prefill_ms(2048),
    "prefill of Qwen3-8B on H800 TP8 at 8192": lambda: _prefill_ms(8192),
    "prefill of Qwen3-8B on H800 TP8 at 32768": lambda: _prefill_ms(32_768),
    "KV moved for Qwen3-8B at 32768 in 31.65 ms": lambda: _moved_gb_per_s(32_768, 31.65e-3),
    "TTFT of Llama-3.3-70B on two GH200 at 10k without hits": lambda: _mean_ms(_documents().ttft.mean_s),
    "TTFT of Qwen3-32B on eight H100 pairs; prefixes of 8k held by the GPUs": lambda: _mean_ms(_guide().ttft.mean_s),
    "E2E of Qwen3-32B on eight H100 pairs; prefixes of 8k held by the GPUs": lambda: _mean_ms(_guide().e2e.mean_s),
}
"""Point → our figure in the point's unit."""


THOUSAND = 1000


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= THOUSAND else f"{value:.3g}"


def offload_page() -> str:
    """The section's text: every point, measured and ours."""
    rows = []
    for point in points():
        if point.name in OURS:
            ours = OURS[point.name]()
            rows.append(
                [
                    point.name,
                    f"{_digits(point.measured)} {point.unit}",
                    _digits(ours),
                    percent(ours / point.measured - 1),
                    point.source,
                ]
            )
    note = (
        "Prefill through two engines and a proxy (Mooncake) and on GPUs without kernel measurements of their own (H20, "
        "GH200) is predicted with errors of a third or more, and break-even there is off by as much."
    )
    return f"{table(['point', 'published', 'ours', 'error', 'source'], rows)}\n\n{note}\n"
