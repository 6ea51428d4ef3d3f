"""Metrics texts: what each exporter means, what a single scrape cannot say, and what two of them do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

from calc.errors import InputError, UnreadableFile
from calc.evidence import Provenance
from calc.metrics import METRICS
from data.formats import read
from data.records import Histogram, LatencyStats, MetricsSnapshot
from data.sources import metrics_text
from data.sources.exported import GPU_EXPORTER, NEEDS_TWO, NOT_EXPORTED, items
from data.sources.metrics_text import stats_of
from data.sources.prometheus import Relation, difference, evidence, parse_metrics, relation, scrape, scrape_all

LABELS = '{engine="0",model_name="m"}'


def engine(hits: float, queries: float, finished: float, output: float, start: float = 100.0) -> str:
    return f"""
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{LABELS} 5.0
vllm:kv_cache_usage_perc{LABELS} 0.25
vllm:prefix_cache_hits_total{LABELS} {hits}
vllm:prefix_cache_queries_total{LABELS} {queries}
vllm:generation_tokens_total{LABELS} {output}
vllm:request_success_total{{engine="0",finished_reason="stop",model_name="m"}} {finished}
vllm:time_to_first_token_seconds_bucket{{engine="0",le="0.1",model_name="m"}} {finished / 2}
vllm:time_to_first_token_seconds_bucket{{engine="0",le="0.2",model_name="m"}} {finished}
vllm:time_to_first_token_seconds_bucket{{engine="0",le="+Inf",model_name="m"}} {finished}
vllm:time_to_first_token_seconds_sum{LABELS} {finished * 0.12}
vllm:time_to_first_token_seconds_count{LABELS} {finished}
process_start_time_seconds {start}
"""


def test_a_scrape_gives_shares_tokens_and_seconds() -> None:
    snapshot = parse_metrics(engine(hits=30, queries=100, finished=10, output=500))
    assert (snapshot.kv_usage_share, snapshot.prefix_hit_share, snapshot.requests_running) == (0.25, 0.3, 5)
    assert snapshot.ttft is not None
    assert snapshot.ttft.mean_s == pytest.approx(0.12)
    assert snapshot.ttft.p90_s == pytest.approx(0.18)


def test_what_happened_between_two_scrapes_is_not_what_happened_since_the_start() -> None:
    """Warm-up hit nothing; the run itself hit half. The cumulative share (0.33) describes neither."""
    before = parse_metrics(engine(hits=0, queries=100, finished=10, output=500))
    after = parse_metrics(engine(hits=100, queries=300, finished=60, output=3000))
    run = difference(before, after, seconds=25.0)
    assert run.prefix_hit_share == 0.5
    assert run.output_tokens_per_s == 100
    assert run.requests_finished_total == 50
    assert run.kv_usage_share == after.kv_usage_share
    found = {one.metric: one.value for one in evidence(run)}
    undated = evidence(difference(before, after), between=True)
    assert all("since the server's start" not in one.source for one in undated)
    assert found["request_rate_per_s"] == 2
    assert found["ttft_mean_s"] == pytest.approx(0.12)


def test_differences_add_up() -> None:
    """Conservation: first to second plus second to third is first to third."""
    one, two, three = (
        parse_metrics(engine(hits=h, queries=q, finished=f, output=o))
        for h, q, f, o in ((1, 10, 4, 40), (5, 30, 10, 100), (9, 90, 30, 300))
    )
    whole, first, second = difference(one, three), difference(one, two), difference(two, three)
    for field in ("prefix_hits_tokens", "prefix_queries_tokens", "output_tokens_total", "requests_finished_total"):
        assert getattr(whole, field) == getattr(first, field) + getattr(second, field)
    assert whole.histograms["ttft"].counts == tuple(
        a + b for a, b in zip(first.histograms["ttft"].counts, second.histograms["ttft"].counts, strict=True)
    )


def test_nothing_between_two_scrapes_is_not_known_rather_than_zero() -> None:
    same = parse_metrics(engine(hits=30, queries=100, finished=10, output=500))
    run = difference(same, same)
    assert (run.prefix_hit_share, run.ttft, run.output_tokens_per_s) == (None, None, None)


def test_a_restart_or_swapped_scrapes_are_an_error() -> None:
    early = parse_metrics(engine(hits=1, queries=10, finished=4, output=40))
    late = parse_metrics(engine(hits=5, queries=30, finished=10, output=100))
    with pytest.raises(InputError, match="swapped"):
        difference(late, early)
    with pytest.raises(InputError, match="restarted"):
        difference(early, parse_metrics(engine(hits=50, queries=300, finished=100, output=1000, start=900.0)))


def test_scrapes_of_two_servers_are_not_subtracted() -> None:
    early = parse_metrics(engine(hits=1, queries=10, finished=4, output=40))
    other = parse_metrics(engine(hits=5, queries=30, finished=10, output=100).replace('"m"', '"other"'))
    with pytest.raises(InputError, match="one server"):
        difference(early, other)


def test_bucket_percentiles_bracket_the_true_ones() -> None:
    rng = np.random.default_rng(3)
    values = rng.lognormal(-2.0, 0.6, 20_000)
    bounds = (*np.geomspace(0.01, 3.0, 40), np.inf)
    counts = tuple(float((values <= bound).sum()) for bound in bounds)
    stats = stats_of(Histogram(bounds=bounds, counts=counts, total=float(values.sum()), count=float(values.size)))
    assert stats is not None
    assert stats.mean_s == pytest.approx(values.mean())
    for share, got in ((50, stats.p50_s), (90, stats.p90_s), (99, stats.p99_s)):
        assert got == pytest.approx(np.percentile(values, share), rel=0.05)


def test_a_percentile_outside_the_finite_buckets_is_not_known() -> None:
    histogram = Histogram(bounds=(0.3, 0.5, float("inf")), counts=(60.0, 80.0, 100.0), total=31.0, count=100.0)
    assert stats_of(histogram) == LatencyStats(mean_s=0.31)


def test_every_rank_repeats_a_gauge_and_every_engine_has_its_own() -> None:
    ranks = 'sglang:num_queue_reqs{tp_rank="0"} 3\nsglang:num_queue_reqs{tp_rank="1"} 11\n'
    assert parse_metrics(ranks).requests_waiting == 11
    engines = 'vllm:num_requests_waiting{engine="0"} 3\nvllm:num_requests_waiting{engine="1"} 11\n'
    assert parse_metrics(engines).requests_waiting == 14
    usage = 'vllm:kv_cache_usage_perc{engine="0"} 0.3\nvllm:kv_cache_usage_perc{engine="1"} 0.9\n'
    assert parse_metrics(usage).kv_usage_share == 0.9


def test_sglang_hits_are_cached_tokens_over_prompt_tokens() -> None:
    text = "sglang:prompt_tokens_total 1000\nsglang:cached_tokens_total 250\n"
    assert parse_metrics(text).prefix_hit_share == 0.25


def test_values_that_mean_not_supported_are_not_numbers() -> None:
    text = "\n".join(
        f'DCGM_FI_DEV_{name}{{gpu="0"}} {value}'
        for name, value in (
            ("MEMORY_TEMP", 9223372036854775794),
            ("GPU_TEMP", 2147483632),
            ("POWER_USAGE", 140737488355328.0),
            ("GPU_UTIL", 97),
            ("FB_USED", 74_310),
            ("SM_CLOCK", 1980),
        )
    )
    gpu = parse_metrics(text).gpus[0]
    assert (gpu.memory_temperature_c, gpu.temperature_c, gpu.power_w) == (None, None, None)
    assert (gpu.busy_share, gpu.memory_used_bytes, gpu.sm_clock_hz) == (0.97, 74_310 * 2**20, 1.98e9)
    assert "dcgm_blank_sentinel" in scrape(text).notes


def test_gpus_that_share_the_work_unevenly_are_named_and_idle_ones_are_not() -> None:
    def gpus(*used: int) -> str:
        return "\n".join(f'DCGM_FI_DEV_FB_USED{{gpu="{i}"}} {mib}' for i, mib in enumerate(used))

    assert scrape(gpus(70_000, 71_000)).codes == ()
    assert scrape(gpus(70_000, 50_000)).codes == ("imbalanced_gpus",)
    assert scrape(gpus(70_000, 71_000, 500)).codes == ()


def test_a_single_scrape_says_that_its_counters_are_not_one_run() -> None:
    result = read(engine(hits=30, queries=100, finished=10, output=500).encode(), "m.txt")
    assert [warning.code for warning in result.warnings] == ["cumulative_counters"]
    gauges = read(b"vllm:num_requests_running 3\n", "m.txt")
    assert gauges.warnings == ()


def test_a_timestamp_of_a_sample_is_the_time_of_the_scrape() -> None:
    assert parse_metrics('sglang:token_usage{tp_rank="0"} 0.42 1790347303000').taken_at_s == 1_790_347_303


def test_evidence_is_measured_named_and_in_base_units() -> None:
    sample = ROOT / "data" / "samples" / "sample-metrics.txt"
    found = evidence(parse_metrics(sample.read_text(encoding="utf-8")))
    assert {one.provenance for one in found} == {Provenance.MEASURED}
    assert all(METRICS[one.metric].unit == one.unit for one in found)
    values = {one.metric: one.value for one in found}
    assert values["kv_tokens"] == 17_920 * 16
    assert values["prefix_caching"] is True
    assert values["hit_rate_share"] == pytest.approx(0.31)
    assert all("since the server's start" in one.source for one in found if one.metric.startswith("ttft"))


def test_what_a_text_does_not_say_is_not_evidence() -> None:
    assert [one.metric for one in evidence(MetricsSnapshot(source="x"))] == []


@pytest.mark.parametrize("text", ["", "hello", "# HELP only comments\n", "node_cpu_seconds_total 3\n", "vllm:broken{"])
def test_a_text_without_a_known_metric_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(UnreadableFile, match="metrics text of vLLM"):
        parse_metrics(text)


def test_a_real_scrape_reads_as_published(cases_dir: Path) -> None:
    """128 requests were sent at once to one engine that runs 64: half of them wait."""
    text = (cases_dir / "formats" / "prom_vllm_0.25.1_loaded.txt").read_text(encoding="utf-8")
    snapshot = parse_metrics(text)
    assert (snapshot.requests_running, snapshot.requests_waiting) == (64, 64)
    assert snapshot.settings["num_gpu_blocks"] == "25028"
    assert {one.metric: one.value for one in evidence(snapshot)}["kv_tokens"] == 400_448


TRTLLM = """# TYPE trtllm_num_requests_running gauge
trtllm_num_requests_running{model_name="m",engine_type="trtllm"} 7
trtllm_num_requests_waiting{model_name="m",engine_type="trtllm"} 2
trtllm_max_num_active_requests{model_name="m",engine_type="trtllm"} 64
trtllm_kv_cache_utilization{model_name="m",engine_type="trtllm"} 0.25
trtllm_kv_cache_max_blocks{model_name="m",engine_type="trtllm"} 1000
trtllm_kv_cache_tokens_per_block{model_name="m",engine_type="trtllm"} 32
trtllm_kv_cache_reused_blocks_total{model_name="m",engine_type="trtllm"} 30
trtllm_kv_cache_missed_blocks_total{model_name="m",engine_type="trtllm"} 70
trtllm_request_success_total{model_name="m",engine_type="trtllm",finished_reason="stop"} 90
trtllm_request_success_total{model_name="m",engine_type="trtllm",finished_reason="length"} 10
trtllm_request_error_total{model_name="m",engine_type="trtllm"} 5
trtllm_time_per_output_token_seconds_bucket{model_name="m",le="0.05"} 100
trtllm_time_per_output_token_seconds_bucket{model_name="m",le="+Inf"} 100
trtllm_time_per_output_token_seconds_sum{model_name="m"} 2.5
trtllm_time_per_output_token_seconds_count{model_name="m"} 100
"""
"""Names as its documentation lists them, figures made up."""

TRITON = """nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="context",version="1"} 1
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 6
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 9
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 3
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 1248
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="free",model="tensorrt_llm",version="1"} 4992
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 6240
nv_inference_request_success{model="tensorrt_llm",version="1"} 40
nv_inference_request_success{model="preprocessing",version="1"} 40
nv_inference_request_success{model="ensemble",version="1"} 40
nv_inference_request_failure{model="tensorrt_llm",version="1",reason="OTHER"} 2
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5
"""


def test_tensorrt_llm_is_read_by_its_own_names() -> None:
    found = scrape(TRTLLM)
    snapshot = found.snapshot
    assert found.format == "prometheus_trtllm"
    assert (snapshot.requests_running, snapshot.requests_waiting, snapshot.max_running) == (7, 2, 64)
    assert (snapshot.kv_usage_share, snapshot.kv_capacity_tokens, snapshot.prefix_hit_share) == (0.25, 32_000, 0.3)
    assert (snapshot.requests_finished_total, snapshot.requests_aborted_total) == (100, 5)
    assert snapshot.tpot is not None
    assert snapshot.tpot.mean_s == 0.025
    assert snapshot.itl is None, "its per-request mean is no gap between tokens"
    older = parse_metrics(TRTLLM.replace("trtllm_", "trtllm:"))
    assert older == snapshot


def test_triton_counts_the_engine_and_not_every_model_of_its_pipeline() -> None:
    snapshot = parse_metrics(TRITON)
    assert (snapshot.requests_running, snapshot.requests_waiting, snapshot.max_running) == (6, 3, 512)
    assert (snapshot.kv_usage_share, snapshot.kv_capacity_tokens) == (0.2, 6240 * 64)
    assert (snapshot.requests_finished_total, snapshot.requests_aborted_total) == (40, 2)
    assert snapshot.gpus[0].busy_share == 0.5


def test_texts_of_two_replicas_are_added_up_and_ranks_are_not() -> None:
    text = engine(hits=30, queries=100, finished=10, output=500)
    both = scrape_all([text, text], "x")
    assert (both.snapshot.engines, both.snapshot.requests_running, both.snapshot.requests_finished_total) == (2, 10, 20)
    assert both.snapshot.kv_usage_share == 0.25
    assert both.snapshot.histograms["ttft"].count == 20
    assert "several_engines_added_up" in both.notes
    values = {one.metric: one.value for one in evidence(both.snapshot)}
    assert values["running"] == 5, "per replica"
    ranks = "".join(
        f'sglang:queue_time_seconds_{part}{{tp_rank="{rank}",le="{le}"}} {value}\n'
        for rank in (0, 1)
        for part, le, value in (("bucket", "0.1", 4), ("bucket", "+Inf", 8), ("sum", "", 2), ("count", "", 8))
    )
    assert parse_metrics(ranks).histograms["queue"].count == 8


def test_the_speed_of_fetching_is_told_of_the_time_spent_fetching() -> None:
    """2 GB in half a second are 4 GB/s, whether they came within a minute or a day."""
    text = "vllm:num_requests_running 1\nvllm:kv_offload_load_bytes_total 2e9\nvllm:kv_offload_load_time_total 0.5\n"
    values = {one.metric: one.value for one in evidence(parse_metrics(text))}
    assert values["transfer_bytes_per_s"] == 4e9


def test_two_kinds_of_engines_in_one_text_are_refused() -> None:
    with pytest.raises(UnreadableFile, match="SGLang, vLLM"):
        parse_metrics("sglang:token_usage 0.5\nvllm:num_requests_running 1\n")


def _at(snapshot: MetricsSnapshot, at_s: float | None, **other: object) -> MetricsSnapshot:
    return replace(snapshot, taken_at_s=at_s, **other)  # type: ignore[arg-type]


def test_a_restart_and_swapped_scrapes_are_told_apart_where_the_texts_allow() -> None:
    early = parse_metrics(engine(hits=1, queries=10, finished=4, output=40))
    late = parse_metrics(engine(hits=5, queries=30, finished=10, output=100))
    unknown = {"started_at_s": None}
    assert relation(early, late) is Relation.FOLLOWS
    assert relation(late, early) is Relation.OUT_OF_ORDER
    assert relation(_at(early, 20.0), _at(late, 10.0)) is Relation.OUT_OF_ORDER
    assert relation(_at(late, 10.0, **unknown), _at(early, 20.0, **unknown)) is Relation.RESTARTED
    assert relation(_at(late, None, **unknown), _at(early, None, **unknown)) is Relation.UNCLEAR
    assert relation(early, replace(late, started_at_s=100.4)) is Relation.FOLLOWS
    assert relation(early, replace(late, model="other")) is Relation.OTHER_SERVER
    fewer = replace(late, histograms={"ttft": replace(late.histograms["ttft"], count=1.0)})
    assert relation(_at(late, 1.0), _at(fewer, 2.0)) is Relation.RESTARTED


def test_what_an_engine_does_not_export_is_said_and_not_zero() -> None:
    """Every watched figure is there with a value or a reason, whatever the engine."""
    vllm = parse_metrics(engine(hits=30, queries=100, finished=10, output=500))
    texts = [vllm, parse_metrics(TRTLLM), parse_metrics(TRITON), parse_metrics("sglang:token_usage 0.5\n")]
    for snapshot in texts:
        rows = items(snapshot)
        assert len({(row.layer, str(row.name)) for row in rows}) == len(rows)
        assert all((row.value is None) == (row.reason is not None) for row in rows)
    reasons = {str(row.name): row.reason for row in items(vllm)}
    assert reasons["Tokens evicted per second"] == NOT_EXPORTED
    assert reasons["Output tokens per second"] == NEEDS_TWO
    assert reasons["GPU busy, mean"] == GPU_EXPORTER
    assert reasons["TTFT, P99"] is None


def test_a_scrape_of_endless_samples_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_text, "MAX_SAMPLES", 10)
    with pytest.raises(UnreadableFile, match="at most 10 samples"):
        parse_metrics("vllm:num_requests_running 3\n" * 11)
    assert parse_metrics("other_metric 3\n" * 100 + "vllm:num_requests_running 3\n").requests_running == 3
