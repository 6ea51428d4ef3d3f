"""The desk where logs are loaded: one at a time on a server, in a thread that outlives the visit of a page."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from calc.errors import PlimsollError
from calc.messages import Message
from data.logs.given import GivenLog
from data.logs.load import load_log
from data.store import Store
from data.store.logs import AddedLog


@dataclass
class LogJob:
    """One log on its way."""

    name: str
    total_bytes: int
    done_bytes: int = 0
    begun: float = field(default_factory=time.monotonic)
    stop: threading.Event = field(default_factory=threading.Event)
    added: AddedLog | None = None
    problem: Message | None = None
    over: bool = False

    @property
    def share(self) -> float:
        """How much of it is done (0-1)."""
        return min(self.done_bytes / self.total_bytes, 1.0) if self.total_bytes else 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.begun

    def tell(self, done_bytes: int, total_bytes: int) -> None:
        """How far it is."""
        self.done_bytes, self.total_bytes = done_bytes, total_bytes


@dataclass
class LogDesk:
    """Shared by all visitors of this server; a second log waits until the first is in or cancelled."""

    store: Store
    job: LogJob | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, given: GivenLog, declared: Mapping[str, str], done: Callable[[], None]) -> LogJob:
        """Start to load a log, or look at the one that is on its way."""
        with self._lock:
            if self.job is None or self.job.over:
                self.job = LogJob(name=given.name, total_bytes=given.size_bytes)
                work = (self.job, given, dict(declared), done)
                threading.Thread(target=self._work, args=work, daemon=True, name="request-log").start()
            return self.job

    def take(self) -> LogJob | None:
        """The job that is over, once."""
        with self._lock:
            if self.job is None or not self.job.over:
                return None
            job, self.job = self.job, None
            return job

    def _work(self, job: LogJob, given: GivenLog, declared: Mapping[str, str], done: Callable[[], None]) -> None:
        try:
            job.added = load_log(self.store.database, given, declared=declared, tell=job.tell, stop=job.stop)
            done()
        except PlimsollError as error:
            job.problem = error.message
        finally:
            job.over = True
