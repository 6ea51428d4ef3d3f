"""Widget values, links and cases say the same thing in three forms."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc.errors import ImpossibleDeployment, InputError, PlimsollError
from data.case import example_case, read_case, write_case
from ui import fields
from ui.glossary import FIELDS
from ui.typed import classes_text, parse_classes, parse_pairs, parse_tiers, parse_trace, tiers_text


def example() -> fields.Values:
    return fields.to_values(example_case())


def test_the_worked_example_survives_the_way_through_the_widgets() -> None:
    scenario, _ = read_case(example_case())
    again, _ = read_case(fields.to_case(example()))
    assert again == scenario


def test_a_written_scenario_can_be_put_back_into_the_widgets() -> None:
    scenario, _ = read_case(fields.to_case(example()))
    again, _ = read_case(fields.to_case(fields.to_values(write_case(scenario))))
    assert again == scenario


FITTED = json.dumps(
    {
        "source": "two runs, \u4e24\u6b21",
        "date": "2026-11-30",
        "points": 2,
        "valid_for": {
            "model": "a/b",
            "gpu": "h100-sxm",
            "engine": "vllm",
            "engine_version": "0.15.1",
            "weight_dtype": "fp8",
            "kv_dtype": "bf16",
            "tp": 2,
        },
        "factors": {"memory": 1.093, "first_token_steps": 2.5},
        "not_identified": ["compute", "request"],
    }
)
"""A calibration as a link carries it."""

CHANGES: tuple[dict[str, Any], ...] = (
    {"gpus": 8, "tp": 4, "pp": 2},
    {"gpu": "own", "own_memory": 96.0, "own_bandwidth": 4000.0, "own_bf16": 500.0, "own_link": 300.0},
    {"arrivals": "closed", "concurrency": 64},
    {"arrivals": "gamma", "rate": 2.5, "cv": 1.8},
    {"arrivals": "per-minute", "minute_rates": "1, 2.5, 4"},
    {"prompt_kind": "fixed", "prompt_p50": 2048.0},
    {"prompt_kind": "uniform", "prompt_p50": 800.0, "prompt_p95": 1000.0},
    {"output_kind": "empirical", "output_quantiles": "0:10, 0.5:200, 1:2000"},
    {"kv_dtype": "fp8", "max_seqs": 128, "max_batched": 4096, "fraction": 0.85, "prefix_caching": "off"},
    {"slo_ttft": None, "slo_itl": None, "slo_e2e": None, "price": None},
    {"hit": 62.0, "percentile": 0.99, "name": "Nachtlauf 夜间"},
    {"block_size": 32, "kv_tokens": 400_000, "chunked_prefill": "off", "async_scheduling": "on", "hybrid_kv": "off"},
    {"num_requests": 300, "http": False},
    {"batching": "static"},
    {"preemption": "swap", "swap_bandwidth": 25.0},
    {"tier_name": "cpu", "tier_bandwidth": 100.0, "tier_latency": 0.1, "tier_concurrency": 4, "offload_hit": 20.0},
    {
        "tier_name": "disk",
        "tier_bandwidth": 6.8,
        "tier_capacity": 2000.0,
        "tier_share": 75.0,
        "further_tiers": "remote 3.2 GB/s 2 ms x8 25%",
        "offload_hit": 33.3,
    },
    {"further_tiers": "cpu 50 GB/s 50%\ndisk 4 GB/s 1 ms 50%", "offload_hit": 10.0},
    {"spec_method": "ngram", "spec_tokens": 4, "accepted": 1.4},
    {"spec_method": "eagle3"},
    {"gpus": 6, "prefill_replicas": 1, "transfer_bandwidth": 50.0, "transfer_ms": 5.0},
    {"routing": "prefix-aware", "prefix_groups": 40, "gpus": 4},
    {"arrivals": "mmpp", "state_rates": "1, 8.25", "state_stays": "60, 5.5"},
    {"arrivals": "trace", "trace": "0\n0.25\n3"},
    {"arrivals": "trace", "trace": "0,100,20\n0.25,4000,1\n3,7,7"},
    {"classes": "chat 90% hit=60%; 报告 10% prompt=9000/20000 output=0:20|0.5:600|1:900 priority=1 max=4"},
    {"calibration": FITTED},
    {"costs": '{"lines": [{"amount_per_month": 500.0, "name": "monitoring"}], "spare_replicas": 1}'},
    {"cancel_share": 5.0, "patience": 12.5, "retries": 3, "retry_after": 0.0},
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: ",".join(change))
def test_a_link_opens_the_same_scenario(change: dict[str, Any]) -> None:
    values = example() | change
    linked, problems = fields.from_link(fields.to_link(values, example()))
    assert problems == []
    assert read_case(fields.to_case(example() | linked)) == read_case(fields.to_case(values))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: ",".join(change))
def test_a_saved_scenario_opens_on_the_screen_as_it_was(change: dict[str, Any]) -> None:
    scenario, notes = read_case(fields.to_case(example() | change))
    case = write_case(scenario)
    assert fields.not_on_screen(case) == []
    assert read_case(fields.to_case(fields.to_values(case))) == (scenario, notes)


def test_each_field_of_a_scenario_is_changed_by_one_of_these() -> None:
    """So that no field is added without its way through a link and a saved scenario."""
    at_the_side = {
        "model",
        "engine",
        "version",
        "preset",
        "weight_dtype",
        "dp",
        "ep",
        "max_len",
        "currency",
        "measured",
        "load_source",
    }
    covered = {key for change in CHANGES for key in change} | at_the_side
    usual = {key for key in fields.EMPTY if key.startswith(("slo_", "own_", "idle_", "prompt_", "output_"))}
    assert set(fields.EMPTY) - covered - usual == set()


def test_what_no_field_holds_is_told() -> None:
    case = write_case(read_case(example_case())[0]) | {"kv_pool_bytes_per_gpu": 10**10, "extra_engine_args": {"a": 1}}
    case["serving"] = {"accepted_tokens": 1.2}
    case["workload"]["num_requests"] = 500_000
    assert fields.not_on_screen(case) == [
        "kv_pool_bytes_per_gpu",
        "extra_engine_args",
        "serving.accepted_tokens",
        "workload.num_requests",
    ]
    assert fields.to_values(case)["num_requests"] is None


def test_a_log_too_long_for_an_address_stays_out_of_the_link() -> None:
    log = "\n".join(str(second) for second in range(1000))
    values = example() | {"arrivals": "trace", "trace": log}
    assert not fields.fits_link(values)
    assert set(fields.to_link(values, example())) == {"arrivals"}
    assert read_case(fields.to_case(fields.to_values(write_case(read_case(fields.to_case(values))[0]))))


def test_a_log_too_long_for_a_page_is_refused_whole() -> None:
    case = write_case(read_case(example_case())[0])
    case["workload"]["arrivals"] = {"kind": "trace", "times_s": list(range(20_001))}
    with pytest.raises(InputError, match="20,001 arrivals"):
        fields.to_values(case)


def test_replicas_that_only_prefill_are_some_of_the_gpus_and_leave_some_to_decode() -> None:
    split = {"gpus": 6, "tp": 2, "prefill_replicas": 1, "transfer_bandwidth": 50.0}
    deployment = read_case(fields.to_case(example() | split))[0].deployment
    assert (deployment.replicas, deployment.gpu_count) == (2, 6)
    with pytest.raises(ImpossibleDeployment, match="at least 8"):
        fields.to_case(example() | split | {"prefill_replicas": 3})


def test_speculation_switched_off_forgets_what_was_accepted() -> None:
    case = fields.to_case(example() | {"spec_method": "off", "accepted": 2.0})
    assert "serving" not in case
    assert "speculative_config" not in case


CLASS_LINES = (
    "chat 90% hit=60%\nreports 10% prompt=20000 output=800/2000 priority=-1 max=4",
    '"2 tenants; 50% of all" 66.7%；网页 33.3％ prompt=100-900',
    "7B 100% output=0:20|0.5:600|1:900",
    "",
)


@pytest.mark.parametrize("text", CLASS_LINES)
def test_kinds_of_requests_are_written_as_they_are_read(text: str) -> None:
    classes = parse_classes(text)
    assert parse_classes(classes_text(classes)) == classes
    assert sum(one["share"] for one in classes) == (pytest.approx(1) if text else 0)


@pytest.mark.parametrize(
    "text", ["disk 4 GB/s 1 ms x8 2000 GiB 25%", "cpu 50GB/s; 远端 6.4 GB/s 1e-2 ms", '"a 1" 2 GB/s']
)
def test_tiers_are_written_as_they_are_read(text: str) -> None:
    tiers = parse_tiers(text)
    assert parse_tiers(tiers_text(tiers)) == tiers
    assert all(tier["gb_per_s"] > 0 for tier in tiers)


@pytest.mark.parametrize(
    ("parse", "text", "piece"),
    [
        (parse_classes, "chat", "'chat'"),
        (parse_classes, "chat 90", "'chat 90'"),
        (parse_classes, "chat 90% fast", "'fast'"),
        (parse_classes, "chat 90% weight=2", "'weight=2'"),
        (parse_classes, "chat 90% prompt=long", "'long'"),
        (parse_classes, "chat 90% max=1.5", "whole number"),
        (parse_classes, "x" * 10_000 + " 90%", "…"),
        (parse_classes, "a 1%\n" * 100, "100 lines"),
        (parse_tiers, "disk", "'disk'"),
        (parse_tiers, "disk 1 ms", "'disk 1 ms'"),
        (parse_tiers, "disk 4 GB/s soon", "'soon'"),
        (parse_trace, "", "empty"),
        (parse_trace, "0\nlater", "Line 2"),
        (parse_trace, "0\nnan", "Line 2"),
        (parse_trace, "1", "2 to 20,000"),
        (parse_trace, "when\n0\n1", "'when'"),
    ],
)
def test_a_line_that_is_none_says_which_piece(parse: Any, text: str, piece: str) -> None:
    with pytest.raises(PlimsollError, match=piece.replace("…", "…")) as refused:
        parse(text)
    assert len(str(refused.value)) < 300


@given(st.sampled_from([parse_classes, parse_tiers, parse_trace]), st.text(max_size=200))
def test_any_text_is_read_or_refused_in_one_sentence(parse: Any, text: str) -> None:
    said = ""
    try:
        parse(text)
    except PlimsollError as error:
        said = str(error)
    assert "\n" not in said


def test_a_link_of_the_unchanged_example_is_empty() -> None:
    assert fields.to_link(example(), example()) == {}


@pytest.mark.parametrize("written", ["abc", "nan", "1e999", "-5", "", "1e12"])
def test_a_broken_number_in_a_link_never_breaks_a_page(written: str) -> None:
    values, problems = fields.from_link({"rate": written})
    assert values.get("rate") is None
    assert written == "" or len(problems) == 1


@given(st.dictionaries(st.sampled_from(sorted(fields.EMPTY)), st.text(max_size=30)))
def test_no_link_raises(query: dict[str, str]) -> None:
    values, _ = fields.from_link(query)
    assert all(not isinstance(value, float) or math.isfinite(value) for value in values.values())


def test_gpus_that_make_no_whole_replica_are_refused_with_the_way_out() -> None:
    with pytest.raises(ImpossibleDeployment, match="multiple of 4"):
        fields.to_case(example() | {"gpus": 6, "tp": 4})


@pytest.mark.parametrize("text", ["1, two, 3", "0.5-600", "0.5:x"])
def test_a_list_that_is_none_says_which_piece(text: str) -> None:
    with pytest.raises(InputError):
        parse_pairs(text)


def test_every_widget_has_its_row_in_the_glossary() -> None:
    assert set(fields.EMPTY) == set(FIELDS)
