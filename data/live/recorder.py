"""Engines watched in the background: one thread an engine while somebody looks at it or records it.

A look costs an engine nothing more when ten people look at once, and a page never waits for a slow engine: it is shown
what the thread saw last. Only a limited number of the newest scrapes is held in memory.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Event, RLock, Thread

from calc.errors import InputError, StoreError
from calc.messages import Message, msg
from data.live.entry import Entry, Kind, Problem, Recording, Trouble
from data.live.entry_json import is_bounded
from data.live.poll import Reading, read_engine
from data.store.recordings import SECONDS_PER_DAY, Recordings

SHORTEST_S, LONGEST_S = 1.0, 60.0
"""Interval between two scrapes of a recording."""
LOOKING_S = 2.0
"""Interval while an engine is only looked at."""
LEASE_S = 20.0
"""An engine nobody looked at for so long, and nobody records, is left alone."""
RECENT = 240
"""Newest lines held in memory: 8 minutes of looking, 4 hours of a recording at one a minute."""
TIDY_EVERY_S = 3600.0
"""How often lines beyond the retention are removed while something records."""
NONSENSE = Problem(trouble=Trouble.NOT_METRICS)
ENDING_S = 8.0
"""Longest wait for a thread at the end: the time limit of one answer and a little more."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What an engine's thread knows now."""

    engine: str
    recent: tuple[Entry, ...] = ()
    recording: Recording | None = None
    paused: bool = False
    interval_s: float = LOOKING_S
    written: int = 0
    """Scrapes stored by this recording."""
    failed: Message | None = None
    """Why the recording could not go on."""


class Watcher:
    """One engine: its thread, its newest lines, and the recording that may be running."""

    def __init__(self, engine: str, read: Callable[[], Reading], store: Recordings, keep_days: int) -> None:
        self.engine = engine
        self._read, self._store, self._keep_days = read, store, keep_days
        self._recent: deque[Entry] = deque(maxlen=RECENT)
        self._lock, self._wake = RLock(), Event()
        self._thread: Thread | None = None
        self._closed = False
        self._recording: Recording | None = None
        self._paused, self._written = False, 0
        self._failed: Message | None = None
        self._looked_at = float("-inf")
        self._tidied_at = float("-inf")

    def look(self) -> Look:
        """The newest lines; the engine is asked from now on, for as long as somebody looks."""
        with self._lock:
            self._looked_at = time.monotonic()
            self._run()
            return self.state()

    @property
    def records(self) -> bool:
        """Whether a recording runs, paused or not."""
        return self._recording is not None

    def state(self) -> Look:
        """What is known, without asking the engine any further."""
        with self._lock:
            return Look(
                engine=self.engine,
                recent=tuple(self._recent),
                recording=self._recording,
                paused=self._paused,
                interval_s=self._interval_s,
                written=self._written,
                failed=self._failed,
            )

    def start(self, interval_s: float) -> Recording:
        """Record from now on; a recording that runs already goes on as it is."""
        with self._lock:
            if self._recording is not None:
                return self._recording
            interval = min(max(interval_s, SHORTEST_S), LONGEST_S)
            recording = Recording(
                recording_id=self._store.new_id(), engine=self.engine, interval_s=interval, started_at_s=time.time()
            )
            self._tidy()
            self._store.begin(recording)
            self._recording, self._paused, self._written, self._failed = recording, False, 0, None
            self._say_gap()
            self._run()
            self._wake.set()
            return recording

    def pause(self) -> None:
        """Store nothing until it is resumed."""
        with self._lock:
            if self._recording is not None and not self._paused:
                self._mark(Kind.PAUSED)
                self._paused = True

    def resume(self) -> None:
        """Store again."""
        with self._lock:
            if self._recording is not None and self._paused:
                self._mark(Kind.RESUMED)
                self._paused = False
                self._say_gap()
                self._run()
                self._wake.set()

    def stop(self) -> Recording | None:
        """End the recording; what was recorded stays."""
        with self._lock:
            ended = self._recording
            if ended is not None:
                self._mark(Kind.STOPPED)
            self._recording, self._paused = None, False
            return ended

    def end(self) -> Thread | None:
        """End the recording, and tell the thread to end: it may still be waiting for the engine's answer."""
        with self._lock:
            self._closed = True
            self.stop()
            self._wake.set()
            return self._thread

    @property
    def _interval_s(self) -> float:
        return self._recording.interval_s if self._recording is not None else LOOKING_S

    def _run(self) -> None:
        if self._closed or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = Thread(target=self._watch, name=f"watch-{self.engine}", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            began = time.monotonic()
            with self._lock:
                if not self._wanted():
                    self._thread = None
                    return
                self._wake.clear()
            self._observe()
            self._wake.wait(max(0.0, began + self._interval_s - time.monotonic()))

    def _wanted(self) -> bool:
        looked = time.monotonic() - self._looked_at < LEASE_S
        return not self._closed and (looked or (self._recording is not None and not self._paused))

    def _observe(self) -> None:
        """One look at the engine, outside the lock: it may take as long as the engine wants."""
        reading = self._read()
        now = time.time()
        with self._lock:
            if self._closed:
                return
            entry = self._entry(reading, now)
            if entry is None:
                return
            self._recent.append(entry)
            if self._recording is not None and not self._paused:
                self._keep(entry)

    def _entry(self, reading: Reading, now: float) -> Entry | None:
        """The line of a reading; an unchanged problem is not said twice."""
        last = self._recent[-1] if self._recent else None
        if last is not None and now <= last.at_s:
            reading, now = Reading(problem=Problem(trouble=Trouble.OUT_OF_ORDER)), last.at_s
        if reading.snapshot is None:
            if last is not None and last.kind is Kind.GAP and last.problem == reading.problem:
                return None
            return Entry(at_s=now, kind=Kind.GAP, problem=reading.problem)
        snapshot = replace(reading.snapshot, taken_at_s=now)
        entry = Entry(at_s=now, kind=Kind.SCRAPE, snapshot=snapshot, problem=reading.problem)
        return entry if is_bounded(entry) else Entry(at_s=now, kind=Kind.GAP, problem=NONSENSE)

    def _keep(self, entry: Entry) -> None:
        if self._recording is None:
            return
        try:
            self._store.add(self._recording.recording_id, [entry])
            self._written += entry.kind is Kind.SCRAPE
            if time.monotonic() - self._tidied_at > TIDY_EVERY_S:
                self._tidy()
        except StoreError as error:
            self._failed, self._recording, self._paused = error.message, None, False

    def _say_gap(self) -> None:
        """A recording that begins while the engine is away begins with the gap."""
        if self._recent and self._recent[-1].kind is Kind.GAP:
            self._keep(replace(self._recent[-1], at_s=time.time()))

    def _mark(self, kind: Kind) -> None:
        self._keep(Entry(at_s=time.time(), kind=kind))

    def _tidy(self) -> None:
        self._store.forget_before(time.time() - self._keep_days * SECONDS_PER_DAY)
        self._tidied_at = time.monotonic()


class Desk:
    """Every allowed engine, watched once for all visitors."""

    def __init__(self, engines: Mapping[str, str], store: Recordings, keep_days: int) -> None:
        self._engines, self._store, self._keep_days = dict(engines), store, keep_days
        self._watchers: dict[str, Watcher] = {}
        self._lock = RLock()

    @property
    def engines(self) -> tuple[str, ...]:
        """Names the operator allowed; addresses stay here."""
        return tuple(self._engines)

    def watcher(self, engine: str) -> Watcher:
        """The one watcher of an allowed engine."""
        with self._lock:
            if engine not in self._engines:
                raise InputError(
                    msg("{name} is not among the engines of plimsoll.toml: choose one from the list.", name=engine)
                )
            if engine not in self._watchers:
                self._watchers[engine] = Watcher(
                    engine, lambda: read_engine(engine, self._engines), self._store, self._keep_days
                )
            return self._watchers[engine]

    def recording(self) -> tuple[Look, ...]:
        """Engines that are being recorded, without looking at them."""
        with self._lock:
            return tuple(watcher.state() for watcher in self._watchers.values() if watcher.records)

    def close(self) -> None:
        """End every recording and thread, before the store is closed."""
        with self._lock:
            threads = [watcher.end() for watcher in self._watchers.values()]
        for thread in threads:
            if thread is not None:
                thread.join(ENDING_S)
