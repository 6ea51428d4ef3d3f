"""A recording as one small file: JSON Lines, first what it is of, then one line a scrape or gap."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from calc.units import MEGA
from data.live.entry import Entry, Kind, Recording
from data.live.entry_json import MAX_NAME, broken, entry_object, read_entry

SUFFIX = ".plimsoll-recording.jsonl"
VERSION = 1
MAX_FILE_BYTES = 50 * MEGA
MAX_LINES = 20_000
"""Three days at one scrape every 15 s; read in seconds."""
MAX_REASON = 40
_TELLTALE = b'{"plimsoll_recording"'


def write_recording(recording: Recording, entries: Sequence[Entry]) -> bytes:
    """The file of a recording."""
    head = {
        "plimsoll_recording": VERSION,
        "engine": recording.engine,
        "interval_s": recording.interval_s,
        "started_at_s": round(recording.started_at_s, 3),
        "note": recording.note,
        "made_up": recording.made_up,
    }
    lines = [head, *(entry_object(entry) for entry in entries)]
    return "".join(
        json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n" for line in lines
    ).encode()


def looks_like_recording(content: bytes) -> bool:
    """True when the first line says so."""
    return content.lstrip(b"\xef\xbb\xbf \r\n").startswith(_TELLTALE)


def read_recording(content: bytes, name: str) -> tuple[Recording, tuple[Entry, ...]]:
    """The recording of a file, its lines in order of time, whole or refused in one sentence."""
    lines = _lines(content, name)
    try:
        recording = _head(_json(lines[0]), content)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(
            msg("{file}: a recording of an engine was expected: export one from the Live engine page.", file=name)
        ) from error
    entries: list[Entry] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            entry = read_entry(_json(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise broken(name, number, _shown(error)) from error
        if entries and entry.at_s < entries[-1].at_s:
            raise broken(name, number, "time goes back")
        entries.append(entry)
    if not any(entry.kind is Kind.SCRAPE for entry in entries):
        raise UnreadableFile(msg("{file}: the recording holds no scrape: record for longer.", file=name))
    return recording, tuple(entries)


def _lines(content: bytes, name: str) -> list[str]:
    text = content.decode("utf-8-sig", errors="replace") if len(content) <= MAX_FILE_BYTES else ""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or len(lines) > MAX_LINES:
        raise UnreadableFile(
            msg(
                "{file}: a recording of 1 to {lines:count} lines and at most {size:count} MB was expected: "
                "export a shorter time.",
                file=name,
                lines=MAX_LINES,
                size=MAX_FILE_BYTES / MEGA,
            )
        )
    return lines


def _json(line: str) -> Any:
    return json.loads(line, parse_constant=_no_constant)


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def _head(given: dict[str, Any], content: bytes) -> Recording:
    if given["plimsoll_recording"] != VERSION:
        raise ValueError("version")
    interval_s, started_at_s = float(given["interval_s"]), float(given["started_at_s"])
    return Recording(
        recording_id=hashlib.sha256(content).hexdigest(),
        engine=str(given["engine"])[:MAX_NAME],
        interval_s=interval_s,
        started_at_s=started_at_s,
        note=str(given.get("note", ""))[:MAX_NAME],
        made_up=bool(given.get("made_up", False)),
    )


def _shown(error: Exception) -> str:
    return (
        str(error)[:40] if type(error) is ValueError else "not JSON" if isinstance(error, ValueError) else "incomplete"
    )
