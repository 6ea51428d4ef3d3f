"""The front door in a browser as an operator meets it: it answers, it ends when told, and the database opens again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from browser import ROOT, free_port, serving

from calc import MODEL_VERSION
from data.store import Store

END_S = 10
"""Seconds in which a server that is told to end has ended."""


def test_the_server_answers_ends_with_status_zero_and_leaves_a_database_that_opens(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.duckdb"
    with serving(path) as (url, process):
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            assert json.load(answer) == {"status": "ok", "model_version": MODEL_VERSION}
        with urllib.request.urlopen(f"{url}/memory", timeout=5) as answer:
            assert answer.status == 200, "a link to a page works before anybody has opened the first page"
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == 0
    assert not path.with_suffix(".duckdb.wal").exists(), "everything is written into the one file"
    store = Store(path)
    assert store.own_models() == ()
    store.close()


def test_a_second_server_on_the_same_database_says_so_at_the_end(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.duckdb")
    try:
        second = subprocess.run(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(free_port())],
            cwd=ROOT,
            env=os.environ | {"PLIMSOLL_STORE": str(tmp_path / "store.duckdb")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        store.close()
    assert second.returncode != 0
    said = [line for line in second.stderr.splitlines() if line and not line.startswith("Application startup failed")]
    assert "another program has this database open" in said[-1]
    assert "direct cause" not in second.stderr, "the database's own traceback is left out"
