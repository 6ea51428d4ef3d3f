"""Ways out: each really does what its row says, the gap adds up, and more of anything is never worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calc import memory as memory_module
from calc.engine import resolve
from calc.hardware import Gpu
from calc.memory import MemoryReport, estimate_memory
from calc.scenario import Scenario
from calc.units import GB, GIB
from calc.ways import counts as ways_counts
from calc.ways import gap as ways_gap
from calc.ways.counts import smallest_counts
from calc.ways.gap import Cause, Peak, PeakFrom, gap_of, longest_length, lost_share, planned_peak
from calc.ways.out import OTHER_GPU, Way, WaysOut
from calc.workload import Closed, Empirical, Fixed, LogNormal, Prices, Uniform, Workload, sample_tokens
from data import catalogue
from data.case import example_case, read_case, write_case
from data.ways import count_types, find_ways

EXAMPLE = example_case()
LLAMA = "meta-llama/Meta-Llama-3.1-8B-Instruct"
CASES: Mapping[str, Mapping[str, Any]] = {
    "short at the peak": {},
    "one sequence too long": {"tp": 1},
    "weights too large": {"tp": 1, "gpu": "a100-40-sxm"},
    "experts": {"model": "deepseek-ai/DeepSeek-V3", "tp": 8, "max_model_len": None},
    "experts by rank": {"model": "deepseek-ai/DeepSeek-V3", "gpu": "h200", "tp": 1, "dp": 8},
    "replicas to join": {"model": "deepseek-ai/DeepSeek-V3", "gpu": "h200", "tp": 1, "replicas": 8},
    "windows": {"model": "google/gemma-3-27b-it", "gpu": "l40s", "tp": 1, "max_model_len": 65536},
    "long context": {"model": LLAMA, "gpu": "l4", "tp": 1, "max_model_len": 131072, "slo": None},
    "odd heads": {"model": "Qwen/Qwen2.5-7B-Instruct", "gpu": "l4", "tp": 1, "replicas": 4},
    "hybrid": {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp": 1},
    "sglang": {"engine": "sglang", "tp": 1},
    "tensorrt-llm": {"engine": "tensorrt-llm", "tp": 1},
    "blackwell": {"gpu": "b200", "tp": 1, "model": "meta-llama/Meta-Llama-3.1-405B-Instruct"},
    "speculation": {"tp": 1, "speculative_config": {"method": "mtp", "num_speculative_tokens": 1}},
    "own figures": {"gpu": {"name": "ours", "memory_gib": 40}, "tp": 1},
}


def scenario_of(**changes: Any) -> Scenario:
    scenario, _ = read_case({**EXAMPLE, **changes})
    return scenario


def report_of(scenario: Scenario, peak: Peak | None = None) -> MemoryReport:
    each = peak.requests / scenario.deployment.replicas if peak and peak.requests is not None else None
    return estimate_memory(scenario.deployment, scenario.workload, each)


@pytest.fixture(scope="module", params=CASES)
def found(request: pytest.FixtureRequest) -> WaysOut:
    scenario = scenario_of(**CASES[request.param])
    return find_ways(scenario, report_of(scenario))


def test_every_way_does_as_a_scenario_what_its_row_says(found: WaysOut) -> None:
    """Written as a case and read again, as the button does it."""
    for way in (found.now, *found.ways):
        again, _ = read_case(write_case(way.scenario))
        memory = report_of(again, found.peak)
        assert (memory.fits, memory.kv_pool_bytes) == (way.starts, way.memory.kv_pool_bytes), str(way.change)
        if way.carries:
            assert memory.kv_demand_bytes <= memory.kv_pool_bytes
        elif way.carries is False and way.starts:
            assert memory.kv_demand_bytes > memory.kv_pool_bytes


def test_a_way_suffices_exactly_when_it_gains_what_is_missing(found: WaysOut) -> None:
    for way in found.ways:
        assert way.gap.over_bytes == found.gap.over_bytes - way.gained_bytes
        assert way.suffices == (way.gained_bytes >= found.gap.over_bytes), str(way.change)


def test_the_parts_of_the_gap_add_up(found: WaysOut) -> None:
    for way in (found.now, *found.ways):
        gap = way.gap
        assert gap.budget_bytes == gap.weights_bytes + gap.runtime_bytes + gap.room_bytes
        need = max(gap.sequence_bytes, gap.demand_bytes or 0)
        assert gap.over_bytes == pytest.approx(need - gap.room_bytes, abs=0.02 * need)
        assert (gap.cause is Cause.NONE) == (gap.over_bytes <= 0)


def test_what_suffices_comes_first_and_the_cheaper_before_the_dearer(found: WaysOut) -> None:
    flags = [way.suffices for way in found.ways]
    assert flags == sorted(flags, reverse=True)
    priced = [way.gpu_count for way in found.ways if way.suffices and OTHER_GPU not in way.codes]
    assert priced == sorted(priced)
    types = [OTHER_GPU in way.codes for way in found.ways if way.suffices]
    assert types == sorted(types), "an unknown price stands behind the known ones"


def test_every_way_changes_something_and_says_so(found: WaysOut) -> None:
    for way in found.ways:
        assert way.scenario != found.now.scenario
        assert "→" in str(way.change) or "EP" in str(way.change)
        assert way.side_effects or OTHER_GPU in way.codes
        assert (way.cost_per_hour is None) == (OTHER_GPU in way.codes)
    assert len({str(way.change) for way in found.ways}) == len(found.ways)


def test_there_is_a_way_out_of_every_one_of_these(found: WaysOut) -> None:
    assert found.now.suffices or found.ways[0].suffices


def test_each_split_divides_the_heads_inside_one_server(found: WaysOut) -> None:
    for way in found.ways:
        deployment = way.scenario.deployment
        assert deployment.model.heads % deployment.tp == 0
        assert deployment.tp <= max(8, found.now.scenario.deployment.tp)


def ways(**changes: Any) -> WaysOut:
    scenario = scenario_of(**changes)
    return find_ways(scenario, report_of(scenario))


def named(found: WaysOut, *codes: str) -> list[Way]:
    return [way for way in found.ways if way.codes == codes]


def test_a_pair_is_offered_where_no_lever_without_more_gpus_is_enough() -> None:
    """61 GiB of weights on one 80 GB GPU leave no room for 72 long requests: FP8 for one of the two is not enough."""
    found = ways(tp=1)
    alone = [way for way in found.ways if len(way.codes) == 1 and way.gpu_count == 1 and OTHER_GPU not in way.codes]
    assert not [way for way in alone if way.suffices]
    assert [way for way in found.ways if len(way.codes) == 2 and way.suffices and way.gpu_count == 1]


def test_pairs_that_take_more_gpus_take_fewer_than_the_lever_alone() -> None:
    found = ways(tp=1, gpu="a100-40-sxm")
    alone = min(way.gpu_count for way in named(found, "more-gpus") if way.suffices)
    pairs = [way for way in found.ways if len(way.codes) == 2]
    assert pairs
    assert all(way.gpu_count < alone for way in pairs)


def test_formats_are_offered_only_where_the_gpu_computes_in_them() -> None:
    ampere, hopper, blackwell = ways(gpu="a100-80-sxm", tp=1), ways(tp=1), ways(gpu="b200", tp=1)
    assert "fp8-kv" in ampere.refused
    assert "nvfp4-kv" in ampere.refused
    assert named(hopper, "fp8-kv")
    assert "nvfp4-kv" in hopper.refused
    assert "nvfp4-kv" not in blackwell.refused
    assert "nvfp4-kv" in ways(gpu="rtxpro6000", tp=1).refused, "no data-centre Blackwell"


def test_no_split_is_offered_over_an_unknown_link() -> None:
    assert "more-gpus" in ways(gpu={"name": "ours", "memory_gib": 40}, tp=1).refused


def test_a_larger_fraction_leaves_the_planned_margin() -> None:
    (way,) = named(ways(), "raise-memory-fraction")
    assert way.memory.margin_bytes >= 0.05 * way.memory.total_bytes


def test_a_declared_size_of_weights_is_not_requantised() -> None:
    found = ways(model={"name": "Qwen/Qwen3-32B", "weight_bytes": 64 * GB}, tp=1)
    assert {"fp8-weights", "int4-weights"} <= set(found.refused)


def test_costs_are_price_times_gpus_and_unknown_without_a_price() -> None:
    assert [way.cost_per_hour for way in named(ways(), "more-gpus")] == [4 * 2.5]
    assert all(way.cost_per_hour is None for way in ways(prices={}).ways)


def test_a_price_entered_for_another_type_ranks_it_by_cost() -> None:
    scenario = scenario_of(tp=1)
    prices = {"b200": Prices(gpu_hour=2.0)}
    found = find_ways(scenario, report_of(scenario), [catalogue.gpu("b200")], prices)
    assert found.ways[0].codes == (OTHER_GPU,)
    assert found.ways[0].cost_per_hour == 2.0


PEAKS = [
    ({"workload": {**EXAMPLE["workload"], "arrivals": {"kind": "closed", "concurrency": 30}}}, PeakFrom.DECLARED, 30.0),
    ({}, PeakFrom.TARGET, 2.4 * 30),
    ({"slo": None}, PeakFrom.UNKNOWN, None),
]


@pytest.mark.parametrize(("changes", "source", "requests"), PEAKS)
def test_the_peak_comes_from_the_best_source(changes: dict[str, Any], source: PeakFrom, requests: float | None) -> None:
    """Little's law: no more than rate × E2E target are in flight while the target holds."""
    scenario = scenario_of(tp=1, **changes)
    peak = planned_peak(scenario, report_of(scenario))
    assert (peak.source, peak.requests) == (source, requests)


def test_a_simulated_peak_is_used_where_there_is_one() -> None:
    scenario = scenario_of()
    peak = planned_peak(scenario, estimate_memory(scenario.deployment, scenario.workload, 21.0))
    assert (peak.source, peak.requests) == (PeakFrom.SIMULATED, 21.0)


def test_without_a_known_peak_nothing_is_said_to_carry_it() -> None:
    assert all(way.carries is None for way in ways(tp=1, slo=None).ways if way.starts)


@pytest.mark.parametrize("model", ["Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3", "google/gemma-3-27b-it"])
def test_more_gpus_never_miss_more(model: str) -> None:
    peak = Peak(requests=64.0, source=PeakFrom.DECLARED)
    for key in ("tp", "pp"):
        over = []
        for degree in (1, 2, 4, 8):
            scenario = scenario_of(model=model, **{"tp": 1, key: degree})
            over.append(gap_of(scenario.deployment, report_of(scenario, peak), peak).over_bytes)
        assert over == sorted(over, reverse=True)


@pytest.mark.parametrize("name", ["one sequence too long", "windows", "long context", "sglang", "experts"])
def test_the_longest_length_fits_and_a_longer_one_does_not(name: str) -> None:
    deployment = scenario_of(**CASES[name]).deployment
    longest = longest_length(deployment, estimate_memory(deployment))
    if longest is None:
        assert not estimate_memory(replace(deployment, max_model_len_tokens=16)).fits
        return
    assert estimate_memory(replace(deployment, max_model_len_tokens=longest)).fits
    if longest < deployment.model.max_position_tokens - 16:
        # A step of twice the grain: the search stops a block before the edge, never behind it.
        assert not estimate_memory(replace(deployment, max_model_len_tokens=round(longest * 1.02) + 64)).fits


LENGTHS = [
    (Fixed(value_tokens=1000), Fixed(value_tokens=24), 1023, 1.0),
    (Fixed(value_tokens=1000), Fixed(value_tokens=24), 1024, 0.0),
    (Uniform(low_tokens=1, high_tokens=1001), Fixed(value_tokens=100), 600, 0.5),
    (LogNormal(p50_tokens=1000, p95_tokens=4000), Fixed(value_tokens=1), 4001, 0.05),
    (LogNormal(p50_tokens=1000, p95_tokens=4000), Fixed(value_tokens=1), 1001, 0.5),
    (Empirical(quantiles=((0.0, 100), (0.9, 1000), (1.0, 9000))), Fixed(value_tokens=1), 1001, 0.1),
]


@pytest.mark.parametrize(("prompt", "output", "limit", "share"), LENGTHS)
def test_the_share_of_longer_requests_is_that_of_the_distribution(
    prompt: Any, output: Any, limit: int, share: float
) -> None:
    load = Workload(prompt_tokens=prompt, output_tokens=output, arrivals=Closed(concurrency=1))
    assert lost_share(load, limit) == pytest.approx(share, abs=0.003)


def test_the_share_of_longer_requests_agrees_with_drawing_them() -> None:
    load, rng = scenario_of().workload, np.random.default_rng(7)
    drawn = sample_tokens(load.prompt_tokens, 200_000, rng) + sample_tokens(load.output_tokens, 200_000, rng)
    for limit in (4_000, 9_000, 16_000):
        expected = float((drawn > limit).mean())
        assert lost_share(load, limit) == pytest.approx(expected, abs=0.003 + 0.02 * expected)


def test_a_shorter_length_says_whom_it_refuses() -> None:
    found = ways(model=LLAMA, gpu="l4", tp=1, max_model_len=131072, slo=None)
    (way,) = named(found, "shorter-context")
    assert way.suffices
    assert way.lost_share <= 0.001
    assert [text for text in way.side_effects if "longer than" in str(text)]


def synthetic(memory_gib: int) -> Gpu:
    return replace(catalogue.gpu("h100-sxm"), id=f"gpu-{memory_gib}", memory_bytes=memory_gib * GIB)


def test_larger_gpus_never_need_more_of_themselves() -> None:
    scenario, peak = scenario_of(), Peak(requests=72.0, source=PeakFrom.DECLARED)
    rows = smallest_counts(scenario, [synthetic(size) for size in (24, 32, 48, 80, 120, 180, 280)], peak)
    for counts in (
        [row.to_start.gpu_count for row in rows if row.to_start],
        [row.to_carry.gpu_count for row in rows if row.to_carry],
    ):
        assert len(counts) == len(rows)
        assert counts == sorted(counts, reverse=True)


def test_the_smallest_counts_hold_what_they_promise_and_no_less_does() -> None:
    scenario = scenario_of()
    peak = planned_peak(scenario, report_of(scenario))
    assert peak.requests is not None
    for row in count_types(scenario, report_of(scenario)):
        assert row.to_start is not None
        assert row.to_carry is not None
        assert estimate_memory(row.to_start).fits
        half = row.to_start.tp // 2
        assert row.to_start.tp == 1 or not estimate_memory(replace(row.to_start, tp=half)).fits
        carrying = row.to_carry
        each = estimate_memory(carrying, scenario.workload, peak.requests / carrying.replicas)
        assert each.kv_demand_bytes <= each.kv_pool_bytes
        if carrying.replicas > 1:
            fewer = estimate_memory(carrying, scenario.workload, peak.requests / (carrying.replicas - 1))
            assert fewer.kv_demand_bytes > fewer.kv_pool_bytes


@pytest.mark.parametrize("name", CASES)
def test_all_ways_take_few_estimates(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second is for the whole page; an estimate takes about 0.4 ms."""
    asked = []

    def counted(*args: Any, **options: Any) -> MemoryReport:
        asked.append(args)
        return memory_module.estimate_memory(*args, **options)

    scenario = scenario_of(**CASES[name])
    report = report_of(scenario)
    monkeypatch.setattr(ways_gap, "estimate_memory", counted)
    monkeypatch.setattr(ways_counts, "estimate_memory", counted)
    find_ways(scenario, report)
    assert len(asked) <= 90


def test_a_pool_given_from_a_log_is_left_behind_where_the_deployment_changes() -> None:
    scenario = scenario_of(kv_pool_bytes_per_gpu=2 * GIB)
    found = find_ways(scenario, report_of(scenario))
    assert all(way.scenario.deployment.kv_pool_bytes_per_gpu is None for way in found.ways)


def test_the_limit_of_sequences_stays_above_the_peak() -> None:
    for way in (way for name in CASES for way in ways(**CASES[name]).ways if "lower-max-seqs" in way.codes):
        limit = resolve(way.scenario.deployment).max_num_seqs
        each = way.memory.peak_concurrency / way.scenario.deployment.dp
        assert limit >= each or not way.memory.peak_is_known
