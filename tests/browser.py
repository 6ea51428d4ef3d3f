"""A real browser on a real server: helpers of the browser tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--force-color-profile=srgb",
]  # fmt: skip
START_S = 60
IDLE_S = 60
SETTLE_S = 0.6
STATE = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  if (!app) return 'no app';
  const plots = [...document.querySelectorAll('[data-testid="stPlotlyChart"]')];
  if (plots.some(p => p.getBoundingClientRect().width && !p.querySelector('.main-svg'))) return 'painting';
  if (document.querySelector('[data-testid="stSpinner"],[data-testid="stAppSkeleton"]')) return 'spinning';
  if (!document.querySelector('[data-testid="stMain"] [data-testid="stElementContainer"]')) return 'empty';
  return app.getAttribute('data-test-script-state') + ' ' + app.getAttribute('data-test-connection-state');
}"""


def chromium() -> str:
    """Path of the browser, or a skip that says what to install."""
    if find_spec("playwright") is None:
        pytest.skip("playwright is not installed: pip install -r requirements-dev.txt")
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("no Chromium was found: install the package chromium to run the browser tests")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(store: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The app on a port and a store of its own: its address and process."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
        cwd=ROOT,
        env=os.environ | {"PLIMSOLL_STORE": str(store)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(url, process)
        yield url, process
    finally:
        process.terminate()
        process.wait(20)


def wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, "the app ended before it was up"
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError("the app did not answer in time")


def wait_until_idle(page: Any) -> None:
    """Until Streamlit has been idle for a moment."""
    end, idle_since = time.monotonic() + IDLE_S, None
    while time.monotonic() < end:
        state = page.evaluate(STATE)
        idle_since = (idle_since or time.monotonic()) if state == "notRunning CONNECTED" else None
        if idle_since and time.monotonic() - idle_since > SETTLE_S:
            return
        page.wait_for_timeout(60)
    raise AssertionError(f"the page did not come to rest: {page.evaluate(STATE)}")
