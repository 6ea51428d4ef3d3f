"""The search verb: lists in a case, one line per input, and rows that ``predict`` gives the same figures for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

import cli
from data.search_case import read_search

CASE: dict[str, Any] = {
    "id": "a",
    "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "gpu": ["h100-sxm", "l40s"],
    "tp": [1, 2],
    "kv_dtype": ["auto", "fp8"],
    "max_gpus": 8,
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 1500, "p95": 4000},
        "output_tokens": {"distribution": "fixed", "value": 250},
        "arrivals": {"kind": "poisson", "rate_per_s": 10},
    },
    "slo": {"ttft_ms": 800, "itl_ms": 60},
    "prices": {"gpu_hour": {"h100-sxm": 2.5, "l40s": 0.9}, "currency": "EUR"},
}


def run(verb: str, *cases: Any) -> tuple[int, list[dict[str, Any]]]:
    text = "\n".join(case if isinstance(case, str) else json.dumps(case) for case in cases)
    result = CliRunner().invoke(cli.main, [verb, "-"], input=text)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    code, lines = run("search", CASE)
    assert code == 0
    return lines[0]


def test_rows_are_ranked_by_cost_with_headroom_and_percentiles(answer: dict[str, Any]) -> None:
    rows = answer["deployments"]
    assert answer["id"] == "a"
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    costs = [row["cost_per_hour"] for row in rows]
    assert costs == sorted(costs)
    assert rows[0]["headroom_per_s"] >= 0
    assert set(rows[0]["ttft_ms"]) == {"mean", "p50", "p90", "p95", "p99"}
    assert rows[0]["currency"] == "EUR"
    assert answer["combinations"] == 16  # one and two pipeline stages, as none was named
    assert answer["fronts"]["cost_and_p99"]


def test_a_row_is_a_case_that_predict_answers_alike(answer: dict[str, Any]) -> None:
    rows = answer["deployments"][:3]
    _, predicted = run("predict", *(row["case"] for row in rows))
    for row, line in zip(rows, predicted, strict=True):
        assert {key: line[key] for key in ("ttft_ms", "itl_ms", "e2e_ms", "max_rate_per_s")} == {
            key: row[key] for key in ("ttft_ms", "itl_ms", "e2e_ms", "max_rate_per_s")
        }


def test_bad_lists_are_answered_in_their_place() -> None:
    code, lines = run(
        "search",
        {**CASE, "id": 1, "gpu": "h100-sxm", "tp": 1},
        {**CASE, "id": 2, "tp": []},
        {**CASE, "id": 3, "tp": ["two"]},
        {**CASE, "id": 4, "gpu": ["h100-sxm", "no-such-gpu"]},
        {**CASE, "id": 5, "tp": list(range(1, 2000))},
        {**CASE, "id": 6, "prices": {"gpu_hour": {"h100-sxm": "cheap"}}},
        {**CASE, "id": 7, "kv_dtype": ["auto", "fp3"]},
        {**CASE, "id": 8, "replicas": [0]},
    )
    assert code == 1
    assert [line["id"] for line in lines] == list(range(1, 9))
    assert ["error" in line for line in lines] == [False] + [True] * 7
    assert all("defect" not in line["error"] for line in lines[1:])


def test_one_price_for_several_types_is_used_for_none() -> None:
    asked = read_search({**CASE, "prices": {"gpu_hour": 2.5}})
    assert all(price.gpu_hour is None for price in asked.prices.values())
    assert any("by type" in str(note) for note in asked.notes)
    alone = read_search({**CASE, "gpu": "h100-sxm", "prices": {"gpu_hour": 2.5}})
    assert alone.scenario.prices.gpu_hour == 2.5


def test_what_is_left_out_is_searched_and_what_is_given_is_fixed() -> None:
    open_case = {key: value for key, value in CASE.items() if key not in ("gpu", "tp")}
    asked = read_search({**open_case, "replicas": 2})
    assert len(asked.space.gpus) > 20
    assert asked.space.tps == (1, 2, 4, 8)
    assert asked.space.replicas == (2,)
    assert asked.space.batched_tokens == (None,)
