"""Tiers, split prefill, routing, kinds of requests and their clients, said as JSON and read back the same."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.errors import InputError
from calc.scenario import Scenario
from calc.serving import Serving, Tier
from calc.units import GB, GIB
from calc.workload import Clients, Fixed, LogNormal, Mmpp, Recorded, RequestClass, Workload, longest_request_tokens
from data.case import example_case, read_case, write_case

SERVING: dict[str, Any] = {
    "batching": "static",
    "preemption": "swap",
    "swap_gb_per_s": 25,
    "offload": [
        {"tier": "cpu", "gb_per_s": 50, "latency_ms": 0.1, "concurrency": 4, "capacity_gib": 200, "hit_share": 0.75},
        {"tier": "disk", "gb_per_s": 6.8, "hit_share": 0.25},
    ],
    "accepted_tokens": 1.4,
    "prefill_replicas": 2,
    "transfer_gb_per_s": 50,
    "transfer_ms": 5,
    "routing": "least-loaded",
}
CLASSES: list[dict[str, Any]] = [
    {"name": "chat", "share": 0.9, "priority": -1, "prefix_hit_share": 0.6},
    {
        "name": "报告",
        "share": 0.1,
        "prompt_tokens": {"distribution": "fixed", "value": 20_000},
        "output_tokens": {"distribution": "lognormal", "p50": 800, "p95": 2000},
        "max_running": 4,
    },
]
CLIENTS = {"cancel_share": 0.05, "patience_s": 10, "retries": 2, "retry_after_s": 0.5}
MMPP = {"kind": "mmpp", "rates_per_s": [4.62, 7.02], "stays_s": [117, 72]}
TRACE = {"kind": "trace", "times_s": [0, 0.5, 0.5, 2], "prompt_tokens": [10, 900, 40, 9], "output_tokens": [5, 6, 7, 8]}
WORKLOAD: dict[str, Any] = {
    "offload_hit_share": 0.2,
    "prefix_groups": 40,
    "classes": CLASSES,
    "clients": CLIENTS,
    "arrivals": MMPP,
}


def full() -> dict[str, Any]:
    case = example_case()
    case["serving"] = copy.deepcopy(SERVING)
    case["speculative_config"] = {"method": "ngram", "num_speculative_tokens": 3}
    case["workload"] |= copy.deepcopy(WORKLOAD)
    return case


def changed(path: str, value: Any) -> dict[str, Any]:
    case = full()
    *parents, last = path.split(".")
    inner: Any = case
    for parent in parents:
        inner = inner[int(parent)] if isinstance(inner, list) else inner[parent]
    inner[last] = value
    return case


def through_json(scenario: Scenario) -> Scenario:
    return read_case(json.loads(json.dumps(write_case(scenario), allow_nan=False)))[0]


def test_every_field_of_serving_arrives_in_base_units() -> None:
    scenario, notes = read_case(full())
    assert notes == ()
    serving = scenario.deployment.serving
    assert (serving.batching, serving.preemption, serving.routing) == ("static", "swap", "least-loaded")
    assert (serving.swap_bytes_per_s, serving.transfer_bytes_per_s, serving.transfer_s) == (25 * GB, 50 * GB, 0.005)
    assert (serving.accepted_tokens, serving.prefill_replicas) == (1.4, 2)
    cpu, disk = serving.tiers
    assert (cpu.name, cpu.bytes_per_s, cpu.latency_s, cpu.concurrency) == ("cpu", 50 * GB, 1e-4, 4)
    assert (cpu.capacity_bytes, cpu.hit_share) == (200 * GIB, 0.75)
    assert disk == Tier(name="disk", bytes_per_s=6.8 * GB, hit_share=0.25)
    assert (scenario.deployment.spec_method, scenario.deployment.spec_tokens) == ("ngram", 3)


def test_kinds_of_requests_and_their_clients_arrive() -> None:
    workload = read_case(full())[0].workload
    chat, report = workload.classes
    assert chat == RequestClass(name="chat", share=0.9, priority=-1, prefix_hit_share=0.6)
    assert report.prompt_tokens == Fixed(value_tokens=20_000)
    assert report.output_tokens == LogNormal(p50_tokens=800, p95_tokens=2000)
    assert report.max_running == 4
    assert workload.clients == Clients(cancel_share=0.05, patience_s=10, retries=2, retry_after_s=0.5)
    assert (workload.offload_hit_share, workload.prefix_groups) == (0.2, 40)
    assert workload.arrivals == Mmpp(rates_per_s=(4.62, 7.02), stays_s=(117, 72))


def test_a_full_case_written_and_read_again_is_the_same_scenario() -> None:
    scenario, _ = read_case(full())
    assert through_json(scenario) == scenario
    written = write_case(scenario)
    assert (written["serving"], written["workload"]["classes"]) == (SERVING, CLASSES)
    assert (written["workload"]["clients"], written["workload"]["arrivals"]) == (CLIENTS, MMPP)


def test_only_what_differs_from_plain_replicas_is_written() -> None:
    written = write_case(read_case(example_case())[0])
    assert "serving" not in written
    assert not {"classes", "clients", "offload_hit_share", "prefix_groups"} & set(written["workload"])
    one = example_case() | {"serving": {"routing": "round-robin"}}
    assert write_case(read_case(one)[0])["serving"] == {"routing": "round-robin"}


def test_an_empty_block_is_the_same_as_none() -> None:
    case = example_case() | {"serving": {}}
    case["workload"] |= {"classes": [], "clients": {}}
    assert read_case(case)[0] == read_case(example_case())[0]


def test_a_log_brings_its_own_lengths() -> None:
    case = example_case()
    del case["workload"]["prompt_tokens"], case["workload"]["output_tokens"]
    case["workload"]["arrivals"] = TRACE
    scenario, _ = read_case(case)
    workload = scenario.workload
    assert workload.arrivals == Recorded(
        times_s=(0, 0.5, 0.5, 2), prompt_tokens=(10, 900, 40, 9), output_tokens=(5, 6, 7, 8)
    )
    assert (workload.prompt_tokens.quantile(0), workload.prompt_tokens.quantile(1)) == (9, 900)
    assert workload.prompt_tokens.quantile(0.5) == pytest.approx(25)  # between 10 and 40
    assert longest_request_tokens(workload) == 906
    assert through_json(scenario) == scenario


def test_a_log_without_lengths_needs_a_distribution() -> None:
    case = example_case()
    case["workload"]["arrivals"] = {"kind": "trace", "times_s": [0, 1, 2]}
    assert read_case(case)[0].workload.arrivals == Recorded(times_s=(0, 1, 2))
    del case["workload"]["prompt_tokens"]
    with pytest.raises(InputError, match=r"workload\.prompt_tokens is missing"):
        read_case(case)


def test_a_log_of_ages_is_refused() -> None:
    case = example_case()
    case["workload"]["arrivals"] = {"kind": "trace", "times_s": [0, 1e300]}
    with pytest.raises(InputError, match="recorded arrivals must be"):
        read_case(case)


def test_the_window_is_long_enough_for_the_longest_class() -> None:
    """One prompt of the example in 10,000 has 29,600 tokens, an answer 2,960; a report has more."""
    case = full()
    del case["max_model_len"]
    assert read_case(case)[0].deployment.max_model_len_tokens == pytest.approx(32_560, rel=0.01)
    case["workload"]["classes"][1]["prompt_tokens"]["value"] = 30_000
    outputs = LogNormal(p50_tokens=800, p95_tokens=2000).quantile(0.9999)
    assert read_case(case)[0].deployment.max_model_len_tokens == pytest.approx(30_000 + outputs, abs=1)


REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("serving", [], "serving"),
    ("serving", "static", "serving"),
    ("serving.batching", "dynamic", r"serving\.batching"),
    ("serving.preemption", True, r"serving\.preemption"),
    ("serving.swap_gb_per_s", "25", r"serving\.swap_gb_per_s"),
    ("serving.swap_gb_per_s", 0, r"serving\.swap_gb_per_s"),
    ("serving.swap_gb_per_s", None, "swapping needs the bandwidth"),
    ("serving.swap_gb_per_s", 25e9, r"serving\.swap_gb_per_s"),
    ("serving.offload", {}, r"serving\.offload"),
    ("serving.offload", [3], r"serving\.offload\[0\]"),
    ("serving.offload", [SERVING["offload"][1]] * 5, r"serving\.offload"),
    ("serving.offload.0.tier", "", r"serving\.offload\[0\]\.tier"),
    ("serving.offload.0.tier", "a\nb", r"serving\.offload\[0\]\.tier"),
    ("serving.offload.0.gb_per_s", None, r"serving\.offload\[0\]\.gb_per_s is missing"),
    ("serving.offload.0.gb_per_s", -1, r"serving\.offload\[0\]\.gb_per_s"),
    ("serving.offload.1.latency_ms", -1, r"serving\.offload\[1\]\.latency_ms"),
    ("serving.offload.1.latency_ms", float("inf"), r"serving\.offload\[1\]\.latency_ms"),
    ("serving.offload.0.concurrency", 0, r"serving\.offload\[0\]\.concurrency"),
    ("serving.offload.0.capacity_gib", 0, r"serving\.offload\[0\]\.capacity_gib"),
    ("serving.offload.0.hit_share", 1.5, r"serving\.offload\[0\]\.hit_share"),
    ("serving.offload.0.hit_share", None, r"serving\.offload"),
    ("serving.accepted_tokens", -1, r"serving\.accepted_tokens"),
    ("serving.accepted_tokens", 3.5, "only 3 tokens are drafted"),
    ("serving.prefill_replicas", 1.5, r"serving\.prefill_replicas"),
    ("serving.prefill_replicas", -1, r"serving\.prefill_replicas"),
    ("serving.transfer_gb_per_s", None, "split prefill needs the bandwidth"),
    ("serving.transfer_ms", float("nan"), r"serving\.transfer_ms"),
    ("serving.routing", "sticky", r"serving\.routing"),
    ("workload.offload_hit_share", 20, r"workload\.offload_hit_share"),
    ("workload.offload_hit_share", 0.9, "offload hit share"),
    ("workload.prefix_groups", 0, r"workload\.prefix_groups"),
    ("workload.prefix_groups", 1e9, r"workload\.prefix_groups"),
    ("workload.classes", {}, r"workload\.classes"),
    ("workload.classes", ["chat"], r"workload\.classes\[0\]"),
    ("workload.classes", CLASSES[:1], "add up to"),
    ("workload.classes", [CLASSES[0]] * 40, "at most 32"),
    ("workload.classes", [CLASSES[0] | {"share": 0.5}] * 2, "twice"),
    ("workload.classes.0.name", None, r"workload\.classes\[0\]\.name is missing"),
    ("workload.classes.0.name", "  ", r"workload\.classes\[0\]\.name"),
    ("workload.classes.0.share", None, r"workload\.classes\[0\]\.share is missing"),
    ("workload.classes.0.share", 90, r"workload\.classes\[0\]\.share"),
    ("workload.classes.0.priority", 1e300, r"workload\.classes\[0\]\.priority"),
    ("workload.classes.0.priority", 0.5, r"workload\.classes\[0\]\.priority"),
    ("workload.classes.1.max_running", 0, r"workload\.classes\[1\]\.max_running"),
    ("workload.classes.1.prompt_tokens", 500, r"workload\.classes\[1\]\.prompt_tokens"),
    ("workload.classes.1.prefix_hit_share", -0.1, r"workload\.classes\[1\]\.prefix_hit_share"),
    ("workload.clients", [], r"workload\.clients"),
    ("workload.clients.cancel_share", 5, r"workload\.clients\.cancel_share"),
    ("workload.clients.patience_s", 0, r"workload\.clients\.patience_s"),
    ("workload.clients.retries", 1000, r"workload\.clients\.retries"),
    ("workload.clients.retries", 1.5, r"workload\.clients\.retries"),
    ("workload.clients.retry_after_s", -1, r"workload\.clients\.retry_after_s"),
    ("workload.arrivals.rates_per_s", [4], "as many mean stays"),
    ("workload.arrivals.rates_per_s", None, r"workload\.arrivals\.rates_per_s is missing"),
    ("workload.arrivals.stays_s", [117, 0], "as many mean stays"),
    ("workload.arrivals.stays_s", "117, 72", r"workload\.arrivals\.stays_s"),
    ("workload.arrivals", TRACE | {"times_s": [0, 2, 1, 3]}, "rising times"),
    ("workload.arrivals", TRACE | {"times_s": [5, 5, 5, 5]}, "rising times"),
    ("workload.arrivals", TRACE | {"times_s": []}, "rising times"),
    ("workload.arrivals", TRACE | {"times_s": [0, "1", 2, 3]}, r"workload\.arrivals\.times_s"),
    ("workload.arrivals", TRACE | {"times_s": list(range(200_001))}, "at most 200,000 entries"),
    ("workload.arrivals", TRACE | {"prompt_tokens": [1, 2]}, "one number"),
    ("workload.arrivals", TRACE | {"prompt_tokens": [1, 2, 3, 0]}, "one number"),
    ("workload.arrivals", TRACE | {"output_tokens": [1, 2, 3, 4.5]}, r"workload\.arrivals\.output_tokens"),
)


@pytest.mark.parametrize(
    ("path", "value", "said"), REFUSED, ids=[f"{path}={value!r:.40}" for path, value, _ in REFUSED]
)
def test_what_cannot_be_meant_is_refused_in_one_sentence_naming_it(path: str, value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        read_case(changed(path, value))
    sentence = str(refused.value)
    assert sentence.endswith((".", ")"))
    assert len(sentence) < 300
    assert "\n" not in sentence


def test_a_field_nobody_knows_is_told_wherever_it_stands() -> None:
    case = full()
    case["serving"]["speculation"] = 1
    case["serving"]["offload"][1]["bandwidth"] = 2
    case["workload"]["classes"][0]["weight"] = 3
    case["workload"]["clients"]["mood"] = 4
    told = " ".join(str(note) for note in read_case(case)[1])
    for name in (
        "serving.speculation",
        "serving.offload[1].bandwidth",
        "workload.classes[0].weight",
        "workload.clients.mood",
    ):
        assert f" {name} " in told


ms = st.integers(0, 10_000).map(lambda tenth: tenth / 10 / 1000)
rates = st.integers(1, 10_000).map(lambda tenth: tenth / 10 * GB)
tiers = st.builds(
    Tier,
    name=st.sampled_from(["cpu", "disk", "remote", "池"]),
    bytes_per_s=rates,
    latency_s=ms,
    concurrency=st.integers(1, 64),
    capacity_bytes=st.none() | st.integers(2**21, 2**50),
    hit_share=st.floats(0, 0.25),
)
servings = st.builds(
    Serving,
    batching=st.sampled_from(["continuous", "static"]),
    preemption=st.sampled_from(["recompute", "swap"]),
    swap_bytes_per_s=rates,
    tiers=st.lists(tiers, max_size=4).map(tuple),
    accepted_tokens=st.none() | st.floats(0, 10),
    prefill_replicas=st.integers(0, 8),
    transfer_bytes_per_s=rates,
    transfer_s=ms,
    routing=st.sampled_from(["random", "round-robin", "least-loaded", "prefix-aware"]),
)
clients = st.builds(
    Clients,
    cancel_share=st.floats(0, 1),
    patience_s=st.none() | st.floats(0.01, 1000),
    retries=st.integers(0, 100),
    retry_after_s=st.floats(0, 60),
)


@settings(max_examples=60, deadline=None)
@given(serving=servings, client=clients, groups=st.none() | st.integers(1, 10**6), share=st.floats(0, 0.75))
def test_any_way_of_serving_survives_the_way_through_json(
    serving: Serving, client: Clients, groups: int | None, share: float
) -> None:
    scenario, _ = read_case(example_case())
    deployment = replace(scenario.deployment, serving=serving)
    workload: Workload = replace(
        scenario.workload, clients=client, prefix_groups=groups, offload_hit_share=share, prefix_hit_share=0.25
    )
    asked = replace(scenario, deployment=deployment, workload=workload)
    assert through_json(asked) == asked
