"""Widget values, links and cases say the same thing in three forms."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc.errors import ImpossibleDeployment, InputError
from data.case import example_case, read_case, write_case
from ui import fields
from ui.glossary import FIELDS


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
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: ",".join(change))
def test_a_link_opens_the_same_scenario(change: dict[str, Any]) -> None:
    values = example() | change
    linked, problems = fields.from_link(fields.to_link(values, example()))
    assert problems == []
    assert read_case(fields.to_case(example() | linked)) == read_case(fields.to_case(values))


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
        fields.parse_pairs(text)


def test_every_widget_has_its_row_in_the_glossary() -> None:
    assert set(fields.EMPTY) == set(FIELDS)
