"""Hostile and unusual questions on the command line: a sane answer or one sentence, no traceback and no hang."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from copy import deepcopy
from itertools import cycle
from time import process_time
from typing import Any

import pytest
from click.testing import CliRunner

import cli
from calc.errors import PlimsollError
from data import catalogue
from data.questions import decide, estimate, predict

CASE: dict[str, Any] = {
    "id": "a",
    "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm",
    "workload": {
        "prompt_tokens": {"distribution": "fixed", "value": 500},
        "output_tokens": {"distribution": "fixed", "value": 50},
        "arrivals": {"kind": "poisson", "rate_per_s": 2},
        "num_requests": 50,
    },
    "slo": {"ttft_ms": 500},
    "prices": {"gpu_hour": 2},
}
HOSTILE = (
    "NaN", "-Infinity", "1e999", "-1", "0", "1e-320", "1e308", '"8"', "null", "[]", "{}", "true", "9" * 30,
    r'"\ud800"', '"' + "x" * 10_000 + '"', "[" * 900 + "]" * 900, '"<script>alert(1)</script>"',
)  # fmt: skip
"""JSON, or nearly JSON, in the place of any value."""
FIELDS = (
    "id", "model", "gpu", "tp", "pp", "dp", "ep", "replicas", "engine", "engine_version", "memory_fraction", "date",
    "max_model_len", "kv_dtype", "weight_dtype", "max_num_seqs", "max_num_batched_tokens", "block_size", "kv_tokens",
    "kv_pool_bytes_per_gpu", "name", "enable_prefix_caching", "http", "slo", "slo.ttft_ms", "slo.percentile", "prices",
    "prices.gpu_hour", "prices.currency", "workload", "workload.num_requests", "workload.prefix_hit_share",
    "workload.arrivals", "workload.arrivals.rate_per_s", "workload.prompt_tokens.value", "workload.business_type",
)  # fmt: skip
LONGEST_SENTENCE = 500
LONGEST_S = 4.0
"""Of processor time for one answer, on a machine that has other things to do."""


def put(field: str, value: str) -> str:
    """The case as text with ``value`` in the place of one field."""
    case = deepcopy(CASE)
    *above, last = field.split(".")
    inner = case
    for name in above:
        inner = inner[name]
    inner[last] = "@"
    return json.dumps(case).replace('"@"', value)


def asked(verb: str, text: str) -> dict[str, Any]:
    """The one answer on standard output, which must be plain JSON and no defect of ours."""

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    result = CliRunner().invoke(cli.main, [verb, "-"], input=text, catch_exceptions=False)
    (line,) = result.stdout.splitlines()
    answer: dict[str, Any] = json.loads(line, parse_constant=refuse)
    assert "defect" not in answer.get("error", ""), result.stderr
    return answer


@pytest.mark.parametrize("verb", ["estimate", "predict"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_hostile_value_in_any_field_is_answered_or_refused_in_one_sentence(verb: str, field: str) -> None:
    for value in HOSTILE:
        answer = asked(verb, put(field, value))
        if "error" in answer:
            assert "\n" not in answer["error"]
            assert len(answer["error"]) <= LONGEST_SENTENCE


@pytest.mark.parametrize("field", ["slo.ttft_ms", "prices.gpu_hour", "workload.arrivals.rate_per_s", "name", "model"])
def test_a_decision_on_a_hostile_scenario_is_an_answer_or_one_sentence(field: str) -> None:
    for value in HOSTILE:
        answer = asked("decide", f'{{"scenario": {put(field, value)}}}')
        assert "outcome" in answer or len(answer["error"]) <= LONGEST_SENTENCE


def test_an_id_that_is_no_json_comes_back_as_null() -> None:
    assert asked("estimate", put("id", "NaN"))["id"] is None
    assert asked("estimate", put("id", "[1, -Infinity]"))["id"] == [1, None]


def test_a_broken_character_in_a_name_is_echoed_as_it_came() -> None:
    assert asked("estimate", put("id", r'"\ud800"'))["id"] == "\ud800"


class Draw:
    """Deployments and loads at and beyond the edges."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.models, self.gpus = list(catalogue.models()), list(catalogue.gpus())
        self.engines = [(row.id, row.version) for row in catalogue.engines()]

    def maybe(self, share: float, *options: Any) -> Any:
        """One of the options, or ``None`` (left to its default)."""
        return self.random.choice(options) if self.random.random() < share else None

    def gpu(self) -> Any:
        odd = {
            "name": "odd",
            "memory_gib": self.random.choice([1, 16, 80, 4096]),
            "bandwidth_gb_per_s": self.random.choice([0.001, 100, 3000, 1e6]),
            "bf16_tflops": self.random.choice([0.001, 50, 1e6]),
        }
        return odd if self.random.random() < 0.15 else self.random.choice(self.gpus)

    def deployment(self) -> dict[str, Any]:
        engine, version = self.random.choice(self.engines)
        return {
            "model": self.random.choice(self.models),
            "gpu": self.gpu(),
            "engine": engine,
            "engine_version": version,
            "tp": self.maybe(0.6, 1, 2, 3, 4, 8, 16),
            "pp": self.maybe(0.2, 2, 4, 100),
            "dp": self.maybe(0.2, 2, 64),
            "ep": self.maybe(0.1, True),
            "replicas": self.maybe(0.2, 2, 500, 4096),
            "memory_fraction": self.maybe(0.2, 0.01, 0.3, 0.99, 1),
            "max_model_len": self.maybe(0.3, 1, 2, 4096, 10**6, 2 * 10**7, "model"),
            "block_size": self.maybe(0.2, 1, 3, 64, 4096),
            "max_num_seqs": self.maybe(0.2, 1, 2, 100_000),
            "max_num_batched_tokens": self.maybe(0.2, 1, 16, 2 * 10**7),
            "kv_dtype": self.maybe(0.2, "fp8", "bf16", "nvfp4"),
            "weight_dtype": self.maybe(0.2, "fp8", "int8", "int4", "nvfp4", "bf16"),
            "enable_prefix_caching": self.maybe(0.2, True, False),
            "enable_chunked_prefill": self.maybe(0.2, True, False),
            "kv_tokens": self.maybe(0.15, 1, 16, 10**5, 10**12),
        }

    def lengths(self) -> dict[str, Any]:
        low = self.random.choice([1, 10, 500, 5000, 100_000])
        return self.random.choice(
            [
                {"distribution": "fixed", "value": low},
                {"distribution": "lognormal", "p50": low, "p95": low * self.random.choice([1, 3, 30])},
                {"distribution": "uniform", "low": low, "high": low * 50},
                {"distribution": "empirical", "quantiles": [[0, low], [0.5, low], [1, 10**6]]},
            ]
        )

    def arrivals(self) -> dict[str, Any]:
        rate = self.random.choice([1e-6, 0.1, 5, 1000, 1e5])
        minutes = [0, *self.random.choices([0, 1, 1e5, 1e-6], k=5), 1]
        return self.random.choice(
            [
                {"kind": "closed", "concurrency": self.random.choice([1, 7, 1000, 100_000])},
                {"kind": "poisson", "rate_per_s": rate},
                {"kind": "constant", "rate_per_s": rate},
                {"kind": "gamma", "rate_per_s": rate, "cv": self.random.choice([0.01, 5, 100])},
                {"kind": "per-minute", "rates_per_s": minutes},
            ]
        )

    def case(self) -> dict[str, Any]:
        workload = {
            "prompt_tokens": self.lengths(),
            "output_tokens": self.lengths(),
            "arrivals": self.arrivals(),
            "prefix_hit_share": self.maybe(0.4, 0.5, 1.0),
            "num_requests": self.maybe(0.4, 1, 2, 1000, 10**7),
        }
        slo = self.maybe(0.5, {"ttft_ms": 500, "itl_ms": 0.001, "percentile": 0.9999}, {"e2e_s": 1e6})
        return {**self.deployment(), "workload": workload, "slo": slo}


def leaves(value: Any) -> Iterator[Any]:
    """Every number, text and flag of an answer."""
    match value:
        case dict():
            for inner in value.values():
                yield from leaves(inner)
        case list():
            for inner in value:
                yield from leaves(inner)
        case _:
            yield value


def assert_sane_numbers(answer: dict[str, Any]) -> None:
    for value in leaves(answer):
        if isinstance(value, int | float):
            assert math.isfinite(value)
            assert value >= 0


def assert_sane_memory(answer: dict[str, Any]) -> None:
    assert_sane_numbers(answer)
    low, high = answer["kv_pool_band_bytes"]
    assert low <= answer["kv_pool_bytes_per_gpu"] <= high
    assert answer["fits"] is (answer["over_bytes"] == 0)
    assert answer["num_blocks"] > 0 or not answer["fits"]


def assert_sane_latency(answer: dict[str, Any]) -> None:
    assert_sane_numbers(answer)
    for metric in ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms"):
        percentiles = [answer[metric][name] for name in ("p50", "p90", "p95", "p99")]
        known = [value for value in percentiles if value is not None]
        assert known == sorted(known)
        assert len(known) in (0, len(percentiles))
    parts = [answer[f"{part}_ms"] for part in ("queue", "prefill", "decode", "network")]
    if answer["e2e_ms"]["mean"] is None:  # an endless load beyond stability
        assert answer["saturated"]
        assert parts == [None] * 4
    else:
        assert sum(parts) == pytest.approx(answer["e2e_ms"]["mean"], rel=1e-3, abs=1e-3)
    assert answer["kv_usage"]["mean"] <= answer["kv_usage"]["max"] * (1 + 1e-6) <= 1 + 1e-5
    assert answer["max_rate_per_s"] > 0


def answers_sanely(case: dict[str, Any]) -> bool:
    """Whether the case is answered, which it must be with sane numbers; else it is refused as the user's to mend."""
    try:
        memory, latency = estimate(case), predict(case)
    except PlimsollError:
        return False
    assert_sane_memory(memory)
    assert_sane_latency(latency)
    return True


def latency_refusal(model: str, gpu: str) -> bool:
    """Whether memory is answered and the sentence that refuses latency names what is at fault."""
    case = CASE | {"model": model, "gpu": gpu}
    assert_sane_memory(estimate(case))
    with pytest.raises(PlimsollError) as refused:
        predict(case)
    return model in str(refused.value) or catalogue.gpu(gpu).name in str(refused.value)


@pytest.mark.parametrize("seed", range(6))
def test_random_cases_at_the_edges_give_sane_numbers_in_bounded_time(seed: int) -> None:
    draw = Draw(seed)
    answered = 0
    for _ in range(40):
        case = draw.case()
        begun_s = process_time()
        answered += answers_sanely(case)
        assert process_time() - begun_s < LONGEST_S, case
    assert answered > 4


def test_every_model_on_some_gpu_and_every_gpu_with_some_model_is_answered_or_refused() -> None:
    models, gpus = sorted(catalogue.models()), sorted(catalogue.gpus())
    pairs = list(zip(models, cycle(gpus), strict=False)) + list(zip(gpus, cycle(models[::-1]), strict=False))
    for one, other in pairs:
        model, gpu = (one, other) if one in catalogue.models() else (other, one)
        assert answers_sanely(CASE | {"model": model, "gpu": gpu}) or latency_refusal(model, gpu)


@pytest.mark.parametrize(
    "arrivals",
    [
        {"kind": "poisson", "rate_per_s": 1e5},
        {"kind": "poisson", "rate_per_s": 1e-6},
        {"kind": "closed", "concurrency": 100_000},
        {"kind": "per-minute", "rates_per_s": [0, 1e5, 0]},
    ],
    ids=lambda arrivals: arrivals["kind"],
)
def test_the_largest_and_least_loads_accepted_are_decided(arrivals: dict[str, Any]) -> None:
    short = {"distribution": "fixed", "value": 4}
    load = {"prompt_tokens": short, "output_tokens": short, "arrivals": arrivals}
    answer = decide({"scenario": {**CASE, "workload": load}})
    assert answer["outcome"]
    json.dumps(answer, allow_nan=False)


def test_a_load_of_which_nothing_is_done_in_time_is_one_sentence() -> None:
    endless = {
        "prompt_tokens": {"distribution": "fixed", "value": 100_000},
        "output_tokens": {"distribution": "fixed", "value": 2},
        "arrivals": {"kind": "closed", "concurrency": 1000},
    }
    answer = asked("predict", json.dumps(CASE | {"max_num_batched_tokens": 1, "workload": endless}))
    assert "scheduling rounds" in answer["error"]
    assert asked("decide", json.dumps({"scenario": CASE | {"max_num_batched_tokens": 1, "workload": endless}}))[
        "outcome"
    ]
