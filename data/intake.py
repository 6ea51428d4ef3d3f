"""Any file a team has, into the store: results, metrics, start-up logs, probes, request logs, recordings of engines.

One way for the command line and for the HTTP route: what each file is is told by its content, and every answer names
the ids under which it is stored; the same file twice has the same ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calc.errors import PlimsollError, UnreadableFile
from calc.messages import msg
from calc.startup.measured import MeasuredMemory
from calc.units import MEGA
from data import catalogue, formats
from data.bundle_answer import reading_id
from data.case_lines import split_cases
from data.formats.bundle import BundleItem
from data.formats.decode import MAX_FILE_BYTES
from data.formats.record import gpu_log_record
from data.formats.result import COMPANION_NOTE
from data.live.recording_file import looks_like_recording, read_recording
from data.logs.given import GivenLog
from data.records import ReadResult, RunDeclaration
from data.store import AddOutcome, Store, content_id
from data.store.database import utc_now

ISO_DAY = len("2026-11-30")
MAX_PROBE_BYTES = 10**6
"""A probe writes some thousand; anything larger is not even looked at."""
PROBE_TOOL = "plimsoll-probe"
"""How the measuring process signs its result."""
LARGE_BYTES = 20 * MEGA
"""Files above this are first looked at as request logs, by their first rows: nothing else grows so large."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Facts that somebody states about every run of a file."""

    facts: RunDeclaration
    by: str


def take_path(store: Store, path: Path, declared: Declared | None = None) -> dict[str, Any]:
    """Store one file of this machine; one of any size where it is a request log."""
    log = GivenLog.of_path(path) if path.is_file() else None
    if log is not None and log.size_bytes > LARGE_BYTES and (stored := _request_log(store, log)):
        return stored
    return take(store, content_of(path), path.name, declared)


def take_item(store: Store, item: BundleItem, declared: Declared | None = None) -> dict[str, Any]:
    """Store one file of several that were read together; ``ids`` is empty where it adds nothing of its own."""
    if item.error is not None:
        if item.file.error is not None or item.file.size_bytes > MAX_FILE_BYTES:
            raise UnreadableFile(item.error)
        content = item.file.load()
        stored = _other(store, content, item.path)
        if stored is None:
            raise UnreadableFile(item.error)
        return stored
    if item.result is None or not item.to_store:
        return {"ids": []}
    return _result(store, item.result, item.file.load(), reading_id(item), item.path, declared)


def take(store: Store, content: bytes, name: str, declared: Declared | None = None) -> dict[str, Any]:
    """Store one file by its content."""
    if probe := probe_of(content):
        return _probe(store, probe)
    if looks_like_recording(content):
        return _recording(store, content, name)
    try:
        result = formats.read(content, name)
    except UnreadableFile:
        stored = _request_log(store, GivenLog.of_bytes(content, name))
        if stored is None:
            raise
        return stored
    return _result(store, result, content, content_id(content), name, declared)


def content_of(path: Path) -> bytes:
    """The bytes of a file, or why there are none."""
    try:
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise UnreadableFile(
                msg(
                    "{file}: at most {limit:count} bytes are read of anything but a request log, this file has "
                    "{size:count}: write it without per-request details.",
                    file=path.name,
                    limit=MAX_FILE_BYTES,
                    size=size,
                )
            )
        return path.read_bytes()
    except OSError as error:
        raise UnreadableFile(
            msg("The file {file} cannot be opened ({reason}): check its path.", file=str(path), reason=error.strerror)
        ) from error


def probe_of(content: bytes) -> Mapping[str, Any]:
    """The last line of a probe's output; empty for any other file."""
    if len(content) > MAX_PROBE_BYTES:
        return {}
    try:
        found = split_cases(content)[-1]
    except PlimsollError:
        return {}
    return found if isinstance(found, dict) and found.get("tool") == PROBE_TOOL else {}


def startup_answer(result: ReadResult, content: bytes) -> dict[str, Any]:
    """A start-up log: its figures with their lines, and the start it measured, ready to be put into a case."""
    from data.case_measured import log_answer, write_measured

    assert result.startup is not None  # only called for logs
    return {"startup_log": log_answer(result.startup), "measured_memory": write_measured(_measured(result, content))}


def _measured(result: ReadResult, content: bytes) -> MeasuredMemory:
    """What the log alone says: settings that it does not name are taken as the engine's defaults."""
    from calc.startup.start import measured_start

    assert result.startup is not None  # only called for logs
    names = {entry.name for entry in catalogue.models().values()}
    log_id, today = content_id(content), utc_now()[:ISO_DAY]
    return measured_start(result.startup, None, log_id=log_id, date=today, known_models=names).memory


def _other(store: Store, content: bytes, name: str) -> dict[str, Any] | None:
    """What is stored though it is no result: a probe, a recording, a request log; None = none of them."""
    if probe := probe_of(content):
        return _probe(store, probe)
    if looks_like_recording(content):
        return _recording(store, content, name)
    return _request_log(store, GivenLog.of_bytes(content, name))


def _result(
    store: Store, result: ReadResult, content: bytes, file_id: str, name: str, declared: Declared | None
) -> dict[str, Any]:
    from data.case_measured import parse_measured

    if result.startup is not None:
        answer = startup_answer(result, content)
        parse_measured(answer["measured_memory"])  # what no case could carry is refused here, once
        added = store.add_startup_log(answer["startup_log"], answer["measured_memory"], name=name)
        return _told(added, "startup_log")
    added = store.add_file(result, file_id=file_id, size_bytes=len(content))
    if declared is not None:
        store.declarations.declare(added.stored_ids[: len(result.runs)], declared.facts, by=declared.by)
    codes = [warning.code for warning in result.warnings]
    codes += [one.code for run in store.runs(file_id=added.file_id) for one in run.warnings]
    return _told(added, "file") | _said(result, name) | {"warnings": list(dict.fromkeys(codes))}


def _said(result: ReadResult, name: str) -> dict[str, Any]:
    """What is worth a sentence: logs of GPU readings, and a file that completes others."""
    if result.gpu_logs:
        text = msg("{file}: stored as a log of GPU readings; it counts for runs during which it was taken.", file=name)
        return {"gpu_logs": [gpu_log_record(log) for log in result.gpu_logs], "text": str(text)}
    if COMPANION_NOTE in result.notes and not result.runs:
        text = msg("{file}: stored; it holds no load point of its own, but completes the others of its run.", file=name)
        return {"notes": list(result.notes), "text": str(text)}
    return {}


def _probe(store: Store, probe: Mapping[str, Any]) -> dict[str, Any]:
    return _told(store.add_probe(probe, measured_at=str(probe.get("started_at", ""))), "probe")


def _recording(store: Store, content: bytes, name: str) -> dict[str, Any]:
    recording, entries = read_recording(content, name)
    new = store.recordings.add_whole(recording, entries)
    ids = (recording.recording_id,)
    return _told(AddOutcome(file_id=ids[0], stored_ids=ids, already_there=not new), "recording")


def _request_log(store: Store, log: GivenLog) -> dict[str, Any] | None:
    """None where the file is no request log with times and lengths."""
    from data.logs.load import load_log, understand

    try:
        if understand(log, store.database.incoming).missing:
            return None
    except UnreadableFile:
        return None
    added = load_log(store.database, log)
    outcome = AddOutcome(file_id=added.log_id, stored_ids=(added.log_id,), already_there=added.already_there)
    return _told(outcome, "request_log") | {"requests": added.requests, "problem_rows": added.problem_rows}


def _told(added: AddOutcome, kind: str) -> dict[str, Any]:
    return {
        "id": added.file_id,
        "ids": list(added.stored_ids),
        "kind": kind,
        "already_there": added.already_there,
        "warnings": [],
    }
