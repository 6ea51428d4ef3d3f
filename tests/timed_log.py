"""One way to load a large log in a process of its own: ``python tests/timed_log.py plain|load LOG DATABASE``."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

KIBI = 1024
TABLE = (
    "ts TIMESTAMP, prompt_tokens BIGINT, output_tokens BIGINT, session_id VARCHAR, turn BIGINT, tenant VARCHAR, "
    "model VARCHAR, business_line VARCHAR, status VARCHAR, streaming BOOLEAN, ttft DOUBLE, e2e DOUBLE, "
    "cached_tokens BIGINT"
)


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What came of it, seconds on the clock and of the processors."""
    began, before = time.perf_counter(), time.process_time()
    result = work()
    return result, {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - before}


def plain(log: Path, database: Path) -> dict[str, Any]:
    """DuckDB's own reader into a table of the same columns, with the memory and threads of the store."""
    import duckdb

    from data.store.database import MEMORY_LIMIT, THREADS

    with duckdb.connect(str(database), config={"memory_limit": MEMORY_LIMIT, "threads": THREADS}) as connection:
        connection.execute(f"CREATE TABLE requests ({TABLE})")

        def work() -> None:
            connection.execute(f"INSERT INTO requests SELECT * FROM read_csv('{log}')")
            connection.execute("CHECKPOINT")

        return timed(work)[1]


def load(log: Path, database: Path) -> dict[str, Any]:
    """The whole way of a log: copied, checked, hashed, loaded, summed up."""
    from data.logs.given import GivenLog
    from data.logs.load import load_log
    from data.logs.profile import profile_log
    from data.store import Store

    told: list[int] = []
    with Store(database) as store:
        given = GivenLog.of_path(log)
        added, took = timed(lambda: load_log(store.database, given, tell=lambda done, _: told.append(done)))
        profile, summed = timed(lambda: profile_log(store, added.log_id))
    return {
        **took,
        "profile_wall_s": summed["wall_s"],
        "profile_cpu_s": summed["cpu_s"],
        "requests": profile.requests,
        "sessions": profile.sessions.sessions if profile.sessions else None,
        "tenants": profile.parts["tenant"].count,
        "steps_told": len(set(told)),
    }


if __name__ == "__main__":
    answer = {"plain": plain, "load": load}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBI
    print(json.dumps({**answer, "peak_bytes": peak}))  # noqa: T201 - its standard output is the interface
