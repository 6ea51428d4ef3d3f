"""Memory of reading large files, in a process of its own: requests pass and are not held."""

from __future__ import annotations

import json
import subprocess
import sys

from conftest import ROOT

MOST_MEMORY_OF_FILE = 1.5
"""Peak memory above the process with the file in it, over the size of the file; its objects would take five times."""

READ = """
import json, resource, sys
sys.path[:0] = [".", "tests"]
from make_large_results import aiperf_records
from data.formats import read

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

small = {"aiperf": aiperf_records(10)}
for name, content in small.items():
    read(content, name)
line = aiperf_records(1) + b"\\n"
files = {"aiperf": line * (16_000_000 // len(line))}
found = {}
for name, content in files.items():
    start = peak()
    read(content, name)
    found[name] = (peak() - start) / len(content)
print(json.dumps(found))
"""


def test_a_large_file_takes_little_more_memory_than_itself() -> None:
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    grown = json.loads(done.stdout)
    assert max(grown.values()) < MOST_MEMORY_OF_FILE, grown
