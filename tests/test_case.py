"""A JSON case and a scenario say the same; what cannot be meant is refused by name, what is not used is told."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.errors import InputError, UnknownArchitecture
from calc.scenario import Scenario
from calc.units import GB, GIB, TERA
from calc.workload import (
    Closed,
    Empirical,
    Fixed,
    LogNormal,
    OpenLoop,
    PerMinute,
    Prices,
    Slo,
    Uniform,
    Workload,
    longest_request_tokens,
)
from data.case import example_case, read_case, read_deployment, write_case

CASE: dict[str, Any] = {
    "id": "b",
    "model": "Qwen/Qwen3-14B",
    "gpu": "h100-sxm",
    "engine": "vllm",
    "engine_version": "0.15.1",
    "http": True,
    "max_num_seqs": 128,
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 500, "p95": 1500},
        "output_tokens": {"distribution": "fixed", "value": 248},
        "arrivals": {"kind": "poisson", "rate_per_s": 8},
        "num_requests": 4800,
        "prefix_hit_share": 0.0,
    },
}
OWN_GPU = {
    "name": "Lab accelerator",
    "memory_gib": 95.6,
    "bandwidth_gb_per_s": 3352.3,
    "bf16_tflops": 733.1,
    "fp8_tflops": 1466.2,
    "link_gb_per_s": 450,
}
OWN_MODEL = {
    "name": "our 7B",
    "config": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 11008,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
        "torch_dtype": "bfloat16",
    },
    "weight_bytes": 13_476_839_424,
}


def changed(path: str, value: Any) -> dict[str, Any]:
    case = copy.deepcopy(CASE)
    *parents, last = path.split(".")
    inner = case
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    return case


def through_json(scenario: Scenario) -> Scenario:
    text = json.dumps(write_case(scenario), allow_nan=False)
    return read_case(json.loads(text))[0]


def test_the_fields_of_a_predict_case_arrive() -> None:
    scenario, notes = read_case(CASE)
    assert scenario.deployment.model.name == "Qwen/Qwen3-14B"
    assert scenario.deployment.engine.version == "0.15.1"
    assert scenario.deployment.max_num_seqs == 128
    assert scenario.workload.num_requests == 4800
    assert scenario.workload.http
    assert [str(note) for note in notes] == [
        "vllm 0.15.1 has no row of its own: the defaults of 0.14.0 are used.",
        "What a start of vllm 0.15.1 takes beside weights and cache rests on a few public logs.",
    ]


@pytest.mark.parametrize("model", ["Qwen/Qwen3-14B", OWN_MODEL])
@pytest.mark.parametrize("gpu", ["h100-sxm", OWN_GPU])
def test_a_case_written_and_read_again_is_the_same_scenario(model: Any, gpu: Any) -> None:
    scenario, _ = read_case(CASE | {"model": model, "gpu": gpu})
    assert through_json(scenario) == scenario


def test_the_example_reads_without_a_note_and_comes_back() -> None:
    scenario, notes = read_case(example_case())
    assert notes == ()
    assert through_json(scenario) == scenario


def test_each_visitor_gets_an_example_of_their_own() -> None:
    example_case()["workload"]["prefix_hit_share"] = 1.0
    assert example_case()["workload"]["prefix_hit_share"] < 1


tokens = st.integers(1, 100_000)
shares = st.floats(0, 1)
positive = st.floats(1e-3, 1e4)
lengths = st.one_of(
    st.builds(Fixed, value_tokens=tokens),
    st.tuples(tokens, tokens).map(lambda pair: Uniform(low_tokens=min(pair), high_tokens=max(pair))),
    st.tuples(tokens, tokens).map(lambda pair: LogNormal(p50_tokens=min(pair), p95_tokens=max(pair))),
    st.lists(tokens, min_size=3, max_size=3).map(
        lambda drawn: Empirical(quantiles=tuple(zip((0.0, 0.5, 1.0), sorted(drawn), strict=True)))
    ),
)
arrivals = st.one_of(
    st.builds(Closed, concurrency=st.integers(1, 1000)),
    st.builds(OpenLoop, kind=st.sampled_from(["poisson", "constant"]), rate_per_s=positive),
    st.builds(OpenLoop, kind=st.just("gamma"), rate_per_s=positive, cv=st.floats(0.1, 50)),
    st.builds(PerMinute, rates_per_s=st.lists(positive, min_size=1, max_size=4).map(tuple)),
)
workloads = st.builds(
    Workload,
    prompt_tokens=lengths,
    output_tokens=lengths,
    arrivals=arrivals,
    prefix_hit_share=shares,
    num_requests=st.none() | st.integers(1, 10_000),
    business_type=st.sampled_from(["custom", "agent"]),
    http=st.booleans(),
)
targets = st.none() | st.floats(1e-3, 1e3)
slos = st.builds(
    Slo,
    ttft_s=targets,
    itl_s=targets,
    e2e_s=targets,
    percentile_share=st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]),
    source=st.text(max_size=5),
)
prices = st.builds(Prices, gpu_hour=st.none() | st.floats(0, 100), currency=st.sampled_from(["USD", "CNY"]))


@settings(max_examples=60, deadline=None)
@given(workload=workloads, slo=slos, price=prices)
def test_any_load_target_and_price_survive_the_way_through_json(workload: Workload, slo: Slo, price: Prices) -> None:
    deployment = read_case(CASE)[0].deployment
    scenario = Scenario(name="any", deployment=deployment, workload=workload, slo=slo, prices=price)
    assert through_json(scenario) == scenario


def test_own_figures_of_a_gpu_are_taken_as_the_driver_and_the_data_sheet_print_them() -> None:
    gpu = read_case(CASE | {"gpu": OWN_GPU})[0].deployment.gpu
    assert gpu.memory_bytes == round(95.6 * GIB)
    assert gpu.bandwidth_bytes_per_s == pytest.approx(3352.3 * GB)
    assert gpu.flops_per_s == {"bf16": 733.1 * TERA, "fp8": 1466.2 * TERA}
    assert gpu.link_bytes_per_s == 450 * GB
    assert gpu.pcie_bytes_per_s is None


def test_a_gpu_known_only_by_its_memory_is_enough_for_an_estimate() -> None:
    case = {"model": "Qwen/Qwen3-14B", "gpu": {"name": "x", "memory_gib": 79.19}}
    deployment, notes = read_deployment(case)
    assert deployment.gpu.bandwidth_bytes_per_s is None
    assert notes == () or all("x" not in str(note) for note in notes)


def test_a_users_own_models_and_gpus_are_found_by_name() -> None:
    case = CASE | {"model": "mine", "gpu": "lab"}
    scenario, _ = read_case(case, own_models={"mine": OWN_MODEL}, own_gpus={"lab": OWN_GPU})
    assert (scenario.deployment.model.name, scenario.deployment.gpu.name) == ("our 7B", "Lab accelerator")


def test_stated_weights_are_kept_and_marked_as_declared() -> None:
    named = read_case(CASE | {"model": {"name": "Qwen/Qwen3-14B", "weight_bytes": 29_000_000_000}})[0]
    assert named.deployment.model.weights_bytes_declared == 29_000_000_000
    assert through_json(named) == named


def test_the_window_defaults_to_the_longest_prompt_and_output_of_the_load() -> None:
    fixed = changed("workload.prompt_tokens", {"distribution": "uniform", "low": 100, "high": 1000})
    assert read_case(fixed)[0].deployment.max_model_len_tokens == 1248
    assert read_case(CASE | {"max_model_len": 8192})[0].deployment.max_model_len_tokens == 8192
    assert read_case(CASE | {"max_model_len": "model"})[0].deployment.max_model_len_tokens is None
    assert through_json(read_case(CASE | {"max_model_len": "model"})[0]).deployment.max_model_len_tokens is None


def test_the_longest_request_of_a_lognormal_load_lies_far_beyond_its_p95() -> None:
    """One prompt in 10,000 is longer than exp(3.719 sigma) medians; sigma = ln 3 / 1.645."""
    workload = read_case(CASE)[0].workload
    assert longest_request_tokens(workload) == pytest.approx(
        500 * math.exp(3.719 * math.log(3) / 1.645) + 248, rel=1e-3
    )


def test_a_load_longer_than_the_model_allows_is_told() -> None:
    _, notes = read_case(changed("workload.prompt_tokens", {"distribution": "fixed", "value": 500_000}))
    assert any("longer than Qwen/Qwen3-14B allows" in str(note) for note in notes)


def test_a_target_in_milliseconds_or_seconds_means_the_same() -> None:
    milli = read_case(CASE | {"slo": {"ttft_ms": 500, "e2e_ms": 30_000, "percentile": 99}})[0].slo
    plain = read_case(CASE | {"slo": {"ttft_ms": 500.0, "e2e_s": 30, "percentile": 0.99}})[0].slo
    assert milli == plain == Slo(ttft_s=0.5, e2e_s=30, percentile_share=0.99)


def test_latency_at_the_client_can_be_asked_for_in_the_case_or_in_its_load() -> None:
    inside = {key: value for key, value in CASE.items() if key != "http"}
    assert read_case(inside)[0].workload.http
    assert not read_case(inside | {"http": False})[0].workload.http
    inside["workload"] = CASE["workload"] | {"http": False}
    assert not read_case(inside)[0].workload.http


UNUSABLE = [
    ("tp", "8"),
    ("tp", True),
    ("tp", 1.5),
    ("tp", 0),
    ("tp", 3),
    ("tp", 10**400),
    ("pp", -1),
    ("replicas", 10**9),
    ("ep", 1),
    ("http", "yes"),
    ("engine", 3),
    ("engine", "no-such-engine"),
    ("memory_fraction", 1.5),
    ("memory_fraction", math.nan),
    ("max_model_len", 0),
    ("max_model_len", "long"),
    ("max_num_seqs", -4),
    ("max_num_seqs", 1e308),
    ("max_num_batched_tokens", 10**12),
    ("max_model_len", 1e308),
    ("kv_pool_bytes_per_gpu", 0),
    ("kv_tokens", "many"),
    ("enable_prefix_caching", "on"),
    ("model", None),
    ("model", "no/such-model"),
    ("model", ["Qwen/Qwen3-14B"]),
    ("model", {"config": {}}),
    ("model", {"name": "x", "config": []}),
    ("model", {"name": "x", "config": {}}),
    ("model", {"name": "x", "config": OWN_MODEL["config"], "weight_bytes": -1}),
    ("gpu", None),
    ("gpu", "no-such-gpu"),
    ("gpu", {"name": "x"}),
    ("gpu", {"name": "x", "memory_gib": 80e9}),
    ("gpu", {"name": "x", "memory_gib": True}),
    ("gpu", {"name": "x", "memory_gib": 80, "bandwidth_gb_per_s": math.inf}),
    ("gpu", {"name": "x", "memory_gib": 80, "bf16_tflops": 989e12}),
    ("kv_dtype", "fp3"),
    ("weight_dtype", 16),
    ("workload", None),
    ("workload", []),
    ("workload.prompt_tokens", 500),
    ("workload.prompt_tokens", {"distribution": "pareto"}),
    ("workload.prompt_tokens", {"distribution": "fixed"}),
    ("workload.prompt_tokens", {"distribution": "fixed", "value": 0}),
    ("workload.prompt_tokens", {"distribution": "lognormal", "p50": 900, "p95": 100}),
    ("workload.prompt_tokens", {"distribution": "empirical", "quantiles": [[0, 10, 20]]}),
    ("workload.prompt_tokens", {"distribution": "empirical", "quantiles": "0:10"}),
    ("workload.arrivals", {"kind": "poisson"}),
    ("workload.arrivals", {"kind": "poisson", "rate_per_s": 0}),
    ("workload.arrivals", {"kind": "closed", "concurrency": 2.5}),
    ("workload.arrivals", {"kind": "gamma", "rate_per_s": 1, "cv": -1}),
    ("workload.arrivals", {"kind": "per-minute", "rates_per_s": [1, "2"]}),
    ("workload.prefix_hit_share", 30),
    ("workload.num_requests", 0),
    ("slo", {"ttft_ms": 0}),
    ("slo", {"percentile": 100}),
    ("prices", {"gpu_hour": "2.5"}),
]


@pytest.mark.parametrize(("path", "value"), UNUSABLE, ids=[f"{path}={value!r:.60}" for path, value in UNUSABLE])
def test_what_cannot_be_meant_is_refused_in_one_sentence(path: str, value: Any) -> None:
    with pytest.raises(InputError) as refused:
        read_case(changed(path, value))
    sentence = str(refused.value)
    assert sentence.endswith((".", ")"))
    assert len(sentence) < 400
    assert "\n" not in sentence


@pytest.mark.parametrize("path", ["tp", "workload.num_requests", "workload.arrivals.rate_per_s", "slo.ttft_ms"])
def test_a_wrong_type_is_refused_with_the_name_of_its_field(path: str) -> None:
    case = changed("slo", {"ttft_ms": 1})
    *parents, last = path.split(".")
    inner = case
    for parent in parents:
        inner = inner[parent]
    inner[last] = "12"
    with pytest.raises(InputError, match=path):
        read_case(case)


@pytest.mark.parametrize("case", [None, 3, "x", [], [CASE]])
def test_a_case_that_is_no_object_is_refused(case: Any) -> None:
    with pytest.raises(InputError, match="JSON object"):
        read_case(case)


def test_a_field_nobody_knows_is_told_wherever_it_stands() -> None:
    case = changed("workload.arrivals", {"kind": "poisson", "rate_per_s": 8, "burst": 2}) | {"gpus": 4}
    notes = [str(note) for note in read_case(case)[1]]
    assert [name for name in ("gpus", "workload.arrivals.burst") if any(f" {name} " in note for note in notes)] == [
        "gpus",
        "workload.arrivals.burst",
    ]


def test_a_missing_and_a_null_field_are_the_same() -> None:
    assert read_case(CASE | {"tp": None, "kv_dtype": None, "slo": None})[0] == read_case(CASE)[0]


def recorded(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["case"] for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_recorded_serving_point_reads_and_comes_back(cases_dir: Path) -> None:
    for case in recorded(cases_dir / "latency" / "predict_cases.jsonl"):
        scenario, notes = read_case(case)
        assert through_json(scenario) == scenario
        assert not [note for note in notes if "not known here" in str(note)]


def refused_starts(file: Path) -> list[dict[str, Any]]:
    """Cases whose architecture is refused; all others must read without an unknown field."""
    spoken = {"extra_engine_args", "speculative_config", "disable_hybrid_kv_cache_manager"}
    refused = []
    for case in recorded(file):
        try:
            _, notes = read_deployment({key: value for key, value in case.items() if key not in spoken})
        except UnknownArchitecture:
            refused.append(case)
            continue
        assert not [note for note in notes if "not known here" in str(note)]
    return refused


def test_every_recorded_start_reads(cases_dir: Path) -> None:
    assert not refused_starts(cases_dir / "memory" / "estimate_cases.jsonl")


def test_of_the_many_architectures_one_is_read_or_refused_but_never_guessed(cases_dir: Path) -> None:
    refused = refused_starts(cases_dir / "memory" / "oracle_cases.jsonl")
    assert len(refused) < len(recorded(cases_dir / "memory" / "oracle_cases.jsonl")) / 2


def test_requests_that_no_engine_would_take_are_told_to_be_cut() -> None:
    long = changed("workload.prompt_tokens", {"distribution": "fixed", "value": 9000})
    _, notes = read_case(long | {"max_model_len": 4096})
    assert any("refuses requests of more than 4,096 tokens" in str(note) for note in notes)
    for enough in (16_384, None):
        assert not any("refuses" in str(note) for note in read_case(long | {"max_model_len": enough})[1])
