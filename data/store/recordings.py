"""Recordings of live engines: lines added one by one, read thinned out, removed when they are too old."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from data.live.entry import Entry, Recording
from data.live.entry_json import entry_object, read_entry
from data.store import codec
from data.store.database import Database, insert
from data.store.own import HIDDEN, act
from data.store.trail import added

SECONDS_PER_DAY = 86_400
MAX_DRAWN = 400
"""Scrapes read of a recording for its charts: one every three pixels of a wide screen."""
MAX_EXPORTED = 9_000
"""Scrapes, and as many other lines, of an exported file: below what a file of a recording may have."""


@dataclass(frozen=True, kw_only=True)
class StoredRecording:
    """A recording and how much of it there is."""

    recording: Recording
    lines: int
    scrapes: int
    first_at_s: float | None
    last_at_s: float | None
    last_id: str
    """Changes with every line added: what is worked out of a recording is kept under it."""


class Recordings:
    """The recordings of one open database; every method may be called from any thread."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def new_id(self) -> str:
        """An id for a recording that begins now."""
        return self._db.new_id()

    def begin(self, recording: Recording) -> None:
        """A recording without lines."""
        with self._db.writing() as cursor:
            insert(cursor, "recordings", [asdict(recording)])
            added(self._db, cursor, "recording", recording.recording_id)

    def add(self, recording_id: str, entries: Sequence[Entry]) -> None:
        """Lines at the end of a recording."""
        with self._db.writing() as cursor:
            insert(cursor, "recorded_scrapes", [self._row(recording_id, entry) for entry in entries])

    def add_whole(self, recording: Recording, entries: Sequence[Entry]) -> bool:
        """A recording read from a file, whole or not at all; False when the same is there already."""
        with self._db.writing() as cursor:
            known = "SELECT count(*) FROM recordings WHERE recording_id = ?"
            if cursor.execute(known, [recording.recording_id]).fetchall()[0][0]:
                if cursor.execute(f"SELECT 1 WHERE ? IN ({HIDDEN})", [recording.recording_id]).fetchall():
                    act(self._db, cursor, "recording", recording.recording_id, "undo")
                return False
            insert(cursor, "recordings", [asdict(recording)])
            insert(cursor, "recorded_scrapes", [self._row(recording.recording_id, entry) for entry in entries])
            added(self._db, cursor, "recording", recording.recording_id)
        return True

    def all(self) -> tuple[StoredRecording, ...]:
        """Recordings, newest first."""
        rows = self._db.select(
            "SELECT r.*, coalesce(s.lines, 0) AS lines, coalesce(s.scrapes, 0) AS scrapes, s.first_at_s, s.last_at_s, "
            "coalesce(s.last_id, '') AS last_id FROM recordings r LEFT JOIN (SELECT recording_id, count(*) AS lines, "
            "count(*) FILTER (WHERE kind = 'scrape') AS scrapes, min(at_s) AS first_at_s, max(at_s) AS last_at_s, "
            "max(scrape_id) AS last_id FROM recorded_scrapes GROUP BY recording_id) s "
            f"ON r.recording_id = s.recording_id WHERE r.recording_id NOT IN ({HIDDEN}) ORDER BY r.started_at_s DESC"
        )
        counted = ("lines", "scrapes", "first_at_s", "last_at_s", "last_id")
        return tuple(
            StoredRecording(
                recording=Recording(**{key: value for key, value in row.items() if key not in counted}),
                **{key: row[key] for key in counted},
            )
            for row in rows
        )

    def entries(self, recording_id: str, *, most: int = MAX_DRAWN) -> tuple[tuple[Entry, ...], int]:
        """Lines in order of time, and which one of so many scrapes was read: 1 = all of them.

        Counters run on between the scrapes that are left out, so rates and percentiles lose nothing but resolution.
        """
        counted = "SELECT count(*) AS scrapes FROM recorded_scrapes WHERE recording_id = ? AND kind = 'scrape'"
        step = max(1, -(-self._db.select(counted, [recording_id])[0]["scrapes"] // most))
        rows = self._db.select(
            "SELECT content FROM (SELECT content, kind, at_s, scrape_id, row_number() OVER (PARTITION BY kind "
            "ORDER BY at_s DESC, scrape_id DESC) AS place FROM recorded_scrapes WHERE recording_id = ?) "
            "WHERE (kind = 'scrape' AND (place - 1) % ? = 0) OR (kind <> 'scrape' AND place <= ?) "
            "ORDER BY at_s, scrape_id",
            [recording_id, step, most],
        )
        return tuple(read_entry(json.loads(row["content"])) for row in rows), step

    def forget_before(self, cutoff_s: float) -> None:
        """Remove lines older than this for good, and recordings of which nothing is left."""
        with self._db.writing() as cursor:
            cursor.execute("DELETE FROM recorded_scrapes WHERE at_s < ?", [cutoff_s])
            cursor.execute(
                "DELETE FROM recordings WHERE started_at_s < ? AND recording_id NOT IN "
                "(SELECT recording_id FROM recorded_scrapes)",
                [cutoff_s],
            )

    def _row(self, recording_id: str, entry: Entry) -> dict[str, object]:
        return {
            "recording_id": recording_id,
            "scrape_id": self._db.new_id(),
            "at_s": entry.at_s,
            "kind": entry.kind.value,
            "content": codec.to_json(entry_object(entry)),
        }
