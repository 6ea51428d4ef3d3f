"""The latency part of docs/accuracy.md: every recorded serving point beside our prediction of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from fit_step import (
    BEFORE,
    BEFORE_ENGINE,
    METRICS,
    STATISTICS,
    UNTUNED,
    Linear,
    Served,
    before_fit,
    left_out,
    linearise,
    log_errors,
    percentiles_of,
    served_points,
    shipped,
)
from memory_accuracy import percent, table, tell
from two_points import two_point_table

from calc.latency import LatencyReport, predict
from data.case import read_case

GROUPS = {
    "blis-dense": "vLLM 0.15 over HTTP, dense models of 7 to 70 B, H100, A100, L40S",
    "blis-moe": "vLLM 0.15 over HTTP, mixture of experts",
    "inferencex-vllm": "vLLM, FP8 and FP4, closed loop, version not stated",
    "inferencex-sglang": "SGLang, FP8 and FP4, closed loop, version not stated",
    "inferencex-tensorrt-llm": "TensorRT-LLM, FP8 and FP4, closed loop, version not stated",
    "recorded": "recordings inside the engine, some overloaded",
    "other": "single published points",
}
"""Groups of serving points in words."""
COLUMNS = {"TPOT": "tpot_ms", "TTFT": "ttft_ms", "E2E": "e2e_ms"}
P99 = "P99 TTFT"
FEW = 3
"""A median of fewer points says nothing."""
OF_A_GROUP = 10
"""Groups smaller than this are not held to the target of groups."""
TAIL_SHARE = 0.15
SATURATION_SHARE = 0.30
LEAST_SHARE = 0.02
"""Constants above this are shares and factors, below seconds."""
MILLI = 1e-3
WHOLE_NODE = 8
RECV_MANY = 16
"""From so many users on SGLang's script polls less often."""
LONG_PROMPT = "8k1k"
ASYNC = "async_scheduling"
"""Not a part of a case: the engine version's own, changed here."""
RECIPES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "Llama TensorRT-LLM TP < 8, 1 k prompts": (
        "batch_wait_timeout_iters 20, batch_wait_max_tokens_ratio 0.9",
        {"extra_engine_args": {"batch_wait_timeout_iters": 20}},
    ),
    "Llama TensorRT-LLM TP 8, 1 k prompts": ("none of them", {}),
    "Llama vLLM": ("async-scheduling, which 0.11 leaves off", {ASYNC: True}),
    "DeepSeek-R1 SGLang H200": (
        "BF16 cache, which the case calls FP8; chunks of 32,768",
        {
            "kv_dtype": "bf16",
            "max_num_batched_tokens": 32768,
        },
    ),
    "DeepSeek-R1 SGLang B200, up to 8 users": (
        "scheduler-recv-interval 10; chunks of 32,768",
        {"extra_engine_args": {"scheduler_recv_interval": 10}, "max_num_batched_tokens": 32768},
    ),
    "DeepSeek-R1 SGLang B200, from 16 users": (
        "scheduler-recv-interval 30; chunks of 32,768",
        {"extra_engine_args": {"scheduler_recv_interval": 30}, "max_num_batched_tokens": 32768},
    ),
    "DeepSeek-R1 TensorRT-LLM H200": ("max_num_tokens of one prompt, MoE backend CUTLASS", {}),
}
"""Runs → what their published launch script sets and no case states (InferenceX, benchmarks/*_slurm.sh, *_docker.sh and
dsr1_*.sh), and the same as a case says it."""
PEERS = (
    ("AIConfigurator 0.12 (kernel tables, closed loop, means)", "61 InferenceX points", "9 %", "42 %"),
    ("AIConfigurator 0.12", "18 BLIS points", "8 %", "92 %"),
    ("AISimulate 0.13 (simulation on the same tables)", "25 InferenceX points of vLLM", "13 %", "113 %"),
    ("BLIS, trained physics (as its authors publish)", "38 runs of vLLM 0.15", "9 % (ITL)", "13 %"),
    ("BLIS, roofline (as its authors publish)", "38 runs of vLLM 0.15", "45 % (ITL)", "419 %"),
)
"""Tool, points, median size of the error of TPOT and of TTFT. The first three were run by us on points of the kind of
this page; BLIS's are recomputed from the error records its authors publish, and its authors are not neutral."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A recorded point and what was predicted for it."""

    point: Served
    report: LatencyReport

    def error(self, metric: str, statistic: str = "mean") -> float | None:
        """Predicted ÷ measured − 1."""
        found = log_errors(self.point, self.report, statistic).get(metric)
        return None if found is None else float(np.expm1(found))


def outcomes(folder: Path) -> list[Outcome]:
    tell("serving points")
    return [Outcome(point=point, report=predict(point.scenario)) for point in served_points(folder)]


def median_text(errors: Sequence[float | None], few: int = FEW) -> str:
    """Median size and, in brackets, the median with its sign."""
    known = [error for error in errors if error is not None]
    if len(known) < few:
        return "–"
    return f"{percent(float(np.median(np.abs(known))))} ({percent(float(np.median(known)), signed=True)})"


def _row(name: str, rows: Sequence[Outcome], few: int = FEW) -> list[str]:
    medians = [median_text([row.error(metric) for row in rows], few) for metric in COLUMNS.values()]
    return [name, str(len(rows)), *medians, median_text([row.error("ttft_ms", "p99") for row in rows], few)]


def by(found: Sequence[Outcome], key: Callable[[Outcome], str], head: str) -> str:
    """Medians by one property, of however few points."""
    names = dict.fromkeys(sorted(map(key, found)))
    rows = [_row(name, [row for row in found if key(row) == name], few=1) for name in names]
    return table((head, "points", *COLUMNS, P99), rows)


def groups_table(found: Sequence[Outcome]) -> str:
    rows = [
        _row(words, rows)
        for group, words in GROUPS.items()
        if (rows := [row for row in found if row.point.group == group])
    ]
    return table(("runs", "points", *COLUMNS, P99), [*rows, _row("all", found)])


def engine_of(row: Outcome) -> str:
    engine = row.point.scenario.deployment.engine
    stated = row.point.case.get("engine_version") is not None
    return f"{engine.id} {engine.version}" + ("" if stated else " (by date)")


def gpu_of(row: Outcome) -> str:
    return row.point.scenario.deployment.gpu.name


def setup_of(row: Outcome) -> str:
    deployment, load = row.point.scenario.deployment, row.point.case["workload"]
    lengths = f"{_length(load['prompt_tokens'])} → {_length(load['output_tokens'])}"
    split = f"TP {deployment.tp}" + (f" DP {deployment.dp}" if deployment.dp > 1 else "")
    expert = " EP" if deployment.ep else ""
    dtype = row.point.case.get("weight_dtype") or "bf16"
    model = deployment.model.name.split("/")[-1]
    return f"{model} {dtype}, {deployment.gpu.id} {split}{expert}, {deployment.engine.id}, {lengths}"


def _length(given: Mapping[str, object]) -> str:
    match given["distribution"]:
        case "fixed":
            return str(given["value"])
        case "uniform":
            return f"{given['low']}–{given['high']}"
        case other:
            return str(other)


def _saturating(found: Sequence[Outcome]) -> list[Outcome]:
    """Sweeps over long prompts in which some load was saturated."""
    setups = {row.point.setup for row in found if row.point.saturated and LONG_PROMPT in row.point.id}
    return [row for row in found if row.point.setup in setups]


def saturation_table(found: Sequence[Outcome]) -> str:
    rows = []
    for row in _saturating(found):
        measured, ours = row.point.measured, row.report
        rows.append(
            [
                setup_of(row).rsplit(", ", 1)[0],
                str(row.point.case["workload"]["arrivals"]["concurrency"]),
                f"{measured['ttft_ms']['mean'] / 1000:.1f}",
                f"{ours.ttft.mean_s or 0:.1f}",
                percent(row.error("ttft_ms") or 0, signed=True),
                f"{measured['tpot_ms']['mean']:.0f}",
                f"{1000 * (ours.tpot.mean_s or 0):.0f}",
                percent(row.error("tpot_ms") or 0, signed=True),
            ]
        )
    return table(
        ("sweep", "users", "TTFT s, measured", "predicted", "error", "TPOT ms, measured", "predicted", "error"), rows
    )


def recorded_table(found: Sequence[Outcome]) -> str:
    """Every percentile the recordings inside the engine give."""
    rows = []
    for row in found:
        if row.point.group != "recorded":
            continue
        for metric, predicted in percentiles_of(row.report).items():
            cells = []
            for statistic in STATISTICS:
                error = row.error(metric, statistic)
                ours = 1000 * (getattr(predicted, f"{statistic}_s") or 0)
                cells.append("–" if error is None else f"{ours:,.0f} ({percent(error, signed=True)})")
            rows.append([setup_of(row).rsplit(", ", 1)[0], metric.removesuffix("_ms").upper(), *cells])
    return table(("run", "ms", *STATISTICS), rows)


def fitted_table(found: Sequence[Outcome], linear: Linear, left: np.ndarray) -> str:
    """Medians with kernel tables alone, as shipped, and with the setup left out of the fit."""
    tell("the same with kernel tables and published costs alone")
    tables = []
    for row in found:
        scenario, shares = before_fit(row.point.scenario)
        tables.append(log_errors(row.point, predict(scenario, efficiency=shares)))
    rows = []
    for group in [*(name for name in GROUPS if any(row.point.group == name for row in found)), "all"]:
        for metric in METRICS:
            chosen = np.array(
                [
                    named == metric and group in (found[i].point.group, "all")
                    for i, named in zip(linear.points, linear.metrics, strict=True)
                ]
            )
            if chosen.sum() < FEW:
                continue
            plain = [tables[i][metric] for i, keep in zip(linear.points, chosen, strict=True) if keep]
            cells = [_sizes(np.array(plain)), _sizes(linear.errors[chosen]), _sizes(left[chosen])]
            rows.append([group, metric.removesuffix("_ms").upper(), str(int(chosen.sum())), *cells])
    return table(("runs", "metric", "points", "tables alone", "as shipped", "setup left out"), rows)


def _sizes(logs: np.ndarray) -> str:
    return percent(float(np.median(np.abs(np.expm1(logs)))))


def constants_table(found: Sequence[Outcome], linear: Linear, ranges: Mapping[str, tuple[float, float]]) -> str:
    rows = []
    for name in linear.names:
        plain = {**BEFORE, **BEFORE_ENGINE, UNTUNED: 1.0}[name]
        values = [shipped(row.point.scenario)[name] for row in found]
        value = next((value for value in values if value != plain), plain)
        low, high = ranges[name]
        rows.append(
            [name, _number(plain), _number(value), f"{_number(value * np.exp(low))} to {_number(value * np.exp(high))}"]
        )
    return table(("constant", "before any fit", "shipped", "refitted, one setup left out"), rows)


def _number(value: float) -> str:
    """Seconds in µs or ms; shares and factors as they are."""
    if value >= LEAST_SHARE:
        return f"{value:.2f}"
    return f"{value * 1e3:.1f} ms" if value >= MILLI else f"{value * 1e6:.3g} µs"


def recipe_of(row: Outcome) -> str | None:
    """Which of the scripts the point was run with, where it changes something."""
    point, deployment = row.point, row.point.scenario.deployment
    if "inferencex" not in point.id:
        return None
    if deployment.engine.id == "vllm":
        return "Llama vLLM"
    if deployment.engine.id == "sglang":
        many = "from 16" if point.case["workload"]["arrivals"]["concurrency"] >= RECV_MANY else "up to 8"
        return "DeepSeek-R1 SGLang H200" if "H200" in point.id else f"DeepSeek-R1 SGLang B200, {many} users"
    if LONG_PROMPT in point.id:
        return None
    if "Llama" not in point.id:
        return "DeepSeek-R1 TensorRT-LLM H200"
    return f"Llama TensorRT-LLM TP {'8' if deployment.tp == WHOLE_NODE else '< 8'}, 1 k prompts"


def as_run(row: Outcome) -> Outcome:
    """The point asked again with what its script sets."""
    name = recipe_of(row)
    if name is None:
        return row
    changes = dict(RECIPES[name][1])
    is_async = changes.pop(ASYNC, None)
    scenario = read_case({**row.point.case, **changes})[0]
    if is_async is not None:
        engine = replace(scenario.deployment.engine, async_scheduling=bool(is_async))
        scenario = replace(scenario, deployment=replace(scenario.deployment, engine=engine))
    return Outcome(point=row.point, report=predict(scenario))


def recipes_table(found: Sequence[Outcome]) -> str:
    """What is missing from TTFT, in steps, and what is left of it when the runs' own settings are asked."""
    rows = []
    for name, (settings, _) in RECIPES.items():
        chosen = [row for row in found if recipe_of(row) == name]
        if not chosen:
            continue
        missing = [
            (row.point.measured["ttft_ms"]["mean"] - 1000 * (row.report.ttft.mean_s or 0))
            / row.point.measured["tpot_ms"]["mean"]
            for row in chosen
        ]
        asked = [as_run(row) for row in chosen]
        rows.append(
            [
                name,
                str(len(chosen)),
                settings,
                f"{np.median(missing):.1f} ({min(missing):.0f} to {max(missing):.0f})",
                *(
                    median_text([row.error(metric) for row in kept], few=1)
                    for metric in ("tpot_ms", "ttft_ms")
                    for kept in (chosen, asked)
                ),
            ]
        )
    head = (
        "runs",
        "points",
        "their script sets",
        "missing from TTFT, steps",
        "TPOT as asked",
        "so set",
        "TTFT as asked",
        "so set",
    )
    return table(head, rows)


def targets_table(found: Sequence[Outcome]) -> str:
    """What is aimed at, and how near it is."""
    below = [row for row in found if row.point.group.startswith("inferencex") and not row.point.saturated]
    rows = [
        _target("TPOT, all", found, "tpot_ms", 0.08),
        *(
            _target(f"TPOT, {group}", rows, "tpot_ms", 0.15)
            for group in GROUPS
            if len(rows := [row for row in found if row.point.group == group]) >= OF_A_GROUP
        ),
        _target("E2E, all", found, "e2e_ms", 0.08),
        _target("TTFT, all", found, "ttft_ms", 0.20),
        _target("TTFT, InferenceX below saturation", below, "ttft_ms", 0.35),
        _target("P99 TTFT, all", found, "ttft_ms", 0.35, "p99"),
    ]
    return table(("median size of the error", "points", "found", "aimed at", "met"), [*rows, *_shares(found)])


def _target(name: str, rows: Sequence[Outcome], metric: str, aim: float, statistic: str = "mean") -> list[str]:
    errors = [error for row in rows if (error := row.error(metric, statistic)) is not None]
    size = float(np.median(np.abs(errors)))
    return [name, str(len(errors)), percent(size), f"at most {percent(aim)}", "yes" if size <= aim else "no"]


def _shares(found: Sequence[Outcome]) -> list[list[str]]:
    """Targets that every figure must meet: how many do."""
    tails = [
        error
        for row in found
        if row.point.group == "recorded"
        for metric in METRICS
        for statistic in STATISTICS
        if (error := row.error(metric, statistic)) is not None
    ]
    knees = [row.error("ttft_ms") or 0 for row in _saturating(found) if row.point.saturated]
    return [
        _all_within("recorded percentiles, each", tails, TAIL_SHARE),
        _all_within("TTFT of saturated 8 k sweeps, each", knees, SATURATION_SHARE),
    ]


def _all_within(name: str, errors: Sequence[float], aim: float) -> list[str]:
    inside = sum(abs(error) <= aim for error in errors)
    met = "yes" if inside == len(errors) else "no"
    return [name, str(len(errors)), f"{inside} of {len(errors)} inside", f"within {percent(aim)}", met]


def peers_table(found: Sequence[Outcome]) -> str:
    rows: list[Sequence[str]] = [*PEERS]
    for name, prefix in (("InferenceX", "inferencex"), ("BLIS", "blis")):
        chosen = [row for row in found if row.point.group.startswith(prefix)]
        sizes = [
            percent(float(np.median([abs(error) for row in chosen if (error := row.error(metric)) is not None])))
            for metric in ("tpot_ms", "ttft_ms")
        ]
        rows.append(("Plimsoll, uncalibrated", f"{len(chosen)} {name} points", *sizes))
    return table(("tool", "points", "TPOT", "TTFT"), rows)


def latency_page(folder: Path) -> str:
    """The whole part."""
    found = outcomes(folder)
    parts = [_medians(found), _constants(found), _queues(found), _two_points(folder), _hidden(found), _tables(found)]
    return "\n\n".join(parts) + "\n"


def _medians(found: Sequence[Outcome]) -> str:
    return f"""Median size of the error of means, and of P99 for TTFT; in brackets the median with its sign: + is
predicted too slow. Where the version is not stated, the newest one of the run's date is taken.

{groups_table(found)}

### What is aimed at

{targets_table(found)}"""


def _constants(found: Sequence[Outcome]) -> str:
    tell("the constants refitted, one setup left out at a time; this takes a minute or two")
    linear = linearise([row.point for row in found], [row.report for row in found])
    left, ranges = left_out([row.point for row in found], linear)
    setups = len({row.point.setup for row in found})
    return f"""### Constants judged on setups they were not fitted on

A setup is equal in model, GPU, split, engine, number formats, lengths and hit share; the {len(found)} points are of
{setups}. "Tables alone" has kernel tables and costs that others publish, and nothing fitted here. "Setup left out" has
the constants below refitted without any point of the setup that is asked (`tests/fit_step.py`; the logarithm of a
prediction is taken as linear around the shipped constants). The rules by which engines schedule are the same in all
three columns.

{fitted_table(found, linear, left)}

{constants_table(found, linear, ranges)}

`expert_bandwidth_share` rests on a single recorded run (128 small experts on two RTX PRO 6000): with that setup left
out it stays at 1. The factors of TensorRT-LLM rest on two models, those of SGLang on one."""


def _queues(found: Sequence[Outcome]) -> str:
    return f"""### Saturation

Closed loops over prompts of 8 k tokens: at which concurrency the KV pool no longer holds all users, and how long the
others then wait.

{saturation_table(found)}

### Percentiles of recordings inside the engine

Predicted milliseconds, and how far from the recorded ones. Each is one run of 300 requests: drawn again with other
arrivals and lengths of the same kind, the median TTFT of the first alone moves by a quarter (standard deviation), its
mean by an eighth.

{recorded_table(found)}"""


def _two_points(folder: Path) -> str:
    tell("setups calibrated on two of their points")
    return f"""### Calibrated on two points of a setup

{two_point_table(folder)}"""


def _hidden(found: Sequence[Outcome]) -> str:
    return f"""### What settings of the runs hide

Some runs were started with settings that no case states and that make arrivals wait on purpose. What is missing from
TTFT, counted in steps, and what is left of the error when the case carries the settings of their published scripts.

{recipes_table(found)}

What else is off, and why as far as is known:

- DeepSeek-R1 under TensorRT-LLM on H200 is the one setup whose steps are slower than anything here explains: a constant
  4 to 5 ms in every step, and prefill that takes three times what its products need. It looks like the expert kernels
  of that combination; one setup is not enough to say so.
- vLLM with FP8 on H100 and H200 takes a leap between 16 and 32 sequences (15.7 to 20.4 ms on two GPUs) that its kernel
  tables do not show; predictions rise evenly there.
- Data-parallel ranks of a mixture of experts keep step with each other, so that a prefill on one holds up all. Each
  rank is simulated by itself.
- Tails over HTTP are longer than predicted where they are the client's or the API server's, which is not simulated."""


def _tables(found: Sequence[Outcome]) -> str:
    return f"""### Other tools

Published or measured on points of the same kinds; not the same points one by one.

{peers_table(found)}

### By GPU

{by(found, gpu_of, "GPU")}

### By engine

{by(found, engine_of, "engine")}

### By setup

{by(found, setup_of, "setup")}"""
