"""What the command line asks, one function a verb: a case or a file in, its JSON answer out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calc.decide import decide as decide_on_evidence
from calc.decide import scenario_decision
from calc.errors import InputError, UnreadableFile
from calc.latency import predict as predict_latency
from calc.memory import estimate_memory
from calc.messages import msg
from data import catalogue
from data.answers import bench_answer, decision_answer, latency_answer, memory_answer
from data.case import read_case, read_deployment
from data.case_evidence import read_evidence
from data.case_fields import Fields, as_object

BENCH_CASE: Mapping[str, Any] = {
    "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm",
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 500, "p95": 1500},
        "output_tokens": {"distribution": "lognormal", "p50": 250, "p95": 600},
        "arrivals": {"kind": "poisson", "rate_per_s": 12},
        "num_requests": 20_000,
    },
}
"""The load the simulator's speed is measured on."""
BENCH_RUNS = 5


def estimate(case: Any) -> dict[str, Any]:
    """Memory of one case; a case with a load also fills in the demand at that load's mean lengths."""
    if as_object(case, "a case").get("workload") is None:
        deployment, notes = read_deployment(case)
        return memory_answer(estimate_memory(deployment), notes)
    scenario, notes = read_case(case)
    return memory_answer(estimate_memory(scenario.deployment, scenario.workload), notes)


def predict(case: Any) -> dict[str, Any]:
    """Latency of one case."""
    scenario, notes = read_case(case)
    return latency_answer(predict_latency(scenario), notes)


def decide(case: Any) -> dict[str, Any]:
    """The decision on ``evidence``, on a ``scenario``, or on a scenario whose figures the evidence overrides."""
    fields = Fields(case)
    fields.raw("id")
    evidence, notes = read_evidence(fields.raw("evidence") or {})
    asked = fields.raw("scenario")
    notes += fields.unknown()
    if asked is not None:
        scenario, scenario_notes = read_case(asked)
        decision = scenario_decision(scenario, tuple(catalogue.gpus().values()), measured=evidence)
        return decision_answer(decision, notes + scenario_notes)
    if not evidence:
        raise InputError(msg("Neither evidence nor a scenario was given: add at least one."))
    return decision_answer(decide_on_evidence(evidence), notes)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableFile(
            msg("The file {file} cannot be opened ({reason}): check its path.", file=str(path), reason=error.strerror)
        ) from error


def read(path: Path) -> dict[str, Any]:
    """What one result file of another tool says, in our words."""
    from data.formats import read as read_file
    from data.formats import to_record

    result = read_file(_content(path), path.name)
    return {
        "format": result.format,
        "records": [to_record(run) for run in result.runs],
        "warnings": [
            {"code": w.code, "severity": w.severity, "text": str(w.text), "fields": list(w.fields)}
            for w in result.warnings
        ],
        "problems": [{"line": problem.line, "reason": str(problem.reason)} for problem in result.problems],
        "notes": list(result.notes),
    }


def bench_simulator(tell: Callable[[str], None]) -> dict[str, Any]:
    """Simulated requests per second, percentiles included: best of five runs after one that compiles."""
    scenario, _ = read_case(BENCH_CASE)
    seconds = []
    for run in range(BENCH_RUNS + 1):
        begun_s = time.perf_counter()
        requests = predict_latency(scenario).requests
        seconds.append(round(time.perf_counter() - begun_s, 4))
        tell(f"run {run}: {requests} requests in {seconds[-1]} s" + (" (compiling)" if run == 0 else ""))
    return bench_answer(seconds[1:], requests)
