"""Why a load point is as fast as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calc.latency import predict
from calc.memory import estimate_memory
from calc.scenario import Scenario
from calc.step.view import StepView, step_view
from data.case import example_case, read_case


def example() -> Scenario:
    return read_case(example_case())[0]


def view(scenario: Scenario) -> StepView:
    return step_view(scenario, estimate_memory(scenario.deployment), predict(scenario, requests=400))


def test_the_parts_of_the_step_make_it_whole() -> None:
    assert sum(view(example()).shares.values()) == pytest.approx(1.0)


def test_prefill_raises_the_intensity_of_a_step() -> None:
    seen = view(example())
    assert seen.mixed_flop_per_byte > seen.decode_flop_per_byte


def test_the_h100_balances_where_its_data_sheet_says() -> None:
    assert view(example()).ridge_flop_per_byte == pytest.approx(989e12 / 3.35e12, rel=1e-6)


def test_twice_the_bandwidth_leaves_less_waiting_for_memory() -> None:
    scenario = example()
    gpu = scenario.deployment.gpu
    faster = replace(gpu, bandwidth_bytes_per_s=2 * (gpu.bandwidth_bytes_per_s or 0))
    quick = replace(scenario, deployment=replace(scenario.deployment, gpu=faster))
    assert view(quick).shares["memory_bandwidth"] < view(scenario).shares["memory_bandwidth"]
