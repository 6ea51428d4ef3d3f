"""What the command line asks, one function a verb: a case or a file in, its JSON answer out.

Each imports what only it needs, so that an estimate does not wait for the simulator's compiler or the database.
"""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calc.cache.lives import NO_ATTENTION
from calc.deployment import Deployment
from calc.errors import InputError, UnreadableFile
from calc.messages import Message, msg
from data.answers import bench_answer, decision_answer, latency_answer, memory_answer, waste_answer
from data.case import read_case, read_deployment
from data.case_evidence import read_evidence
from data.case_fields import Fields, as_object

if TYPE_CHECKING:
    from data.bundle_answer import FoundFile
    from data.intake import Declared
    from data.records import ReadResult
    from data.store import Store

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
    from calc.memory import estimate_memory

    if as_object(case, "a case").get("workload") is None:
        deployment, notes = read_deployment(case)
        return memory_answer(estimate_memory(deployment), notes)
    from calc.cache.waste import waste_shares

    scenario, notes = read_case(case)
    report = estimate_memory(scenario.deployment, scenario.workload)
    answer = memory_answer(report, notes)
    if scenario.deployment.model.attention == NO_ATTENTION:
        return answer
    return answer | {"waste": waste_answer(waste_shares(report, scenario.workload))}


def predict(case: Any) -> dict[str, Any]:
    """Latency of one case."""
    from calc import latency

    scenario, notes = read_case(case)
    steady = scenario.workload.num_requests is None
    return latency_answer(latency.predict(scenario), notes, steady=steady)


def search(case: Any, tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Deployments that carry the load of a case within its targets, cheapest first."""
    from calc.search import Progress
    from calc.search import search as find
    from data.search_answer import search_answer
    from data.search_case import read_search

    def progress(now: Progress) -> None:
        tell(f"{now.share:.0%}: {now.simulated} of {now.combinations} combinations simulated, {now.met} meet the SLO")

    asked = read_search(as_object(case, "a case"))
    result = find(asked.scenario, asked.space, prices=asked.prices, tell=progress)
    assert result is not None  # nobody stops it
    return search_answer(result, asked.notes, asked.most_rows)


def launch(case: Any) -> dict[str, Any]:
    """The command that starts one replica of a case, the files it reads, and remarks."""
    from data.checkpoint import launch_of

    loaded = as_object(case, "a case").get("workload") is not None
    deployment, notes = read_deployment(case) if not loaded else _deployment_of_load(case)
    answer = launch_of(deployment)
    return {
        "command": answer.command,
        "replicas": deployment.replicas,
        "files": dict(answer.files),
        "notes": [str(note) for note in (*notes, *answer.notes)],
    }


def _deployment_of_load(case: Any) -> tuple[Deployment, tuple[Message, ...]]:
    scenario, notes = read_case(case)
    return scenario.deployment, notes


def decide(case: Any) -> dict[str, Any]:
    """The decision on ``evidence``, on a ``scenario``, or on a scenario whose figures the evidence overrides."""
    from calc.judge.decide import decide as decide_on_evidence
    from calc.judge.decide import scenario_decision
    from data import catalogue

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


def read(asked: Path | FoundFile) -> dict[str, Any]:
    """What one result file of another tool says, in our words; of a folder's file also what became of it there."""
    from data import formats
    from data.bundle_answer import outline
    from data.intake import content_of

    if isinstance(asked, Path):
        content = content_of(asked)
        return _result_answer(formats.read(content, asked.name), content)
    item = asked.item
    if item.error is not None:
        raise UnreadableFile(item.error)
    if item.result is None:
        return outline(asked)
    return _result_answer(item.result, item.file.load()) | outline(asked)


def _result_answer(result: ReadResult, content: bytes) -> dict[str, Any]:
    from data import formats
    from data.intake import startup_answer

    return {
        "format": result.format,
        "records": formats.records(result),
        "warnings": [
            {"code": w.code, "severity": w.severity, "text": str(w.text), "fields": list(w.fields)}
            for w in result.warnings
        ],
        "problems": [{"line": problem.line, "reason": str(problem.reason)} for problem in result.problems],
        "notes": list(result.notes),
        **(startup_answer(result, content) if result.startup else {}),
    }


def ingest(asked: Path | FoundFile, declared: Path | None = None) -> dict[str, Any]:
    """The ids under which a file of any kind is stored; ``declared`` are facts about its runs.

    Of a folder's file that adds to another, copies another or holds no result, why it is not stored.
    """
    from data.bundle_answer import outline
    from data.intake import take_item, take_path
    from data.store import Store, default_path

    with Store(default_path(), who=_system_user) as store:
        facts = None if declared is None else _declaration(declared, store)
        if isinstance(asked, Path):
            return take_path(store, asked, facts)
        return take_item(store, asked.item, facts) | outline(asked)


def export(kind: str, form: str, to: Path) -> dict[str, Any]:
    """Write every visible row of a kind to a file."""
    from data.store import Store, default_path

    with Store(default_path(), who=_system_user) as store:
        content = store.exports(kind, "parquet" if form == "parquet" else "csv")
    to.write_bytes(content)
    return {"file": str(to), "kind": kind, "bytes": len(content)}


def _system_user() -> str:
    """Who runs the command, as the operating system knows them."""
    from data.store import NOT_SIGNED_IN

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this number, as in some containers
        return NOT_SIGNED_IN


def _declaration(path: Path, store: Store) -> Declared:
    from data.case_declaration import declaration_of_file
    from data.intake import Declared, content_of

    facts, by = declaration_of_file(content_of(path), [row.name for row in store.own_gpus()])
    return Declared(facts=facts, by=by)


def bench_simulator(tell: Callable[[str], None]) -> dict[str, Any]:
    """Simulated requests per second, percentiles included: best of five runs after one that compiles."""
    from calc import latency

    scenario, _ = read_case(BENCH_CASE)
    seconds = []
    for run in range(BENCH_RUNS + 1):
        begun_s = time.perf_counter()
        requests = latency.predict(scenario).requests
        seconds.append(round(time.perf_counter() - begun_s, 4))
        tell(f"run {run}: {requests} requests in {seconds[-1]} s" + (" (compiling)" if run == 0 else ""))
    return bench_answer(seconds[1:], requests)
