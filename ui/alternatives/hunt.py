"""A search at work beside the page: one thread, its progress, its cancel, and its frozen result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from calc.errors import PlimsollError
from calc.messages import Message
from calc.scenario import Scenario
from calc.search import Progress, SearchResult, Space, search
from calc.search.result import shortened
from calc.workload import Prices

KEPT_ROWS, KEPT_POINTS = 300, 1000
"""What a session keeps of a result: some megabytes."""
ASK_AGAIN_S = 0.2
"""How often a search that waits for its turn looks whether it was cancelled."""


@dataclass
class Hunt:
    """One question of one visitor. Between the threads go only whole frozen objects."""

    question: str
    """What was asked, as text: a result is shown only beside the question it answers."""
    turn: Lock
    """Of this server: one search computes at a time."""
    progress: Progress | None = None
    """``None`` = waits for its turn."""
    result: SearchResult | None = None
    problem: Message | None = None
    _stop: Event = field(default_factory=Event)
    _done: Event = field(default_factory=Event)

    def begin(self, scenario: Scenario, space: Space, prices: Mapping[str, Prices]) -> Hunt:
        """Start the thread; the page goes on."""
        Thread(target=self._run, args=(scenario, space, prices), name="search", daemon=True).start()
        return self

    @property
    def running(self) -> bool:
        """Until there is a result, a problem, or the cancel was obeyed."""
        return not self._done.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def cancel(self) -> None:
        """Stop at the next deployment; nothing of it is kept."""
        self._stop.set()

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within so long."""
        return self._done.wait(timeout_s)

    def _run(self, scenario: Scenario, space: Space, prices: Mapping[str, Prices]) -> None:
        try:
            while not self.turn.acquire(timeout=ASK_AGAIN_S):
                if self.cancelled:
                    return
            try:
                found = search(scenario, space, prices=prices, tell=self._tell, stopped=self._stop.is_set)
            finally:
                self.turn.release()
            self.result = None if found is None else shortened(found, KEPT_ROWS, KEPT_POINTS)
        except PlimsollError as error:
            self.problem = error.message
        finally:
            self._done.set()

    def _tell(self, progress: Progress) -> None:
        self.progress = progress
