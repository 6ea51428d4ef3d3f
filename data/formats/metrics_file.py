"""A metrics text given as a file: the same reader the live source uses, as a read result."""

from __future__ import annotations

from calc.checks.validity import DECLARED
from data.formats.document import Document
from data.records import ReadResult, RunWarning
from data.sources.prometheus import is_metrics_text, scrape

HEAD_CHARACTERS = 500_000
"""A scrape names the engine by then; tables may be a hundred times larger."""


def looks_like(document: Document) -> bool:
    """True when a line is a metric of vLLM, SGLang or the DCGM exporter."""
    return not document.values and is_metrics_text(document.text[:HEAD_CHARACTERS])


def read(document: Document) -> ReadResult:
    """One snapshot; counters of a single scrape are not one run's, and the result says so."""
    found = scrape(document.text, document.name)
    warnings = tuple(RunWarning(code=code, severity=DECLARED[code][0], text=DECLARED[code][1]) for code in found.codes)
    return ReadResult(
        file=document.name,
        format=found.format,
        runs=(),
        snapshots=(found.snapshot,),
        warnings=warnings,
        notes=(*document.notes, *found.notes),
    )
