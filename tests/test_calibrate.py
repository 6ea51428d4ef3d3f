"""Fits of measured points: known factors come back, silence stays silence, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.calibrate.calibration import CODES, Calibration, Factors
from calc.calibrate.constants import constants_of
from calc.calibrate.fit import Fit, calibrate
from calc.calibrate.observation import Measured, Observation
from calc.calibrate.prior import WIDTHS
from calc.calibrate.probed import calibrate_probe
from calc.calibrate.scale import factor_of, ideal, scaled
from calc.calibrate.solve import solve
from calc.calibrate.transfer import applied, scope_of
from calc.errors import CalibrationRefused, InputError
from calc.evidence import Percentiles
from calc.latency import LatencyReport, predict, sweep
from calc.scenario import Scenario
from calc.step.efficiency import Efficiency, efficiency_of
from calc.step.roofline import step_model
from data.case import read_case

CASE: dict[str, Any] = {
    "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm",
    "engine": "vllm",
    "engine_version": "0.15.1",
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 500, "p95": 1500},
        "output_tokens": {"distribution": "lognormal", "p50": 100, "p95": 200},
        "arrivals": {"kind": "poisson", "rate_per_s": 8},
    },
}
LOADS = (1, 8, 20, 35)


def scenario(rate_per_s: float = 8, **more: Any) -> Scenario:
    arrivals = {"kind": "poisson", "rate_per_s": rate_per_s}
    return read_case({**CASE, "workload": {**CASE["workload"], "arrivals": arrivals}, **more})[0]


def at(asked: Scenario, factors: Factors) -> Scenario:
    scope = scope_of(asked.deployment)
    return replace(asked, calibration=Calibration(source="truth", date="", points=1, scope=scope, factors=factors))


def simulated(factors: Factors, loads: Sequence[float] = LOADS, *, seed: int = 1, **more: Any) -> list[Observation]:
    """What a server with these costs would show."""
    asked = [scenario(load, **more) for load in loads]
    return [Observation(scenario=one, measured=means(predict(at(one, factors), seed=seed))) for one in asked]


def means(report: LatencyReport) -> Measured:
    return Measured(
        ttft=Percentiles(mean_s=report.ttft.mean_s),
        tpot=Percentiles(mean_s=report.tpot.mean_s),
        e2e=Percentiles(mean_s=report.e2e.mean_s),
    )


def measured(**means_s: float) -> Measured:
    return Measured(**{name: Percentiles(mean_s=value) for name, value in means_s.items()})


def value(fit: Fit, code: str) -> float:
    return next(one.value for one in fit.factors if one.code == code)


TRUTH = Factors(memory=1.15, sequence=1.6, first_token_steps=2.0)


def test_known_factors_come_back_from_simulated_runs() -> None:
    fit = calibrate(simulated(TRUTH, seed=1))
    assert value(fit, "memory") == pytest.approx(1.15, rel=0.06)
    assert value(fit, "sequence") == pytest.approx(1.6, rel=0.35)
    assert value(fit, "first_token_steps") == pytest.approx(2.0, abs=0.5)
    assert not {"memory", "first_token_steps"} & set(fit.not_identified)


def test_known_factors_lie_in_their_intervals_under_other_random_numbers() -> None:
    fit = calibrate(simulated(TRUTH, seed=7))
    for one in fit.factors:
        assert one.low <= one.value <= one.high
        if one.identified:
            assert one.low <= getattr(TRUTH, one.code) <= one.high


def test_a_fit_to_two_loads_predicts_the_others() -> None:
    fit = calibrate(simulated(TRUTH, (1, 20)))
    for load in (8, 35):
        truth, ours = predict(at(scenario(load), TRUTH)), predict(replace(scenario(load), calibration=fit.calibration))
        plain = predict(scenario(load))
        for latency in ("ttft", "tpot", "e2e"):
            wanted = getattr(truth, latency).mean_s
            assert abs(getattr(ours, latency).mean_s / wanted - 1) < 0.03
            assert abs(getattr(ours, latency).mean_s / wanted - 1) < abs(getattr(plain, latency).mean_s / wanted - 1)


def test_runs_that_are_as_assumed_change_nothing() -> None:
    fit = calibrate(simulated(Factors()))
    for code in CODES:
        assert value(fit, code) == pytest.approx(getattr(Factors(), code), abs=0.02)
    assert all(one.error_share < 0.01 for one in fit.leave_one_out or ())


def test_one_point_tells_little_and_says_so() -> None:
    one, four = calibrate(simulated(TRUTH, (8,))), calibrate(simulated(TRUTH))
    assert one.leave_one_out is None
    assert all(residual.left_out is None for residual in one.residuals)
    assert len(one.not_identified) > len(four.not_identified)
    assert {"compute", "request", "network", "link"} <= set(one.not_identified)


def test_what_the_points_cannot_tell_stays_near_what_is_assumed() -> None:
    fit = calibrate(simulated(TRUTH, (8,)))
    assert value(fit, "link") == 1.0
    for code in set(fit.not_identified) - {"first_token_steps"}:
        assert abs(np.log(value(fit, code))) < WIDTHS[code]


def test_a_point_without_first_tokens_tells_nothing_of_them() -> None:
    points = simulated(TRUTH)
    only_tpot = [replace(one, measured=Measured(tpot=one.measured.tpot)) for one in points]
    assert {"first_token_steps", "network"} <= set(calibrate(only_tpot).not_identified)


def test_leaving_a_point_out_is_worse_than_the_fit_and_better_than_no_fit() -> None:
    fit = calibrate(simulated(TRUTH, seed=3))
    assert fit.leave_one_out is not None
    for one in fit.leave_one_out:
        assert one.error_share < one.before_share
        assert one.figures == len(LOADS)


def test_one_bad_figure_bends_little() -> None:
    points = simulated(TRUTH)
    wrong = replace(points[1], measured=measured(ttft=3.0, tpot=points[1].measured.tpot.mean_s or 0))
    fit = calibrate([points[0], wrong, *points[2:]])
    assert value(fit, "memory") == pytest.approx(1.15, rel=0.08)


def test_the_same_points_give_the_same_fit() -> None:
    assert calibrate(simulated(TRUTH, (1, 20))) == calibrate(simulated(TRUTH, (1, 20)))


def test_a_calibration_names_source_day_and_number_of_points() -> None:
    days = ("2026-11-02", "2026-11-01")
    runs = zip(simulated(TRUTH, (1, 20)), days, strict=True)
    points = [replace(one, source="runs.json", date=day) for one, day in runs]
    calibration = calibrate(points).calibration
    assert (calibration.name, calibration.points) == ("runs.json, 2026-11-02", 2)
    assert predict(replace(scenario(), calibration=calibration)).calibration == "runs.json, 2026-11-02"
    assert predict(scenario()).calibration == "uncalibrated"
    found = sweep(replace(scenario(), calibration=calibration))
    assert {report.calibration for report in found.reports} == {calibration.name}


def spoiled(**means_s: float) -> list[Observation]:
    return [Observation(scenario=scenario(), measured=measured(**means_s))]


REFUSED = {
    "no points": ([], "no measured point"),
    "no figure": ([Observation(scenario=scenario(), measured=Measured())], "figure that tells"),
    "only the rate of an open loop": (
        [Observation(scenario=scenario(), measured=Measured(output_tokens_per_s=800.0))],
        "figure that tells",
    ),
    "milliseconds as seconds": (spoiled(ttft=30.0, tpot=8.0), "milliseconds or seconds"),
    "seconds as milliseconds": (spoiled(ttft=3e-5, tpot=8e-6), "milliseconds or seconds"),
    "faster than memory": (spoiled(tpot=0.003), "no less than"),
    "a first token faster than its prompt": (spoiled(ttft=0.003, tpot=0.008), "no less than"),
    "ten times the overhead": (spoiled(tpot=0.05), "usual cost|best fit|standard deviations"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_silly_fits_are_refused_in_one_sentence(name: str) -> None:
    points, reason = REFUSED[name]
    with pytest.raises(CalibrationRefused, match=reason) as refused:
        calibrate(points)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_two_contradictory_points_are_refused_by_their_numbers() -> None:
    points = [Observation(scenario=scenario(), measured=measured(tpot=tpot)) for tpot in (0.008, 0.014)]
    with pytest.raises(CalibrationRefused, match="Points 1 and 2 are the same load"):
        calibrate(points)


def test_points_that_no_cost_explains_are_refused() -> None:
    """Twice as fast under a hundred times the load."""
    points = [
        Observation(scenario=scenario(0.5), measured=measured(tpot=0.030)),
        Observation(scenario=scenario(40), measured=measured(tpot=0.0075)),
    ]
    with pytest.raises(
        CalibrationRefused, match=r"No factors bring the points together|usual cost|of the peak|standard deviations"
    ):
        calibrate(points)


def test_points_of_two_deployments_are_refused_by_what_differs() -> None:
    other = Observation(scenario=scenario(gpu="a100-80-sxm"), measured=measured(tpot=0.02))
    with pytest.raises(CalibrationRefused, match="gpu a100-80-sxm"):
        calibrate([*simulated(TRUTH, (8,)), other])


def test_too_many_points_are_refused() -> None:
    with pytest.raises(CalibrationRefused, match="choose some"):
        calibrate(simulated(Factors(), (8,)) * 51)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_hostile_figures_are_refused_where_they_are_given(bad: float) -> None:
    with pytest.raises(InputError, match="TTFT mean"):
        measured(ttft=bad)


@pytest.mark.parametrize("bad", [0.0, -2.0, float("nan"), float("inf"), 1e6])
def test_hostile_factors_are_refused(bad: float) -> None:
    with pytest.raises(InputError):
        Factors(memory=bad)


def test_every_cost_of_the_step_belongs_to_one_factor() -> None:
    apart = {"row", "is_alike", "expert_bandwidth_share", "expert_evenness"}
    costs = {one.name for one in fields(Efficiency)} - apart
    assert {name for name in costs if factor_of(name) is None} == set()
    assert {factor_of(name) for name in costs} == set(CODES) - {"first_token_steps"}
    assert all(name.endswith(("_s", "_share")) for name in costs)


@pytest.mark.parametrize("code", [code for code in CODES if code != "first_token_steps"])
@pytest.mark.parametrize("tp", [1, 2])
def test_a_higher_cost_never_shortens_a_step(code: str, tp: int) -> None:
    deployment = scenario(tp=tp).deployment
    shares = efficiency_of(deployment.gpu)
    plain, dearer = (
        step_model(deployment, efficiency=scaled(shares, Factors(**{code: times}))) for times in (1.0, 2.0)
    )
    prompt = np.array([2000.0])
    gained = dearer.decode_s(16, 16_000) - plain.decode_s(16, 16_000)
    gained_first = float((dearer.prefill_only_s(prompt, prompt * 0) - plain.prefill_only_s(prompt, prompt * 0))[0])
    assert min(gained, gained_first) >= 0
    expected = {"link": tp > 1, "network": False}.get(code, True)
    assert (max(gained, gained_first) > 0) is expected
    assert (dearer.http_s > plain.http_s) is (code == "network")


def test_no_machine_is_faster_than_the_ideal_one() -> None:
    deployment = scenario().deployment
    shares = efficiency_of(deployment.gpu)
    best = step_model(deployment, efficiency=ideal(shares), http=False)
    bandwidth = deployment.gpu.bandwidth_bytes_per_s or 0
    assert best.decode_s(1, 1) == pytest.approx(best.weight_bytes / bandwidth, rel=0.06)
    assert step_model(deployment).decode_s(1, 1) > best.decode_s(1, 1)


CHANGES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "the same": ({}, set(CODES)),
    "another length": ({"max_model_len": 9000}, set(CODES)),
    "another version": ({"engine_version": "0.11.0"}, set(CODES)),
    "another split": ({"tp": 2}, {"memory", "compute", "network", "first_token_steps"}),
    "another KV format": ({"kv_dtype": "fp8"}, {"memory", "compute", "network", "first_token_steps"}),
    "another weight format": ({"weight_dtype": "fp8"}, {"network", "first_token_steps"}),
    "another model": ({"model": "Qwen/Qwen3-14B"}, {"network", "first_token_steps"}),
    "another GPU": ({"gpu": "a100-80-sxm"}, set()),
    "another engine": ({"engine": "sglang", "engine_version": None}, set()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_what_transfers_is_used_elsewhere_and_a_note_says_so(change: str) -> None:
    doubled = dict.fromkeys(CODES, 2.0)
    there = at(scenario(), Factors(**doubled)).calibration
    more, kept = CHANGES[change]
    deployment = scenario(**more).deployment
    found = applied(there, deployment)
    shares = efficiency_of(deployment.gpu)
    expected = scaled(shares, Factors(**dict.fromkeys(kept, 2.0)))
    assert (found.efficiency or shares) == expected
    assert found.first_token_steps == (2.0 if "first_token_steps" in kept else 0.0)
    assert (found.name == "uncalibrated") is (not kept)
    assert bool(found.notes) is (change not in ("the same", "another length"))
    for note in predict(replace(scenario(**more), calibration=there), requests=50).notes:
        assert str(note)


def test_late_first_tokens_shift_a_stream_and_leave_its_gaps() -> None:
    plain, late = predict(scenario()), predict(at(scenario(), Factors(first_token_steps=3.0)))
    assert late.tpot == plain.tpot
    assert late.itl == plain.itl
    delay = 3 * (plain.itl.mean_s or 0)
    assert late.ttft.mean_s == pytest.approx((plain.ttft.mean_s or 0) + delay)
    assert late.e2e.mean_s == pytest.approx((plain.e2e.mean_s or 0) + delay)
    parts = late.queue_s + late.prefill_s + late.decode_s + late.network_s
    assert late.e2e.mean_s == pytest.approx(parts)


def test_constants_are_told_in_their_own_units() -> None:
    deployment = scenario().deployment
    fit = calibrate(simulated(TRUTH))
    found = {one.code: one for one in constants_of(fit.factors, deployment)}
    assert "link" not in found
    assert found["memory"].unit == "share"
    assert found["memory"].fitted == pytest.approx(found["memory"].assumed / value(fit, "memory"))
    assert found["memory"].low <= found["memory"].fitted <= found["memory"].high <= 1.2
    assert found["step"].fitted == pytest.approx(found["step"].assumed * value(fit, "step"))
    assert found["first_token_steps"].fitted == value(fit, "first_token_steps")


def test_a_probe_moves_memory_and_computing_alone() -> None:
    deployment = scenario().deployment
    gpu = deployment.gpu
    fit = calibrate_probe(
        deployment,
        dtype="bf16",
        bytes_per_s=0.7 * (gpu.bandwidth_bytes_per_s or 0),
        flops_per_s=0.7 * gpu.flops_per_s["bf16"],
        source="probe",
    )
    assert value(fit, "memory") > 1
    assert value(fit, "compute") > 1
    assert set(fit.not_identified) == set(CODES) - {"memory", "compute"}
    assert fit.leave_one_out is None


@pytest.mark.parametrize("share", [0.01, 1.2])
def test_a_probe_of_another_gpu_is_refused(share: float) -> None:
    deployment = scenario().deployment
    with pytest.raises(CalibrationRefused, match="of the peak"):
        calibrate_probe(
            deployment,
            dtype="bf16",
            bytes_per_s=share * (deployment.gpu.bandwidth_bytes_per_s or 0),
            flops_per_s=None,
            source="probe",
        )


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(-2, 2), min_size=2, max_size=4), st.integers(0, 1000))
def test_the_solver_finds_the_ridge_minimum_of_a_linear_model(truth: list[float], seed: int) -> None:
    """Far within the robust range the minimum is that of ridge regression."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(8, len(truth))) * 0.3
    target = matrix @ np.array(truth)
    found = solve(lambda z: matrix @ z - target, np.zeros(len(truth)), 1e4)
    expected = np.linalg.solve(matrix.T @ matrix + np.eye(len(truth)), matrix.T @ target)
    assert found.z == pytest.approx(expected, abs=0.02)
