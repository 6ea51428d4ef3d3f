"""A measurement in a process of its own, as a page sees it: start, poll, cancel.

The process has its own group and is killed with it: on cancel, when it outlives its cap, and when the server ends. One
measurement at a time runs on a server; two would measure each other.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from calc.errors import ProbeError
from calc.messages import Message, msg
from probe.microbench import DEFAULT_TIME_CAP_S
from probe.result import ProbeResult
from probe.shape import LayerShape
from probe.wire import parse_outcome, parse_progress, shape_line

ROOT = Path(__file__).resolve().parent.parent
GRACE_S = 45.0
"""On top of the time cap, for importing torch and opening the GPU from a cold disk."""
JOIN_S = 2.0
"""For the pipes to run dry after the process ended."""
TAIL_LINES = 20
"""Lines of the process's own complaints kept for an error."""

_SLOT = threading.Lock()
"""Held while a measurement runs."""


@dataclass(frozen=True, kw_only=True)
class ProbeState:
    """Where a run is. When done, exactly one of ``result`` and ``error`` is set."""

    progress_share: float
    step: Message
    done: bool = False
    result: ProbeResult | None = None
    error: Message | None = None


def start(shape: LayerShape, device: str = "auto", time_cap_s: float = DEFAULT_TIME_CAP_S) -> ProbeRun:
    """Begin to measure ``shape`` on ``auto``, ``cuda`` or ``cpu``; raises while another run goes on."""
    options = ("--json", shape_line(shape), "--device", device, "--time-cap", str(time_cap_s))
    return ProbeRun((sys.executable, "-m", "probe", *options), limit_s=time_cap_s + GRACE_S)


class ProbeRun:
    """One measuring process and the three threads that follow it; none of its methods waits for the measurement."""

    def __init__(self, command: Sequence[str], *, limit_s: float) -> None:
        if not _SLOT.acquire(blocking=False):
            raise ProbeError(msg("A measurement already runs on this server: wait for it or cancel it."))
        self._limit_s = limit_s
        self._state = ProbeState(progress_share=0.0, step=msg("Starting"))
        self._state_lock = threading.Lock()
        self._stopped_because: Message | None = None
        self._last_output = ""
        self._complaints: deque[str] = deque(maxlen=TAIL_LINES)
        try:
            self._process = _spawn(command)
        except OSError as error:
            _SLOT.release()
            raise ProbeError(msg("The measurement could not start: {reason}.", reason=str(error))) from error
        atexit.register(self.cancel)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def poll(self) -> ProbeState:
        """The latest known state, at once."""
        with self._state_lock:
            return self._state

    def cancel(self) -> None:
        """Kill the process with everything it started; returns when it is gone."""
        self._stop(msg("The measurement was cancelled."))
        self._watcher.join(JOIN_S)

    def _stop(self, reason: Message) -> None:
        if self._process.poll() is None:
            self._stopped_because = reason
            with contextlib.suppress(ProcessLookupError):  # it may end between the question and the kill
                os.killpg(self._process.pid, signal.SIGKILL)

    def _watch(self) -> None:
        try:
            self._publish(self._wait())
        finally:
            atexit.unregister(self.cancel)
            _SLOT.release()

    def _wait(self) -> ProbeResult | Message:
        """Read both pipes until the process ends or its time is up."""
        readers = (_reader(self._process.stdout, self._on_output), _reader(self._process.stderr, self._on_remark))
        try:
            self._process.wait(self._limit_s)
        except subprocess.TimeoutExpired:
            self._stop(msg("The measurement did not end within {limit:count} s and was stopped.", limit=self._limit_s))
            self._process.wait()
        for reader in readers:
            reader.join(JOIN_S)
        told = parse_outcome(self._last_output)
        return self._stopped_because or told or _explain(self._process.returncode, self._complaints)

    def _publish(self, outcome: ProbeResult | Message) -> None:
        with self._state_lock:
            if isinstance(outcome, ProbeResult):
                self._state = replace(self._state, progress_share=1.0, done=True, result=outcome)
            else:
                self._state = replace(self._state, done=True, error=outcome)

    def _on_output(self, line: str) -> None:
        if line.strip():
            self._last_output = line

    def _on_remark(self, line: str) -> None:
        progress = parse_progress(line)
        if progress is None:
            self._complaints.append(line.strip())
            return
        with self._state_lock:
            if not self._state.done:
                self._state = replace(self._state, progress_share=progress[0], step=progress[1])


def _spawn(command: Sequence[str]) -> subprocess.Popen[str]:
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "PYTHONPATH": search, "PYTHONIOENCODING": "utf-8"},
        start_new_session=True,
    )


def _reader(pipe: IO[str] | None, take: Callable[[str], None]) -> threading.Thread:
    def read() -> None:
        if pipe is not None:
            with pipe:
                for line in pipe:
                    take(line)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _explain(exit_code: int, complaints: Sequence[str]) -> Message:
    """Why a process that told neither result nor error ended."""
    if exit_code == -signal.SIGKILL:
        return msg("The measuring process was killed from outside, likely for lack of memory: free some and retry.")
    if exit_code < 0:
        name = signal.Signals(-exit_code).name
        return msg("The measuring process crashed ({signal}): check driver and PyTorch on this machine.", signal=name)
    last = next((line for line in reversed(complaints) if line), "")
    return msg("The measuring process ended with exit code {code} and no result: {last}", code=exit_code, last=last)
