"""One combination simulated: replicas are added until the targets hold, then the fewest that do are looked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calc.cost import cost_of
from calc.errors import InputError
from calc.latency import LatencyReport, predict
from calc.latency_report import build_report
from calc.scenario import Scenario
from calc.search.floors import SEED
from calc.search.result import Found
from calc.search.screen import Ready
from calc.simulator.replica import Replica, run_replica
from calc.simulator.simulate import SimulationResult
from calc.workload import Slo

REQUESTS = 1000
"""Simulated for each, as many as a page and the command line simulate: all three show the same figures."""
EVEN = "random"
"""Routing under which replicas are alike."""
FAR = 1.1
"""A percentile this much above its target is missed; nearer ones are judged by the whole report."""
GROWTH = 1.6
"""Replicas grow by this factor while the targets are missed."""
MOST_TRIES = 12
"""Replica counts of one combination that are simulated on the way up."""
PREFILL_SHARES = (0.25, 0.5)
"""Parts of the replicas that only prefill, where prefill is split."""


@dataclass(frozen=True, kw_only=True)
class Climb:
    """What was simulated of one combination."""

    ready: Ready
    counts: tuple[int, ...]
    """Replica counts tried."""
    found: tuple[Found, ...]
    """Those that were not far off their targets."""

    @property
    def fewest(self) -> Found | None:
        """With the fewest GPUs that meet the targets."""
        return min((one for one in self.found if one.meets), key=lambda one: one.gpus, default=None)


def climb(ready: Ready, stopped: Callable[[], bool]) -> Climb:
    """Replica counts simulated until the fewest that meet the targets are known; all of them where they were given."""
    tries = _Tries(ready, stopped)
    if ready.given:
        for count in ready.given:
            tries.meets(count)
    else:
        _fewest(tries, ready)
    found = tuple(found for row in tries.found.values() for found in row)
    return Climb(ready=ready, counts=tuple(tries.found), found=found)


class _Tries:
    """Replica counts simulated so far, each once."""

    def __init__(self, ready: Ready, stopped: Callable[[], bool]) -> None:
        self._ready, self._stopped = ready, stopped
        self.found: dict[int, list[Found]] = {}

    def meets(self, count: int) -> bool:
        """Whether so many replicas meet the targets; a stopped search says yes to everything, to end soon."""
        if self._stopped():
            return True
        if count not in self.found:
            tries = [_try(self._ready, split) for split in _splits(self._ready, count)]
            self.found[count] = [found for found in tries if found is not None]
        return any(found.meets for found in self.found[count])


def _fewest(tries: _Tries, ready: Ready) -> None:
    """Up by a factor until the targets hold, back by halves. Where a request alone is close to a target the most are
    tried early: what they miss no count between meets."""
    low, most = ready.least, ready.most
    if tries.meets(low) or (ready.is_close and not tries.meets(most)):
        return
    high = min(low + 1, most)
    for _ in range(MOST_TRIES):
        if tries.meets(high):
            break
        if high == most:
            return
        low, high = high, min(math.ceil(high * GROWTH), most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tries.meets(middle) else (middle, high)


def _splits(ready: Ready, count: int) -> list[tuple[int, int]]:
    """(decode or plain replicas, prefill replicas) that make ``count``."""
    if not ready.split:
        return [(count, 0)]
    prefill = sorted({max(1, round(count * share)) for share in PREFILL_SHARES})
    return [(count - part, part) for part in prefill if count > part]


def _try(ready: Ready, split: tuple[int, int]) -> Found | None:
    """``None`` when the targets are missed by far, or the simulator refused the load."""
    decode, prefill = split
    now = ready.scenario.deployment
    serving = replace(now.serving, prefill_replicas=prefill)
    scenario = replace(ready.scenario, deployment=replace(now, replicas=decode, serving=serving))
    try:
        report = _report(ready, scenario)
    except InputError:  # a load that it cannot finish: as good as missed
        return None
    if report is None:
        return None
    return Found(
        scenario=scenario,
        latency=report,
        cost=cost_of(scenario, report),
        meets=not report.saturated and report.slo_met is not False,
        cautions=ready.cautions,
    )


def _report(ready: Ready, scenario: Scenario) -> LatencyReport | None:
    """As ``predict(scenario)`` gives it. Where replicas share the load evenly they are all alike: the one that was
    prepared for the arithmetic takes its part of it."""
    deployment, workload, slo = scenario.deployment, scenario.workload, scenario.slo
    together = deployment.serving.routing != EVEN or deployment.serving.prefill_replicas or workload.prefix_groups
    if together:
        return predict(scenario, memory=ready.memory, requests=REQUESTS)
    replica = replace(ready.replica, split=deployment.replicas * deployment.dp)
    result = run_replica(replica, workload, REQUESTS, SEED)
    return None if _is_far(result, replica, slo) else build_report(slo, replica, workload, result, replica.calibration)


def _is_far(result: SimulationResult, replica: Replica, slo: Slo) -> bool:
    """Whether a target is missed so clearly that nobody wants the report."""
    share, http_s = slo.percentile_share, replica.model.http_s
    arrival = result.arrival_s[result.measured]
    pairs = ((result.first_token_s, slo.ttft_s), (result.finished_s, slo.e2e_s))
    for times, target in pairs:
        if target is not None:
            spent = times[result.measured] - arrival
            done = spent[~np.isnan(spent)]
            if done.size and float(np.quantile(done, share)) + http_s > FAR * target:
                return True
    gap = result.gap_quantiles((share,))[0] if slo.itl_s is not None else None
    return gap is not None and slo.itl_s is not None and gap > FAR * slo.itl_s
