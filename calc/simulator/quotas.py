"""What quotas of request classes leave of the highest stable rate: a class that may run only so many waits for ever."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calc.simulator.contract import SchedulerRules
from calc.simulator.draws import Drawn
from calc.simulator.stability import Demand, Limits, mean_step_s
from calc.step.roofline import StepModel


def within_quotas(model: StepModel, rules: SchedulerRules, demand: Demand, drawn: Drawn, limits: Limits) -> Limits:
    """The limits, lowered to λ = q / (p·S) of the tightest class: quota q, share p of the requests, service time S.

    S is taken with no others running beside the class, so the true limit is at most this.
    """
    caps = [
        rule.max_running / (share * _service_s(model, demand, drawn, place, rule.max_running))
        for place, rule in enumerate(rules.classes)
        if rule.max_running and drawn.class_index is not None and (share := _share(drawn, place)) > 0
    ]
    lowest = min(caps, default=limits.max_rate_per_s)
    if lowest >= limits.max_rate_per_s:
        return limits
    return replace(limits, sequences_per_s=lowest, max_rate_per_s=lowest, binds="sequences")


def _share(drawn: Drawn, place: int) -> float:
    return float(np.mean(drawn.class_index == place))


def _service_s(model: StepModel, demand: Demand, drawn: Drawn, place: int, running: int) -> float:
    """Seconds a request of the class runs beside the others that its quota allows."""
    own = drawn.class_index == place
    mean = Demand.of(drawn.prompt[own], drawn.output[own], drawn.cached[own])
    mean = replace(mean, verified=demand.verified, gained=demand.gained)
    batch = np.array([min(float(running), float(model.max_seqs))])
    prefill_s = model.prefill_only_s(np.array([mean.prompt]), np.array([mean.prompt - mean.fresh]))
    return float(prefill_s[0] + (mean.steps - 1) * mean_step_s(model, mean, batch)[0])
