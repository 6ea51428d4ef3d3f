"""Cost worked out by hand: GPUs × price over what they serve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calc.cost import cost_of, incomparable
from calc.cost_lines import NOT_HARDWARE, CostLine, CostLines
from calc.cost_table import cost_rows, reservation
from calc.errors import InputError
from calc.evidence import Percentiles
from calc.latency import LatencyReport
from calc.scenario import Scenario
from calc.serving import Serving, Tier
from calc.workload import Prices
from data.case import read_case


def scenario(gpu_hour: float | None = 2.5, replicas: int = 4) -> Scenario:
    case = {
        "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm",
        "tp": 2,
        "replicas": replicas,
        "workload": {
            "prompt_tokens": {"distribution": "fixed", "value": 1000},
            "output_tokens": {"distribution": "fixed", "value": 250},
            "arrivals": {"kind": "poisson", "rate_per_s": 4},
        },
    }
    return replace(read_case(case)[0], prices=Prices(gpu_hour=gpu_hour, currency="EUR"))


def served(rate_per_s: float, *, max_rate_per_s: float = 8.0, attained: float | None = 0.8) -> LatencyReport:
    nothing = Percentiles()
    return LatencyReport(
        ttft=nothing, itl=nothing, tpot=nothing, e2e=nothing, queue_s=0.0, prefill_s=0.0, decode_s=0.0, network_s=0.0,
        request_rate_per_s=rate_per_s, offered_rate_per_s=rate_per_s, output_tokens_per_s=250 * rate_per_s,
        concurrency=1.0, kv_usage_mean_share=0.1, kv_usage_max_share=0.1, preemptions=0, preempted_share=0.0,
        bound="compute", saturated=False, max_rate_per_s=max_rate_per_s, slo_attainment_share=attained, requests=100,
        mixed_step_share=0.0, prefill_compute_share=0.5, calibration="uncalibrated",
    )  # fmt: skip


def test_eight_gpus_at_two_and_a_half_serve_four_requests_a_second() -> None:
    cost = cost_of(scenario(), served(4.0))
    assert cost is not None
    assert cost.reserved_per_hour == 20.0
    assert cost.per_request == pytest.approx(20 / (4 * 3600))
    assert cost.per_million_output_tokens == pytest.approx(20 / 3.6)
    assert cost.per_million_tokens == pytest.approx(20 / 18)
    assert cost.per_slo_request == pytest.approx(20 / (4 * 3600) / 0.8)
    assert cost.currency == "EUR"


def test_half_the_reservation_works_at_half_the_highest_rate() -> None:
    cost = cost_of(scenario(), served(4.0))
    assert cost is not None
    assert cost.used_share == 0.5
    assert cost.used_per_hour == 10.0
    assert cost.per_million_output_tokens_at_full_load == pytest.approx(20 / 3.6 / 2)


def test_without_a_price_there_is_no_cost() -> None:
    assert cost_of(scenario(gpu_hour=None), served(4.0)) is None


def test_a_free_gpu_costs_nothing() -> None:
    cost = cost_of(scenario(gpu_hour=0.0), served(4.0))
    assert cost is not None
    assert cost.per_request == 0.0


def test_without_a_load_only_the_reservation_is_known() -> None:
    cost = cost_of(scenario())
    assert cost is not None
    assert cost.reserved_per_hour == 20.0
    assert (cost.per_request, cost.per_million_tokens, cost.used_share) == (None, None, None)


@pytest.mark.parametrize("attained", [None, 0.0])
def test_no_request_within_the_targets_has_no_price(attained: float | None) -> None:
    cost = cost_of(scenario(), served(4.0, attained=attained))
    assert cost is not None
    assert cost.per_slo_request is None


def test_twice_the_replicas_at_the_same_load_cost_twice_as_much_a_request() -> None:
    one, two = cost_of(scenario(replicas=4), served(4.0)), cost_of(scenario(replicas=8), served(4.0))
    assert one is not None
    assert two is not None
    assert two.per_request == pytest.approx(2 * (one.per_request or 0))


def test_costs_are_compared_in_one_currency_only() -> None:
    dollars, euros, unknown = Prices(gpu_hour=2.0), Prices(gpu_hour=2.0, currency="EUR"), Prices()
    assert incomparable(dollars, Prices(gpu_hour=3.0)) is None
    assert incomparable(unknown, unknown) is None, "nothing is shown, so nothing is compared"
    assert "USD" in str(incomparable(dollars, euros))
    assert "one of the two" in str(incomparable(unknown, euros))


def stated(**further: Any) -> Scenario:
    base = scenario()
    return replace(base, prices=replace(base.prices, further=CostLines(**further)))


def test_what_is_stated_beside_gpus_is_added_by_hand() -> None:
    lines = (CostLine(name="monitoring", amount_per_month=730.0), CostLine(name="x", amount_once=7300.0, months=10.0))
    cost = cost_of(stated(lines=lines, spare_replicas=1), served(4.0))
    assert cost is not None
    assert cost.reserved_per_hour == 20.0
    assert cost.further_per_hour == pytest.approx(1 + 1 + 2 * 2.5)
    assert cost.per_request == pytest.approx(27 / (4 * 3600))


def test_tiers_are_paid_by_the_gib_and_month() -> None:
    base = stated(tiers=(("cpu", 3.65),))
    tier = Tier(name="cpu", bytes_per_s=5e10, capacity_bytes=200 * 2**30)
    with_tier = replace(base, deployment=replace(base.deployment, serving=Serving(tiers=(tier,))))
    cost = cost_of(with_tier, served(4.0))
    assert cost is not None
    assert cost.further_per_hour == pytest.approx(200 * 4 * 3.65 / 730)


def test_handed_over_caches_are_paid_by_the_gb() -> None:
    """Llama-3.1-8B keeps 131,072 bytes a token in BF16; 1,000 tokens × 4 a second."""
    base = stated(traffic_per_gb=0.01)
    split = Serving(prefill_replicas=1, transfer_bytes_per_s=5e10)
    cost = cost_of(replace(base, deployment=replace(base.deployment, serving=split)), served(4.0))
    assert cost is not None
    assert cost.further_per_hour == pytest.approx(131_072 * 1000 * 4 * 3600 / 1e9 * 0.01)


def test_what_nobody_stated_stays_not_stated() -> None:
    rows = {row.code: row for row in cost_rows(scenario(gpu_hour=None), served(4.0))}
    assert set(NOT_HARDWARE) <= set(rows)
    assert all(row.per_hour is None for row in rows.values())
    assert rows["adaptation"].provenance == "missing"


def test_the_rows_add_up_to_the_total() -> None:
    lines = (CostLine(name="adaptation", amount_once=3000.0, months=3.0), CostLine(name="ours", amount_per_month=99.0))
    full = stated(lines=lines, spare_replicas=2)
    cost = cost_of(full, served(4.0))
    assert cost is not None
    assert sum(row.per_hour or 0.0 for row in cost_rows(full, served(4.0))) == pytest.approx(cost.total_per_hour)


def test_the_reservation_is_work_headroom_and_what_the_tail_keeps_idle() -> None:
    parts = reservation(4.0, 6.0, 8.0)
    assert parts is not None
    assert (parts.working_share, parts.headroom_share, parts.tail_share) == (0.5, 0.25, 0.25)
    beyond = reservation(7.0, 6.0, 8.0)
    assert beyond is not None
    assert beyond.headroom_share == 0.0
    assert reservation(4.0, None, 8.0) is None


@pytest.mark.parametrize(
    "line",
    [
        {"name": "a"},
        {"name": "a", "amount_per_month": 1.0, "amount_once": 1.0, "months": 2.0},
        {"name": "a", "amount_once": 1.0},
        {"name": "a", "amount_per_month": -1.0},
        {"name": "a", "amount_per_month": float("nan")},
    ],
)
def test_a_line_without_one_clear_amount_is_refused(line: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        CostLine(**line)
