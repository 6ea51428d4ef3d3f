"""What the command line asks, one function a verb: a case or a file in, its JSON answer out.

Each imports what only it needs, so that an estimate does not wait for the simulator's compiler or the database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calc.cache.lives import NO_ATTENTION
from calc.deployment import Deployment
from calc.errors import InputError, PlimsollError, UnreadableFile
from calc.messages import Message, msg
from data.answers import bench_answer, decision_answer, latency_answer, memory_answer, waste_answer
from data.case import read_case, read_deployment
from data.case_evidence import read_evidence
from data.case_fields import Fields, as_object
from data.case_lines import split_cases

if TYPE_CHECKING:
    from calc.startup.log import StartupLog
    from calc.startup.measured import MeasuredMemory
    from data.bundle_answer import FoundFile
    from data.records import ReadResult, RunDeclaration
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
ISO_DAY = len("2026-11-30")
MAX_PROBE_BYTES = 10**6
"""A probe writes some thousand; anything larger is not even looked at."""
PROBE_TOOL = "plimsoll-probe"
"""How the measuring process signs its result."""


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


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableFile(
            msg("The file {file} cannot be opened ({reason}): check its path.", file=str(path), reason=error.strerror)
        ) from error


def read(asked: Path | FoundFile) -> dict[str, Any]:
    """What one result file of another tool says, in our words; of a folder's file also what became of it there."""
    from data import formats
    from data.bundle_answer import outline

    if isinstance(asked, Path):
        content = _content(asked)
        return _result_answer(formats.read(content, asked.name), content)
    item = asked.item
    if item.error is not None:
        raise UnreadableFile(item.error)
    if item.result is None:
        return outline(asked)
    return _result_answer(item.result, item.file.load()) | outline(asked)


def _result_answer(result: ReadResult, content: bytes) -> dict[str, Any]:
    from data import formats

    return {
        "format": result.format,
        "records": formats.records(result),
        "warnings": [
            {"code": w.code, "severity": w.severity, "text": str(w.text), "fields": list(w.fields)}
            for w in result.warnings
        ],
        "problems": [{"line": problem.line, "reason": str(problem.reason)} for problem in result.problems],
        "notes": list(result.notes),
        **(_log_answer(result, content) if result.startup else {}),
    }


def _log_answer(result: ReadResult, content: bytes) -> dict[str, Any]:
    """A start-up log: its figures with their lines, and the start it measured, ready to be put into a case."""
    from data.case_measured import log_answer, write_measured

    assert result.startup is not None  # only called for logs
    measured = _measured(result.startup, content)
    return {"startup_log": log_answer(result.startup), "measured_memory": write_measured(measured)}


def _measured(log: StartupLog, content: bytes) -> MeasuredMemory:
    """What the log alone says: settings that it does not name are taken as the engine's defaults."""
    from calc.startup.start import measured_start
    from data import catalogue
    from data.store import content_id
    from data.store.database import utc_now

    names = {entry.name for entry in catalogue.models().values()}
    today = utc_now()[:ISO_DAY]
    return measured_start(log, None, log_id=content_id(content), date=today, known_models=names).memory


def ingest(asked: Path | FoundFile, declared: Path | None = None) -> dict[str, Any]:
    """The ids under which a result file, a log or a probe line is stored; ``declared`` are facts about its runs.

    Of a folder's file that adds to another, copies another or holds no result, why it is not stored.
    """
    from data import formats
    from data.bundle_answer import outline, reading_id
    from data.store import content_id

    if isinstance(asked, Path):
        content = _content(asked)
        probe = _probe_result(content)
        result = None if probe else formats.read(content, asked.name)
        return _ingested(result, probe, content, content_id(content), asked.name, declared)
    item = asked.item
    if item.error is not None:
        content = item.file.load() if item.file.size_bytes <= MAX_PROBE_BYTES else b""
        probe = _probe_result(content)
        if not probe:
            raise UnreadableFile(item.error)
        return _ingested(None, probe, content, content_id(content), item.file.name, declared)
    if not item.to_store:
        return {"ids": []} | outline(asked)
    stored = _ingested(item.result, {}, item.file.load(), reading_id(item), item.path, declared)
    return stored | outline(asked)


def _ingested(
    result: ReadResult | None, probe: Mapping[str, Any], content: bytes, file_id: str, name: str, declared: Path | None
) -> dict[str, Any]:
    from data.case_measured import parse_measured
    from data.store import Store, default_path

    with Store(default_path()) as store:
        if result is None:
            added = store.add_probe(probe, measured_at=str(probe.get("started_at", "")))
        elif result.startup is not None:
            answer = _log_answer(result, content)
            parse_measured(answer["measured_memory"])  # what no case could carry is refused here, once
            added = store.add_startup_log(answer["startup_log"], answer["measured_memory"], name=name)
        else:
            facts = None if declared is None else _declaration(declared, store)
            added = store.add_file(result, file_id=file_id, size_bytes=len(content))
            if facts is not None:
                store.declarations.declare(added.stored_ids[: len(result.runs)], facts[0], by=facts[1])
        codes = [warning.code for warning in result.warnings] if result else []
        codes += [one.code for run in store.runs(file_id=added.file_id) for one in run.warnings]
    return {
        "id": added.file_id,
        "ids": list(added.stored_ids),
        "already_there": added.already_there,
        "warnings": list(dict.fromkeys(codes)),
    }


def _declaration(path: Path, store: Store) -> tuple[RunDeclaration, str]:
    from data.case_declaration import declaration_of_file

    return declaration_of_file(_content(path), [row.name for row in store.own_gpus()])


def _probe_result(content: bytes) -> dict[str, Any]:
    """The last line of a probe's output; empty for any other file."""
    if len(content) > MAX_PROBE_BYTES:
        return {}
    try:
        found = split_cases(content)[-1]
    except PlimsollError:
        return {}
    return found if isinstance(found, dict) and found.get("tool") == PROBE_TOOL else {}


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
