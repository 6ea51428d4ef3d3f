"""Several replicas at once: stopping and resuming one of them changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_simulate import scenarios

from calc.simulator import layout as at
from calc.simulator.simulate import RequestPlan, SchedulerRules, StepCosts, kernel_for, simulate, tables_of


@settings(max_examples=150, deadline=None)
@given(scenarios(), st.floats(0.01, 3.0))
def test_a_run_cut_into_pieces_is_the_whole_run(
    scenario: tuple[RequestPlan, SchedulerRules, StepCosts], piece_s: float
) -> None:
    """Also where each open arrival is put in only when its time has come."""
    plan, rules, costs = scenario
    whole = simulate(plan, rules, costs)
    n, x, r, t, q = tables_of(plan, rules, costs, 10**6)
    run = kernel_for(plan, rules)
    until, known = 0.0, 0 if not plan.closed else plan.start_s.size
    n[at.USERS] = known
    while n[at.MEASURED] < plan.prompt_tokens.size:
        until += piece_s
        while known < plan.start_s.size and plan.start_s[known] < until:
            x[at.UNTIL_S] = plan.start_s[known]
            run(n, x, r, t, q)
            known += 1
            n[at.USERS] = known
        x[at.UNTIL_S] = until
        run(n, x, r, t, q)
    assert t[at.FINISH] == pytest.approx(whole.finished_s, rel=1e-9)
    assert t[at.ADMITTED] == pytest.approx(whole.admitted_s, rel=1e-9)
    assert n[at.PREEMPTIONS] == whole.preemptions
    assert np.array_equal(n[n[at.GAPS] :].sum(), whole.gap_counts.sum())
