"""A log of five million requests: how long it takes to load against DuckDB alone, to sum up, and in how much memory.

Run with ``pytest --benchmark-only tests/bench/test_bench_logs.py`` on a quiet machine; it writes 0.8 GB.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS = 5_000_000
MAX_RATIO = 1.5
"""Of the time that DuckDB's own reader takes for the same file into a table of the same columns, in the same run."""
MAX_PROFILE_S = 2.0
MAX_PEAK_BYTES = 1.5 * 2**30


def run(way: str, log: Path, database: Path) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "tests" / "timed_log.py"), way, str(log), str(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "requests.csv"
    subprocess.run([sys.executable, str(ROOT / "tests" / "make_request_log.py"), str(path), str(ROWS)], check=True)
    return path


def test_a_large_log_loads_almost_as_fast_as_duckdb_reads_it(benchmark: Any, log: Path, tmp_path: Path) -> None:
    """DuckDB alone before and after, so that a machine that changes its pace is fair to both."""
    before = run("plain", log, tmp_path / "before.duckdb")
    ours = benchmark.pedantic(run, args=("load", log, tmp_path / "ours.duckdb"), rounds=1)
    after = run("plain", log, tmp_path / "after.duckdb")
    plain_s = (before["wall_s"] + after["wall_s"]) / 2
    plain_cpu_s = (before["cpu_s"] + after["cpu_s"]) / 2
    benchmark.extra_info |= {
        **ours,
        "plain_wall_s": plain_s,
        "wall_ratio": ours["wall_s"] / plain_s,
        "cpu_ratio": ours["cpu_s"] / plain_cpu_s,
    }
    assert ours["requests"] == ROWS
    assert ours["steps_told"] > 10
    assert ours["wall_s"] <= MAX_RATIO * plain_s, benchmark.extra_info
    assert ours["profile_wall_s"] <= MAX_PROFILE_S, benchmark.extra_info
    assert ours["peak_bytes"] <= MAX_PEAK_BYTES, benchmark.extra_info
