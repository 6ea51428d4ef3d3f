"""The driver's report from a process of its own: a failed GPU can hold its caller inside the driver for ever."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Thread

from calc.messages import Message, msg
from probe.nvml import NvmlReport
from probe.runner import ROOT
from probe.wire import parse_report

PATIENCE_S = 5.0
"""A healthy driver answers within a tenth of a second."""
COMMAND = (sys.executable, "-m", "probe", "--facts")


def driver_report(command: Sequence[str] = COMMAND, patience_s: float = PATIENCE_S) -> NvmlReport:
    """What the driver says about its GPUs, or why it says nothing; never waits longer than ``patience_s``."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        told, _ = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        _leave(process)
        return _silent(
            msg(
                "The NVIDIA driver did not answer within {patience:s}: check the GPU with nvidia-smi.",
                patience=patience_s,
            )
        )
    report = parse_report(told)
    return report or _silent(
        msg("Asking the NVIDIA driver ended with exit code {code}: check it with nvidia-smi.", code=process.returncode)
    )


def _leave(process: subprocess.Popen[str]) -> None:
    """Kill, and collect it in the background: a process stuck in the driver may never end."""
    process.kill()
    Thread(target=process.communicate, name="collect-driver-question", daemon=True).start()


def _silent(reason: Message) -> NvmlReport:
    return NvmlReport(available=False, reason=reason, sampled_at=datetime.now(UTC).isoformat(timespec="seconds"))
