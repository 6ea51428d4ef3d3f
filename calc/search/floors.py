"""What no queue and no neighbour can make better: the latency of a request alone on an idle replica.

Floors come from the step model, so a combination that misses a target even alone needs no simulation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.engine import resolve
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.search.result import Reason
from calc.simulator.arrivals import lengths
from calc.step.roofline import StepModel
from calc.workload import FloatArray, IntArray, Slo, Workload

SAMPLE = 512
"""Requests whose floor is worked out: a P95 to a percentile."""
SLACK = 0.97
"""Share of the floor held against the target: the sample's own error."""
CLOSE = 0.8
"""Part of a target from which a floor counts as close to it."""
SEED = 1


@dataclass(frozen=True, kw_only=True)
class Floors:
    """Seconds at the SLO's percentile, of requests alone on an idle replica."""

    ttft_s: float
    itl_s: float
    e2e_s: float

    def close(self, slo: Slo) -> bool:
        """Whether one of them takes most of its target."""
        pairs = ((self.ttft_s, slo.ttft_s), (self.itl_s, slo.itl_s), (self.e2e_s, slo.e2e_s))
        return any(target is not None and floor > CLOSE * target for floor, target in pairs)


class Drawn:
    """Lengths of a load, drawn once for all combinations that cut them alike."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._kept: dict[tuple[int, bool], tuple[IntArray, IntArray, IntArray]] = {}

    def of(self, longest_tokens: int, reuse: bool) -> tuple[IntArray, IntArray, IntArray]:
        """Prompt, output and cached tokens. Two threads may draw the same numbers; they are equal."""
        key = (longest_tokens, reuse)
        if key not in self._kept:
            self._kept[key] = lengths(self._workload, SAMPLE, longest_tokens, SEED, reuse=reuse)
        return self._kept[key]


def floors(model: StepModel, scenario: Scenario, drawn: Drawn) -> Floors:
    """Prefill alone, one decode step alone, and both with the steps of the whole output.

    Everything outside the GPU that could be hit is taken as hit for nothing, and drafts as accepted.
    """
    deployment, slo = scenario.deployment, scenario.slo
    settings = resolve(deployment)
    prompt, output, cached = drawn.of(settings.max_model_len_tokens, settings.prefix_caching)
    fetched = np.floor(prompt * scenario.workload.offload_hit_share).astype(np.int64)
    found = np.minimum(cached + fetched, prompt - 1)
    first: FloatArray = model.prefill_only_s(prompt.astype(np.float64), found.astype(np.float64)) + model.http_s
    step_s = model.decode_s(1.0, float(prompt.min()))
    accepted = deployment.serving.accepted_tokens if deployment.spec_method else None
    rest = (output - 1) * step_s / (1 + (accepted or 0.0))
    share = slo.percentile_share
    return Floors(
        ttft_s=SLACK * float(np.quantile(first, share)),
        itl_s=SLACK * step_s,
        e2e_s=SLACK * float(np.quantile(first + rest, share)),
    )


def beyond(found: Floors, slo: Slo, what: str) -> tuple[Reason, Message] | None:
    """The target that even a request alone misses."""
    pairs = (
        (Reason.TTFT, "TTFT", found.ttft_s, slo.ttft_s),
        (Reason.ITL, "ITL", found.itl_s, slo.itl_s),
        (Reason.E2E, "E2E", found.e2e_s, slo.e2e_s),
    )
    for reason, metric, floor_s, target_s in pairs:
        if target_s is not None and floor_s > target_s:
            return reason, msg(
                "{what}: {metric} of a request alone is {floor:ms}, the target {target:ms}.",
                what=what,
                metric=metric,
                floor=floor_s,
                target=target_s,
            )
    return None
