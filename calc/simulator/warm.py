"""The simulator's usual kernels, compiled before anybody waits for them; compiled code is kept on disk.

``python -m calc.simulator.warm`` compiles them side by side, one process each: the compiler holds Python's lock. Half a
minute to a minute each, once per machine and version. Loads that combine rarer features compile theirs on first use.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from calc.simulator.contract import ClassRule, PrefixPlan, RequestPlan, SchedulerRules, StepCosts
from calc.simulator.fleet import Fleet, simulate_fleet
from calc.simulator.simulate import simulate

MOST_AT_ONCE = 4
"""Compilers side by side; each takes about 400 MB."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One set of features the machine code is made for."""

    fleet: bool = False
    managed: bool = False
    """Classes, tiers, clients, swap or static batches."""
    paced: bool = False
    """Speculation."""
    joint: bool = False
    """Prefixes shared by group; several replicas always know them."""


USUAL = (
    Kernel(fleet=True, joint=True),
    Kernel(managed=True),
    Kernel(joint=True),
    Kernel(paced=True),
    Kernel(),
)
"""One feature at a time; the slowest to compile first, so that it is not left for the end."""


def compile_kernel(wanted: Kernel) -> None:
    """Two small requests through one kernel: compiled, or loaded from disk."""
    few = np.full(2, 20, np.int64)
    plan = RequestPlan(prompt_tokens=few, output_tokens=few, cached_tokens=few * 0, start_s=np.array([0.0, 0.1]))
    rules, costs = SchedulerRules(max_tokens=16, max_seqs=2, total_blocks=8), StepCosts(tokens_s=np.full(3, 0.01))
    if wanted.managed:
        rules = replace(rules, classes=(ClassRule(),))
    if wanted.paced:
        plan, rules = replace(plan, pace_tokens=np.full(2, 1.5)), replace(rules, verified_tokens=2)
    if wanted.joint and not wanted.fleet:
        groups = PrefixPlan(group=few * 0, shared_blocks=few * 0, count=1)
        plan, rules = replace(plan, groups=groups), replace(rules, prefix_caching=True)
    if wanted.fleet:
        simulate_fleet(plan, Fleet(schedulers=2, routing="least-loaded"), rules, costs)
    else:
        simulate(plan, rules, costs)


def warm_up() -> None:
    """The kernel of plain loads, so that the first visitor does not wait."""
    compile_kernel(Kernel())


def compile_usual() -> None:
    """All of :data:`USUAL`, on as many processors as there are but at most :data:`MOST_AT_ONCE`."""
    with ProcessPoolExecutor(min(MOST_AT_ONCE, os.cpu_count() or 1)) as pool:
        list(pool.map(compile_kernel, USUAL))


if __name__ == "__main__":
    compile_usual()
