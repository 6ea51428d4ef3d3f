"""One combination by arithmetic alone: can it exist, does it fit, can it meet the targets, how few replicas carry the
load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from calc.deployment import MAX_GPUS
from calc.errors import InputError
from calc.latency import load_of
from calc.memory import MemoryReport, estimate_memory
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.search.floors import SEED, Drawn, beyond, floors
from calc.search.result import Reason
from calc.search.space import Combination, Space, cautions, deployed
from calc.simulator.replica import Replica, prepare
from calc.step.roofline import step_model
from calc.workload import Closed, Prices


@dataclass(frozen=True, kw_only=True)
class Out:
    """Ruled out, and why in one sentence."""

    reason: Reason
    example: Message


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Worth simulating: one replica of it, and how many there may be."""

    scenario: Scenario
    """With one replica."""
    memory: MemoryReport
    replica: Replica
    cautions: tuple[Message, ...]
    is_close: bool
    """Whether a request alone comes close to a target, so that perhaps no number of replicas meets it."""
    split: bool
    least: int
    """Fewest replicas that are stable; prefill replicas included where prefill is split."""
    most: int
    given: tuple[int, ...] = ()
    """Replica counts asked for; empty = free."""

    @property
    def least_gpus(self) -> int:
        """GPUs of the smallest deployment of this kind."""
        return self.least * self.scenario.deployment.gpus_per_replica

    @property
    def least_per_hour(self) -> float | None:
        """Price of those GPUs."""
        price = self.scenario.prices.gpu_hour
        return None if price is None else self.least_gpus * price


def screened(
    scenario: Scenario, chosen: Combination, space: Space, prices: Mapping[str, Prices], drawn: Drawn
) -> Ready | Out:
    """The combination as a scenario to simulate, or why it needs no simulation."""
    what = _named(chosen)
    if (out := _before(scenario, chosen, space, what)) is not None:
        return out
    try:
        deployment = deployed(scenario, chosen, space)
        memory = estimate_memory(deployment)
    except InputError as error:
        return Out(reason=Reason.SPLIT, example=error.message)
    if not memory.fits or memory.num_blocks <= 0:
        return Out(
            reason=Reason.MEMORY,
            example=msg("{what}: {over:gib} over the budget of a GPU.", what=what, over=memory.over_bytes),
        )
    alone = replace(
        scenario,
        deployment=deployment,
        prices=price_for(scenario, chosen, prices),
        workload=replace(scenario.workload, num_requests=None),
    )
    try:
        calibrated = prepare(alone, memory, SEED) if alone.calibration else None
        model = calibrated.model if calibrated else step_model(deployment, http=alone.workload.http)
        found = floors(model, alone, drawn)
        if (missed := beyond(found, scenario.slo, what)) is not None:
            return Out(reason=missed[0], example=missed[1])
        replica = calibrated or prepare(alone, memory, SEED)
    except InputError as error:
        return Out(reason=Reason.UNKNOWN, example=error.message)
    known = _Known(memory=memory, replica=replica, is_close=found.close(scenario.slo), what=what)
    return _counted(scenario, alone, known, chosen, space)


def price_for(scenario: Scenario, chosen: Combination, prices: Mapping[str, Prices]) -> Prices:
    """The price of the combination's own GPU type; another's is never taken. What is paid beside GPUs stays."""
    now = scenario.prices
    if chosen.gpu == scenario.deployment.gpu and now.gpu_hour is not None:
        return now
    return replace(prices.get(chosen.gpu.id, Prices(currency=now.currency)), further=now.further)


def _before(scenario: Scenario, chosen: Combination, space: Space, what: str) -> Out | None:
    """What needs no arithmetic: too many GPUs, no link between them, no memory for the weights of the narrowest."""
    if chosen.gpus_per_replica * (1 + chosen.split) > space.most_gpus:
        return Out(reason=Reason.GPUS, example=msg("{what}: one replica takes more GPUs than allowed.", what=what))
    if chosen.gpus_per_replica > 1 and chosen.gpu.link_bytes_per_s is None:
        return Out(
            reason=Reason.UNKNOWN,
            example=msg("{gpu}: the link between GPUs is not known, so only TP 1 can be judged.", gpu=chosen.gpu.name),
        )
    if chosen.gpu.bandwidth_bytes_per_s is None or not chosen.gpu.flops_per_s:
        return Out(
            reason=Reason.UNKNOWN,
            example=msg("{gpu}: memory bandwidth or peak is not known, so latency is not.", gpu=chosen.gpu.name),
        )
    if chosen.split and scenario.deployment.serving.transfer_bytes_per_s is None:
        return Out(
            reason=Reason.UNKNOWN,
            example=msg("Split prefill needs the bandwidth between replicas: enter its GB/s."),
        )
    return None


def _named(chosen: Combination) -> str:
    stages = f" PP {chosen.pp}" if chosen.pp > 1 else ""
    return f"{chosen.gpu.name} TP {chosen.tp}{stages}"


@dataclass(frozen=True, kw_only=True)
class _Known:
    memory: MemoryReport
    replica: Replica
    is_close: bool
    what: str


def _counted(base: Scenario, alone: Scenario, known: _Known, chosen: Combination, space: Space) -> Ready | Out:
    """The fewest replicas below the stability limit, and the most that may be tried."""
    most = min(space.most_gpus, MAX_GPUS) // chosen.gpus_per_replica
    least = 1 + chosen.split
    if isinstance(alone.workload.arrivals, Closed):
        most = min(most, max(alone.workload.arrivals.concurrency, least))
    else:
        each = known.replica.limits.max_rate_per_s * chosen.dp
        least = max(least, math.floor(load_of(alone.workload) / each) + 1)
    given = tuple(sorted(count for count in space.replicas if count * chosen.gpus_per_replica <= space.most_gpus))
    if space.replicas and (not given or given[-1] < least):
        return Out(
            reason=Reason.LOAD if given else Reason.GPUS,
            example=msg("{what}: {least:count} replicas carry the load at the least.", what=known.what, least=least),
        )
    if least > most and not given:
        return Out(
            reason=Reason.GPUS,
            example=msg(
                "{what}: the load needs {needed:count} GPUs, {most:count} are allowed.",
                what=known.what,
                needed=least * chosen.gpus_per_replica,
                most=space.most_gpus,
            ),
        )
    return Ready(
        scenario=alone,
        memory=known.memory,
        replica=known.replica,
        cautions=cautions(base, alone.deployment),
        is_close=known.is_close,
        split=chosen.split,
        least=least,
        most=most,
        given=tuple(count for count in given if count >= least),
    )
