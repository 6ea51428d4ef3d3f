"""How long a search takes: a thousand combinations and more of the worked example; run on a quiet machine."""

from __future__ import annotations

from typing import Any

from calc.search import SearchResult, Space, search
from calc.simulator.warm import warm_up
from data import catalogue
from data.case import example_case, read_case
from data.ways import other_formats

MIN_COMBINATIONS = 1000
MAX_SEARCH_S = 15.0
"""A progress bar is watched for about so long before people turn to something else."""


def test_a_thousand_deployments_are_judged_while_one_watches(benchmark: Any) -> None:
    warm_up()
    scenario, _ = read_case(example_case())
    space = Space(
        gpus=tuple(catalogue.gpus().values()),
        pps=(1, 2),
        weights=dict(other_formats(scenario.deployment)),
        kv_dtypes=(None, "fp8"),
    )
    assert space.size >= MIN_COMBINATIONS
    found: SearchResult = benchmark.pedantic(search, args=(scenario, space), rounds=1, warmup_rounds=0)
    benchmark.extra_info |= {"combinations": found.combinations, "simulated": found.simulated}
    per_thousand_s = benchmark.stats.stats.min * 1000 / found.combinations
    benchmark.extra_info["s_per_1000_combinations"] = round(per_thousand_s, 1)
    assert found.simulated >= MIN_COMBINATIONS
    assert per_thousand_s <= MAX_SEARCH_S
