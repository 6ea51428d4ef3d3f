"""The levers' own answer: the least intrusive class of levers that carries today's load with headroom.

Order of intrusion: nothing, settings, cache, memory, architecture. Within a class the GPUs in use win, then the
fewest of them, then the highest load carried. Nothing is weighed against anything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from calc.judge.decision import OUTCOME_NAMES, Outcome, WhatIf
from calc.judge.lever_changes import PLANNED_SHARE
from calc.judge.levers import AS_IS
from calc.latency import load_of
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.workload import Closed

INTRUSION = (Outcome.TUNE_SCHEDULING, Outcome.OPTIMISE_CACHE, Outcome.ADD_MEMORY, Outcome.RE_ARCHITECT)
"""Classes of levers, least intrusive first."""


CLEARLY_MORE = 1.1
"""Factor above the search's own grain from which a lever's highest load counts as higher."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the levers say, and what comes next."""

    outcome: Outcome
    lever: WhatIf | None
    """``None`` when nothing has to change, or nothing helps."""
    runner_up: Outcome | None
    with_headroom: bool
    """False: today's load is carried, the load planned for is not."""


def choose(what_ifs: tuple[WhatIf, ...], cost_limit: float | None = None) -> Choice | None:
    """The levers' answer; ``None`` when they were not simulated or cannot be judged."""
    as_is = next((row for row in what_ifs if row.lever == AS_IS), None)
    if as_is is None or as_is.carries is None:
        return None
    if as_is.carries:
        return Choice(outcome=Outcome.NO_CHANGE, lever=None, runner_up=_next_beyond(what_ifs), with_headroom=True)
    levers = tuple(row for row in what_ifs if row.scenario is not None and row.lever != AS_IS)
    carrying = tuple(row for row in levers if row.carries and _within(row, cost_limit))
    if not carrying and as_is.meets_slo:
        return Choice(outcome=Outcome.NO_CHANGE, lever=None, runner_up=None, with_headroom=False)
    able = carrying or tuple(row for row in levers if row.meets_slo and _within(row, cost_limit))
    if not able:
        return Choice(outcome=Outcome.RE_ARCHITECT, lever=None, runner_up=None, with_headroom=False)
    outcome = next(outcome for outcome in INTRUSION if _of(able, outcome))
    return Choice(
        outcome=outcome,
        lever=_best(_of(able, outcome)),
        runner_up=_nearly(levers, outcome) or _other(able, outcome),
        with_headroom=bool(carrying),
    )


def _within(row: WhatIf, cost_limit: float | None) -> bool:
    cost = row.cost_per_million_tokens
    return cost_limit is None or cost is None or cost <= cost_limit


def _of(rows: tuple[WhatIf, ...], outcome: Outcome) -> tuple[WhatIf, ...]:
    return tuple(row for row in rows if row.supports is outcome)


def _best(rows: tuple[WhatIf, ...]) -> WhatIf:
    def effort(row: WhatIf) -> tuple[bool, int, float]:
        gpus = row.scenario.deployment.gpu_count if row.scenario else 0
        return row.lever == "bigger-gpu", gpus, -(row.limit_load or 0.0)

    return min(rows, key=effort)


def _nearly(levers: tuple[WhatIf, ...], chosen: Outcome) -> Outcome | None:
    """A less intrusive class that meets the SLO today, only without headroom."""
    gentler = INTRUSION[: INTRUSION.index(chosen)]
    return next((outcome for outcome in gentler if any(row.meets_slo for row in _of(levers, outcome))), None)


def _other(able: tuple[WhatIf, ...], chosen: Outcome) -> Outcome | None:
    return next((outcome for outcome in INTRUSION if outcome is not chosen and _of(able, outcome)), None)


def _next_beyond(what_ifs: tuple[WhatIf, ...]) -> Outcome | None:
    """What carries clearly more than the scenario as it is, when the load grows."""
    most = (what_ifs[0].limit_load or 0.0) * CLEARLY_MORE
    more = tuple(row for row in what_ifs[1:] if (row.limit_load or 0.0) > most)
    return next((outcome for outcome in INTRUSION if _of(more, outcome)), None)


def flip_of(
    choice: Choice, what_ifs: tuple[WhatIf, ...], scenario: Scenario, break_even_hit_share: float | None = None
) -> Message | None:
    """The nearest figure at which the levers' answer changes: a hit share nobody knows yet, else a load."""
    if break_even_hit_share is not None and choice.outcome is not Outcome.NO_CHANGE:
        return msg(
            "Once {share:pct} of prompt tokens are found in the cache, prefix reuse alone carries the load: {outcome}.",
            share=break_even_hit_share,
            outcome=OUTCOME_NAMES[Outcome.OPTIMISE_CACHE],
        )
    load = load_of(scenario.workload)
    flips = [flip for flip in _load_flips(choice, what_ifs, scenario) if flip[0] > 0]
    return min(flips, key=lambda flip: abs(math.log(flip[0] / load)))[1] if flips else _memory_flip(what_ifs)


def _load_flips(choice: Choice, what_ifs: tuple[WhatIf, ...], scenario: Scenario) -> list[tuple[float, Message]]:
    """(load, sentence): upwards from the answer's own limit, downwards to each gentler answer's limit."""
    flips = []
    own = choice.lever or what_ifs[0]
    up = (own.limit_load or 0.0) * PLANNED_SHARE
    if choice.with_headroom and own.limit_load:
        flips.append((up, _beyond(shown_load(scenario, up), choice.runner_up)))
    gentler = (Outcome.NO_CHANGE, *INTRUSION)[: (Outcome.NO_CHANGE, *INTRUSION).index(choice.outcome)]
    for outcome in gentler:
        limits = [row.limit_load for row in _of(what_ifs, outcome) if row.limit_load]
        if limits:
            down = max(limits) * PLANNED_SHARE
            sentence = msg(
                "At {load} or less: {outcome}.", load=shown_load(scenario, down), outcome=OUTCOME_NAMES[outcome]
            )
            flips.append((down, sentence))
    return flips


def _beyond(load: Message, outcome: Outcome | None) -> Message:
    if outcome is None:
        return msg("Above {load}: the headroom is used up, decide anew.", load=load)
    return msg("Above {load}: {outcome}.", load=load, outcome=OUTCOME_NAMES[outcome])


def _memory_flip(what_ifs: tuple[WhatIf, ...]) -> Message | None:
    memory = what_ifs[0].memory
    if memory is None or memory.fits:
        return None
    return msg(
        "With {more:gib} more budget on each GPU it would fit as it is; then its load decides.", more=memory.over_bytes
    )


def shown_load(scenario: Scenario, load: float) -> Message:
    """A load in the unit of the scenario's arrivals."""
    if isinstance(scenario.workload.arrivals, Closed):
        return msg("{load:count} requests at once", load=load)
    return msg("{load:rate}", load=load)
