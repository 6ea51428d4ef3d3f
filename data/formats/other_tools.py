"""Results of tools that have no reader here. They look readable, but a guess at their units would be wrong."""

from __future__ import annotations

from data.formats.csv_rows import HEAD_CHARACTERS
from data.formats.document import Document

_JSON_KEYS = (
    ("perf_analyzer --profile-export-file", ("experiments", "service_kind")),
    ("AIPerf (slices of time)", ("timeslices",)),
    ("llm-d (a report without latencies of requests)", ("results", "run", "scenario", "version")),
)
"""Keys that stand at the top level of each tool's JSON."""

_TABLE_WORDS = (
    ("AIPerf (slices of time)", ("Timeslice", "Metric")),
    ("genai-perf (GPU readings)", ("Metric,GPU",)),
)
"""Words in the first two lines of each tool's table."""


def name_of_tool(document: Document) -> str | None:
    """The tool that wrote the file, when it is one of these."""
    if document.values:
        first = document.values[0].value
        first = first[0] if isinstance(first, list) and first else first
        keys = set(first) if isinstance(first, dict) else set()
        return next((tool for tool, signs in _JSON_KEYS if keys.issuperset(signs)), None)
    head = "\n".join(document.text[:HEAD_CHARACTERS].lstrip().split("\n", 2)[:2])
    return next((tool for tool, signs in _TABLE_WORDS if all(sign in head for sign in signs)), None)
