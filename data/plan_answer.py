"""The evaluation plan of a scenario as JSON Lines: a cell a line with its commands, and what to check afterwards."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from calc.errors import UnknownName
from calc.messages import Message, msg
from calc.poc.load_command import LoadCommand
from calc.poc.plan import WHY, Plan, PlannedCell, PlanSet, plan, plan_notes
from calc.poc.repetition import HIT_TOLERANCE
from calc.poc.script import GPU_LOG, Target, model_of, runs_of
from calc.poc.tools import RESULTS, TOOLS, remarks
from calc.scenario import Scenario
from calc.units import SECONDS_PER_HOUR
from data.case import read_case
from data.checkpoint import launch_of

POINTS = 100
"""Percentage points in the whole."""

RECORDED = (
    msg("the tool's own result file, with its single requests"),
    msg("the server's counters before and after the run"),
    msg("memory and use of every GPU during the run"),
    msg("the server's log from its start, with engine version and flags"),
)
"""What every run leaves behind; each can be uploaded."""


def plan_answer(
    case: Any, which: str, tools: Sequence[str], base_url: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One line a cell, baseline first, and what they come to. Without tools, the commands of all."""
    size, tools = _known(which, tools)
    scenario, notes = read_case(case)
    target, found = target_of(scenario, base_url), plan(scenario, size)
    total = {
        "set": size.value,
        "cells": len(found.cells),
        "runs": sum(len(one.seeds) for one in found.cells),
        "gpu_hours": round(found.gpu_hours(found.cells), 2),
        "notes": [str(note) for note in (*notes, *plan_notes(found))],
    }
    return [cell_line(found, planned, target, tools) for planned in found.cells], total


def _known(which: str, tools: Sequence[str]) -> tuple[PlanSet, Sequence[str]]:
    sizes = [one.value for one in PlanSet]
    for asked, known in ((which, sizes), *((tool, list(TOOLS)) for tool in tools)):
        if asked not in known:
            raise UnknownName(msg("{asked} is not known: use one of {known}.", asked=asked, known=", ".join(known)))
    return PlanSet(which), tools or tuple(TOOLS)


def target_of(scenario: Scenario, base_url: str) -> Target:
    """What the plan of a scenario measures."""
    return Target(deployment=scenario.deployment, launch_of=launch_of, base_url=base_url)


def cell_line(found: Plan, planned: PlannedCell, target: Target, tools: Sequence[str]) -> dict[str, Any]:
    """One cell: where it lies, why it is there, how to run it, and how to see that the load was what it says."""
    cell, start = planned.cell, target.start(found, planned.cell.strategy)
    model = model_of(start, target.deployment.engine.id)
    commands = {tool: [TOOLS[tool](run) for run in runs_of(planned, target, model)] for tool in tools}
    return {
        "cell": {
            "strategy": cell.strategy.value,
            "repetition": cell.repetition.value,
            "context_tokens": cell.context_tokens,
            "concurrency": cell.concurrency,
        },
        "name": planned.name,
        "set": planned.smallest_set.value,
        "purpose": planned.purpose.value,
        "why": str(WHY[planned.purpose]),
        "arrivals": "closed" if planned.rate_per_s is None else "open",
        "request_rate_per_s": planned.rate_per_s,
        "server": {"command": start.command, "files": dict(start.files), "notes": [str(note) for note in start.notes]},
        "reset": shlex.join(target.reset) or None,
        "load": {tool: _load(made, planned) for tool, made in commands.items()},
        "prefix_tokens": planned.load.shape.prefix_tokens,
        "suffix_tokens": planned.load.shape.suffix_tokens,
        "output_tokens": planned.load.shape.output_tokens,
        "prefixes": planned.load.groups,
        "working_set_tokens": planned.load.working_set_tokens,
        "expected_hit_share": round(planned.expected_hit_share, 4),
        "ceiling_share": round(planned.load.shape.ceiling_share, 4),
        "requests": planned.load.requests,
        "runs": len(planned.seeds),
        "seconds": round(planned.run_s, 1),
        "gpu_hours": round(planned.run_s * len(planned.seeds) * found.gpu_count / SECONDS_PER_HOUR, 3),
        "record": [str(one) for one in RECORDED],
        "scrape": shlex.join(target.scrape) + f" > {RESULTS}/{planned.name}-before.txt",
        "gpu_log": f"{GPU_LOG} > {RESULTS}/gpu-{cell.strategy}.csv",
        "check": str(check(planned)),
    }


def _load(made: Sequence[LoadCommand], planned: PlannedCell) -> dict[str, Any]:
    first = made[0]
    share = planned.drawn_hit_share if first.drawn else planned.expected_hit_share
    return {
        "commands": [one.command for one in made],
        "files": {name: text for one in made for name, text in one.files.items()},
        "expected_hit_share": round(share, 4),
        "notes": [str(note) for note in remarks(first, planned.expected_hit_share, planned.drawn_hit_share)],
    }


def check(planned: PlannedCell) -> Message:
    """What the server's own counters must say of the run."""
    if not planned.expected_hit_share:
        return msg(
            "The server's counters must show no more than {tolerance:pct} of prompt tokens found in the cache.",
            tolerance=HIT_TOLERANCE,
        )
    return msg(
        "Hits by queries of the server's counters must be {expected:pct}, at most {tolerance:count} points off; "
        "equal prompts of the start that miss together can lower it by {start:pct} more. Otherwise the load was not "
        "what the command says.",
        expected=planned.expected_hit_share,
        tolerance=round(HIT_TOLERANCE * POINTS),
        start=planned.start_miss_share,
    )
