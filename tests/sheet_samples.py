"""Reports made by hand for the sheet: a 32B model on two GPUs, chat over documents, with round numbers."""

from __future__ import annotations

from dataclasses import replace

from calc.deployment import Deployment
from calc.engine import Engine, FractionOf, TokensMeaning
from calc.evidence import Percentiles
from calc.hardware import Gpu
from calc.judge.decision import Decision, Outcome, WhatIf
from calc.latency import LatencyReport, LoadSweep
from calc.memory import MemoryReport
from calc.messages import msg
from calc.model import LayerGroup, LayerKind, ModelSpec, WeightStorage
from calc.scenario import Scenario
from calc.units import GIB, KIB
from calc.workload import LogNormal, OpenLoop, Prices, Slo, Workload
from data import catalogue
from data.records import BenchmarkRun, LatencyStats
from ui.sheet import Filing, Review, build_review

MODEL = ModelSpec(
    name="Qwen/Qwen3-32B",
    architecture="Qwen3ForCausalLM",
    layers=64,
    hidden_size=5120,
    heads=64,
    kv_heads=8,
    head_dim=128,
    intermediate_size=25600,
    vocab_size=151936,
    max_position_tokens=40960,
    groups=(LayerGroup(kind=LayerKind.FULL, layers=64, kv_heads=8, head_dim=128, v_head_dim=128),),
    parameters=32_762_123_264,
    active_parameters=31_984_210_944,
    quantised_parameters=0,
    tp_replicated_parameters=0,
    embedding_parameters=777_912_320,
    tied_embeddings=False,
    storage=WeightStorage(code="bf16", bytes_per_parameter=2.0),
    kv_dtype="bf16",
)
GPU = Gpu(id="h100-sxm", name="NVIDIA H100 SXM", memory_bytes=round(79.1 * GIB))
ENGINE = Engine(
    id="vllm",
    version="0.19.0",
    released="2026-09-01",
    memory_fraction=0.9,
    fraction_of=FractionOf.TOTAL,
    block_size_tokens=16,
    tokens_meaning=TokensMeaning.BLOCKS_OVER_GROUPS,
    graphs_in_budget=True,
    prefix_caching=True,
    chunked_prefill=True,
    async_scheduling=True,
    runtime=catalogue.runtimes()["vllm-pivot"],
    source="hand-made",
    checked_on="2026-11-30",
)


def scenario(*, model_name: str = MODEL.name, name: str = "Answers over company documents") -> Scenario:
    return Scenario(
        name=name,
        deployment=Deployment(model=replace(MODEL, name=model_name), gpu=GPU, engine=ENGINE, tp=2),
        workload=Workload(
            prompt_tokens=LogNormal(p50_tokens=3500, p95_tokens=9000),
            output_tokens=LogNormal(p50_tokens=350, p95_tokens=900),
            arrivals=OpenLoop(kind="poisson", rate_per_s=3.0),
            prefix_hit_share=0.25,
            business_type="knowledge-rag",
        ),
        slo=Slo(ttft_s=2.0, itl_s=0.060, e2e_s=30.0, percentile_share=0.95),
        prices=Prices(gpu_hour=2.5, currency="USD"),
    )


def memory(*, demand_gib: float = 27.4, over_bytes: int = 0) -> MemoryReport:
    return MemoryReport(
        total_bytes=round(79.1 * GIB),
        budget_bytes=round(71.2 * GIB),
        weights_bytes=round(30.6 * GIB),
        activation_bytes=round(2.9 * GIB),
        non_torch_bytes=round(1.3 * GIB),
        graph_bytes=round(0.8 * GIB),
        graphs_in_budget=True,
        kv_pool_bytes=round(35.6 * GIB),
        kv_pool_band_bytes=(round(34.1 * GIB), round(36.4 * GIB)),
        margin_bytes=round(7.9 * GIB),
        over_bytes=over_bytes,
        fits=over_bytes == 0,
        kv_bytes_per_token=128 * KIB,
        kv_dtype="bf16",
        block_size_tokens=16,
        num_blocks=18227,
        kv_tokens=291_632,
        max_concurrency=8.9,
        max_model_len_tokens=32768,
        kv_per_request_bytes=round(0.58 * GIB),
        peak_concurrency=46.0,
        kv_demand_bytes=round(demand_gib * GIB),
        weights_declared=False,
        runtime_in_budget_bytes=round(2.9 * GIB) + round(1.3 * GIB) + round(0.8 * GIB),
    )


def latency(scale: float = 1.0, *, saturated: bool = False) -> LatencyReport:
    def spread(p50_s: float, p95_s: float, p99_s: float) -> Percentiles:
        return Percentiles(mean_s=p50_s * 1.2 * scale, p50_s=p50_s * scale, p95_s=p95_s * scale, p99_s=p99_s * scale)

    return LatencyReport(
        ttft=spread(0.612, 1.84, 2.97),
        itl=spread(0.0241, 0.0473, 0.0926),
        tpot=spread(0.0262, 0.0391, 0.0455),
        e2e=spread(9.87, 25.4, 38.2),
        queue_s=0.21 * scale,
        prefill_s=0.47 * scale,
        decode_s=10.4 * scale,
        network_s=0.03,
        request_rate_per_s=2.98,
        offered_rate_per_s=3.0,
        output_tokens_per_s=1290.0,
        concurrency=33.3 * scale,
        kv_usage_mean_share=0.61,
        kv_usage_max_share=0.77,
        preemptions=0,
        preempted_share=0.0,
        bound="memory_bandwidth",
        saturated=saturated,
        max_rate_per_s=5.4,
        slo_attainment_share=0.952,
        requests=2000,
        mixed_step_share=0.18,
        prefill_compute_share=0.44,
        calibration="uncalibrated",
        slo_met=not saturated and scale <= 1.05,
    )


def sweep() -> LoadSweep:
    loads = (0.5, 1.0, 2.0, 3.0, 3.6, 4.2, 5.0)
    scales = (0.42, 0.5, 0.7, 1.0, 1.35, 2.2, 5.1)
    return LoadSweep(
        axis="rate",
        loads=loads,
        reports=tuple(latency(scale) for scale in scales),
        operating_load=3.0,
        knee_load=3.2,
        max_rate_per_s=5.4,
    )


def what_if(lever: str, title: str, supports: Outcome, hit_share: float, scale: float, unit_cost: float) -> WhatIf:
    base = scenario()
    return WhatIf(
        lever=lever,
        title=msg(title),
        supports=supports,
        scenario=replace(base, workload=replace(base.workload, prefix_hit_share=hit_share)),
        memory=memory(demand_gib=27.4 * scale),
        latency=latency(scale),
        cost_per_million_tokens=unit_cost,
        headroom_per_s=0.9,
        meets_slo=scale <= 1.05,
        note=msg("Pays only on exact prefix matches."),
    )


def decision() -> Decision:
    return Decision(
        outcome=Outcome.OPTIMISE_CACHE,
        bottleneck="memory_bandwidth",
        diagnosis="cache_not_hit",
        headline=msg("Stable prompts let 60 % of prompt tokens be found; TTFT P99 falls to {ttft:ms}.", ttft=1.9),
        because=(
            msg("Prefill takes {share:pct} of busy time", share=0.44),
            msg("{hit:pct} of prompt tokens are found, {possible:pct} repeat", hit=0.25, possible=0.6),
            msg("The KV pool is used to {usage:pct} at most: more memory would stay empty", usage=0.77),
        ),
        runner_up=Outcome.TUNE_SCHEDULING,
        flips_when=msg("the hit rate stays under {hit:pct} after the template is fixed", hit=0.2),
        first_lever="prefix-cache",
        findings=(),
        what_ifs=(
            what_if("scheduling", "Tune batch and token budget", Outcome.TUNE_SCHEDULING, 0.25, 0.92, 1.02),
            what_if("prefix-cache", "Stable prompts, prefix cache", Outcome.OPTIMISE_CACHE, 0.60, 0.64, 0.78),
            what_if("kv-fp8", "KV cache in FP8", Outcome.OPTIMISE_CACHE, 0.25, 0.95, 1.05),
            what_if("more-gpus", "One more replica", Outcome.ADD_MEMORY, 0.25, 0.55, 2.15),
            what_if("offload", "Offload KV to CPU memory", Outcome.OPTIMISE_CACHE, 0.40, 1.12, 1.11),
        ),
        missing=(msg("hit rate of each tenant"), msg("preemptions over a whole peak hour")),
        risks=(msg("A change of template or routing empties the cache: TTFT doubles until it is warm again"),),
        legs_agree=True,
        model_version="2026-11-30",
    )


def filing() -> Filing:
    return Filing(
        title="Answers over company documents",
        author_role="Platform engineering",
        created_at="2026-11-30",
        owners={"business": "Chen Wei", "platform": "A. Novak"},
        real_requests=True,
        real_roles=True,
        real_figures=True,
        look_back_on="2026-12-20",
        snapshot_ids=("run-4f2a91c07be1",),
    )


def run(**changes: object) -> BenchmarkRun:
    ran = BenchmarkRun(
        tool="guidellm",
        model="Qwen/Qwen3-32B",
        gpu_count=2,
        date="2026-11-21",
        request_rate_per_s=3.0,
        completed=1800,
        ttft=LatencyStats(p50_s=0.655, p95_s=1.92, p99_s=3.3),
        itl=LatencyStats(p50_s=0.0252, p95_s=0.0490, p99_s=0.0971),
    )
    return replace(ran, **changes)  # type: ignore[arg-type]


def review(**changes: object) -> Review:
    parts: dict[str, object] = {
        "sweep": sweep(),
        "cost_per_million_tokens": 1.08,
        "runs": (run(),),
        "filing": filing(),
        "case": {"model": "Qwen/Qwen3-32B", "gpu": "h100-sxm"},
    }
    return build_review(scenario(), memory(), latency(), decision(), **{**parts, **changes})  # type: ignore[arg-type]
