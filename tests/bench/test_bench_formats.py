"""Speed of reading large results against the bare parsing of the same bytes; run with ``pytest --benchmark-only``."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from make_large_results import aiperf_records, gpu_log, vllm_detailed

from data.formats import READERS, read
from data.formats.document import open_document

MEGA = 10**6
MIN_BYTES_PER_S = 10 * MEGA
MAX_DETECTION_S = 0.05


def parse_json(content: bytes) -> None:
    json.loads(content)


def parse_lines(content: bytes) -> None:
    for line in content.splitlines():
        json.loads(line)


def parse_table(content: bytes) -> None:
    for _ in csv.reader(io.StringIO(content.decode())):
        pass


FILES: dict[str, tuple[Callable[[], bytes], Callable[[bytes], None], float]] = {
    "vllm": (lambda: vllm_detailed(10_000), parse_json, 4.0),
    "aiperf": (lambda: aiperf_records(10_000), parse_lines, 8.0),
    "gpu": (lambda: gpu_log(100_000), parse_table, 30.0),
}
"""How each file is made, the bare parsing it is compared with, and how many times that reading may take."""


def cpu_s(work: Callable[[], Any]) -> float:
    """The best of three."""
    found = []
    for _ in range(3):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


@pytest.mark.parametrize("name", FILES)
def test_a_large_file_is_read_in_a_few_times_its_bare_parsing(name: str, benchmark: Any) -> None:
    make, parse, most = FILES[name]
    content = make()
    benchmark.pedantic(read, args=(content, name), rounds=3)
    taken, bare = cpu_s(lambda: read(content, name)), cpu_s(lambda: parse(content))
    benchmark.extra_info.update(megabytes_per_cpu_s=len(content) / taken / MEGA, times_bare_parsing=taken / bare)
    assert taken / bare <= most
    assert name == "gpu" or len(content) / taken >= MIN_BYTES_PER_S


@pytest.mark.parametrize("name", FILES)
def test_finding_the_tool_of_a_large_file_costs_nothing(name: str, benchmark: Any) -> None:
    document = open_document(FILES[name][0](), name)

    def ask() -> list[bool]:
        return [reader.looks_like(document) for reader in READERS]

    assert any(ask())
    benchmark.pedantic(ask, rounds=5)
    assert cpu_s(ask) < MAX_DETECTION_S
