"""What no fit can be asked for: figures no hardware reaches, wrong units, points that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from calc.calibrate.calibration import MEANINGS, Factors
from calc.calibrate.observation import LATENCIES, Key, Observation, central, predicted
from calc.calibrate.prior import PEAK_SHARE
from calc.calibrate.scale import ideal, scaled
from calc.calibrate.transfer import differences, scope_of
from calc.deployment import Deployment
from calc.errors import CalibrationRefused
from calc.latency import LatencyReport
from calc.messages import msg
from calc.step.efficiency import efficiency_of
from calc.step.roofline import StepModel, step_model
from calc.workload import FloatArray

FASTER_THAN_POSSIBLE = 0.95
"""Measured time ÷ the least the hardware allows, below which a figure is refused: clocks and data sheets differ a
little."""
AT_PEAK_SHARE = 1e-3
"""A cost so near its least value is at its peak."""
FASTER_STILL = 1.15
"""Predicted ÷ measured from which a point is not explained by kernels at their peak."""
QUEUE_SHARE = 0.2
"""From this share of waiting on, E2E says little about steps."""
MOST_OVERHEAD = 10.0
"""Engine and link costs as a multiple of the usual: more is another cause, not a slower engine."""
LONGEST_NETWORK_S = 2.0
MOST_FIRST_TOKEN_STEPS = 200.0
UNIT_RATIO = 100.0
"""All latencies of a point so many times too long or short: milliseconds taken for seconds, or the reverse."""
SAME_LOAD_RATIO = {"tpot": 1.35, "itl": 1.5, "e2e": 1.35, "ttft": 2.5}
"""Equal loads on equal deployments differ by less: repeated runs of one setup scatter by up to 16 % in TPOT."""
MOST_SIGMAS = 6.0
"""Length of the fit in widths of the prior: 20 published setups lie within 2.8, chance alone within 5."""
UNEXPLAINED_LOG = 0.4
"""A decode latency still a factor 1.5 off after the fit: no factor explains the points together."""


def check_given(observations: Sequence[Observation], most: int) -> None:
    """At least one point, not too many, all of one deployment."""
    if not observations:
        raise CalibrationRefused(msg("There is no measured point to fit: give at least one."))
    if len(observations) > most:
        raise CalibrationRefused(
            msg(
                "{number:count} points are more than the {most:count} one fit takes: choose some.",
                number=len(observations),
                most=most,
            )
        )
    first = scope_of(observations[0].scenario.deployment)
    for place, one in enumerate(observations[1:], 2):
        other = scope_of(one.scenario.deployment)
        if differs := differences(first, other):
            raise CalibrationRefused(
                msg(
                    "Point {place} was measured with {name} {there}, the first with {here}: fit each deployment on "
                    "its own.",
                    place=place,
                    name=differs[0],
                    there=str(getattr(other, differs[0])),
                    here=str(getattr(first, differs[0])),
                )
            )


def check_figures(observations: Sequence[Observation], before: Sequence[LatencyReport]) -> None:
    """Something was measured, in the right unit, no faster than possible, and equal loads gave like figures."""
    if not any(one.usable() for one in observations):
        raise CalibrationRefused(
            msg(
                "No point has a figure that tells about costs: give TTFT, TPOT, ITL or E2E, or the throughput of a "
                "closed loop."
            )
        )
    for place, (one, report) in enumerate(zip(observations, before, strict=True), 1):
        _check_unit(place, one.usable(), report)
        _check_floor(place, one)
    for (left, one), (right, other) in combinations(enumerate(observations, 1), 2):
        if one.scenario.workload == other.scenario.workload and one.scenario.deployment == other.scenario.deployment:
            _check_alike(left, right, one.usable(), other.usable())


def _check_unit(place: int, figures: dict[Key, float], report: LatencyReport) -> None:
    ratios = [
        value / measured_as
        for key, value in figures.items()
        if key[0] in LATENCIES and (measured_as := predicted(report, key))
    ]
    if not ratios:
        return
    if min(ratios) > UNIT_RATIO or max(ratios) < 1 / UNIT_RATIO:
        raise CalibrationRefused(
            msg(
                "The latencies of point {place} are {ratio:.3g} times those predicted: check whether they are "
                "milliseconds or seconds.",
                place=place,
                ratio=float(np.median(ratios)),
            )
        )


def _floor(observation: Observation) -> tuple[float, float]:
    """Least possible TTFT and time per token in seconds, with every peak reached and no other cost.

    TTFT: the shortest prompt's fresh tokens alone in a step. A token: one sequence without context; speculation yields
    several tokens a step.
    """
    scenario = observation.scenario
    deployment, workload = scenario.deployment, scenario.workload
    model = step_model(deployment, efficiency=ideal(efficiency_of(deployment.gpu)), http=False)
    prompt = max(1.0, _shortest(observation) * (1 - workload.prefix_hit_share - workload.offload_hit_share))
    per_step = 1 + (deployment.serving.accepted_tokens or deployment.spec_tokens)
    return float(_prefill_s(model, prompt)), model.decode_s(1.0, 1.0) / per_step


def _prefill_s(model: StepModel, prompt_tokens: float) -> float:
    return float(model.prefill_only_s(np.array([prompt_tokens]), np.zeros(1))[0])


def _shortest(observation: Observation) -> float:
    """Prompt tokens of the shortest request."""
    workload = observation.scenario.workload
    kinds = [kind.prompt_tokens or workload.prompt_tokens for kind in workload.classes] or [workload.prompt_tokens]
    return min(kind.quantile(0.0) for kind in kinds)


def _check_floor(place: int, observation: Observation) -> None:
    first_s, token_s = _floor(observation)
    figures = observation.usable()
    for latency, floor_s in (("ttft", first_s), ("tpot", token_s)):
        for key, value in central(figures, latency):
            if value < FASTER_THAN_POSSIBLE * floor_s:
                raise CalibrationRefused(
                    msg(
                        "{latency} {statistic} of point {place} is {value:ms}, but the GPU's peaks allow no less than "
                        "{floor:ms}: check model, GPU, lengths and prefix hits of the point.",
                        latency=latency.upper(),
                        statistic=key[1],
                        place=place,
                        value=value,
                        floor=floor_s,
                    )
                )


def _check_alike(left: int, right: int, one: dict[Key, float], other: dict[Key, float]) -> None:
    for latency, most in SAME_LOAD_RATIO.items():
        for key, value in central(one, latency):
            if key in other and max(value / other[key], other[key] / value) > most:
                raise CalibrationRefused(
                    msg(
                        "Points {left} and {right} are the same load, but their {latency} is {first:ms} and "
                        "{second:ms}: leave one of them out.",
                        left=left,
                        right=right,
                        latency=latency.upper(),
                        first=value,
                        second=other[key],
                    )
                )


def check_factors(deployment: Deployment, factors: Factors) -> None:
    """No overhead beyond ten times the usual."""
    shares = scaled(efficiency_of(deployment.gpu), factors)
    for code in ("step", "sequence", "request", "link"):
        times = getattr(factors, code)
        if times > MOST_OVERHEAD:
            raise CalibrationRefused(
                msg(
                    "The points would need {times:.3g} times the usual cost for {what}: something else is slow; "
                    "check model, GPU and load of the points.",
                    times=times,
                    what=MEANINGS[code],
                )
            )
    _check_first_token(shares.http_s, factors.first_token_steps)


def _check_first_token(network_s: float, steps: float) -> None:
    if network_s > LONGEST_NETWORK_S or steps > MOST_FIRST_TOKEN_STEPS:
        raise CalibrationRefused(
            msg(
                "The points would need {network:ms} outside the engine and {steps:count} steps before each first "
                "token: the requests waited for something else; check load and lengths of the points.",
                network=network_s,
                steps=max(0.0, steps),
            )
        )


def check_distance(z: FloatArray) -> None:
    """Many constants a little beyond belief are as unlikely as one far beyond it."""
    sigmas = float(np.sqrt(z @ z))
    if sigmas > MOST_SIGMAS:
        raise CalibrationRefused(
            msg(
                "The fitted constants lie {sigmas:.2g} standard deviations from any deployment measured so far: check "
                "model, GPU, lengths and load of the points.",
                sigmas=sigmas,
            )
        )


def check_peaks(
    factors: Factors, least: Mapping[str, float], observations: Sequence[Observation], after: Sequence[LatencyReport]
) -> None:
    """Points that are faster still when a kernel is at its peak were measured on something else."""
    for code, cost in least.items():
        if getattr(factors, code) > cost * (1 + AT_PEAK_SHARE):
            continue
        for place, (one, report) in enumerate(zip(observations, after, strict=True), 1):
            for key, measured in _judged(one, report):
                found = predicted(report, key)
                if found is not None and found > measured * FASTER_STILL:
                    raise CalibrationRefused(
                        msg(
                            "{latency} of point {place}, {measured:ms}, would need more than {share:pct} of the peak "
                            "for {what}: check model, GPU and load of the point.",
                            latency=key[0].upper(),
                            place=place,
                            measured=measured,
                            share=PEAK_SHARE,
                            what=MEANINGS[code],
                        )
                    )


def _judged(observation: Observation, report: LatencyReport) -> Iterator[tuple[Key, float]]:
    """The figures of decode that a fit must explain: TPOT, else E2E without a queue, else ITL."""
    figures = observation.usable()
    unqueued = report.queue_s < QUEUE_SHARE * (report.e2e.mean_s or 0.0)
    for latency in ("tpot", "e2e", "itl"):
        if latency == "e2e" and not unqueued:
            continue
        if found := tuple(central(figures, latency)):
            yield from found
            return


def check_agreement(observations: Sequence[Observation], after: Sequence[LatencyReport]) -> None:
    """What the fit cannot bring together contradicts each other, or was not measured on what the scenario says."""
    for place, (one, report) in enumerate(zip(observations, after, strict=True), 1):
        for key, measured in _judged(one, report):
            found = predicted(report, key)
            if found is not None and abs(np.log(found / measured)) > UNEXPLAINED_LOG:
                raise CalibrationRefused(
                    msg(
                        "No factors bring the points together: {latency} of point {place} was measured as "
                        "{measured:ms}, and the best fit says {found:ms}; check the points or leave it out.",
                        latency=key[0].upper(),
                        place=place,
                        measured=measured,
                        found=found,
                    )
                )
