"""Per-request CSV of LMCache's (production-stack) ``multi-round-qa``: seconds, launch and finish as Unix time.

Every user goes on with the same conversation, so later rounds hit the prefix cache by design. Only finished requests
are listed; a row without output tokens or TTFT is a failed one.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Mapping

import numpy as np

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.csv_rows import HEAD_CHARACTERS, lines_of
from data.formats.document import Document
from data.formats.request_figures import Column, RequestFigures, figure, summed_up
from data.formats.result import finish
from data.formats.row_checks import RefusedRow, check_row
from data.records import BenchmarkRun, ReadResult, RowProblem

MAX_ROWS = 3_000_000
"""Most requests read from one file."""
_SIGNATURE = frozenset({"prompt_tokens", "generation_tokens", "ttft", "generation_time", "launch_time", "finish_time"})


def looks_like(document: Document) -> bool:
    """True when the first line names the tool's columns."""
    header = document.text[:HEAD_CHARACTERS].lstrip().split("\n", 1)[0]
    return not document.values and _SIGNATURE.issubset(name.strip() for name in header.split(","))


def read(document: Document) -> ReadResult:
    """The requests, summed up into their load point."""
    problems: list[RowProblem] = []
    runs: list[BenchmarkRun] = []
    columns = _columns(document)
    try:
        run = _run(columns)
        check_row(run)
        runs += [run] if columns["ttft"].size else []
    except RefusedRow as refused:
        problems.append(RowProblem(line=1, reason=refused.reason))
    return finish(document, "lmcache_multi_round_qa_csv", runs, problems, ("per_request_file",))


def _columns(document: Document) -> dict[str, Column]:
    """The columns of the signature, a number or NaN for each request."""
    table = csv.DictReader(lines_of(document.text.lstrip()), skipinitialspace=True)
    columns = {name: array("d") for name in _SIGNATURE}
    try:
        for number, row in enumerate(table):
            if number >= MAX_ROWS:
                raise UnreadableFile(
                    msg(
                        "{file}: at most {limit:count} requests are read: split it.", file=document.name, limit=MAX_ROWS
                    )
                )
            for name, values in columns.items():
                values.append(figure(row.get(name)))
    except csv.Error as error:
        raise UnreadableFile(
            msg("{file}: line {line:count} is no CSV: export it again.", file=document.name, line=table.line_num)
        ) from error
    return {name: np.array(values) for name, values in columns.items()}


def _run(columns: Mapping[str, Column]) -> BenchmarkRun:
    answered = np.isfinite(columns["ttft"]) & ~(columns["generation_tokens"] == 0)
    kept = {name: values[answered] for name, values in columns.items()}
    failed = answered.size - int(answered.sum())
    figures = RequestFigures(
        ttft_s=kept["ttft"],
        e2e_s=_e2e_s(kept),
        input_tokens=kept["prompt_tokens"],
        output_tokens=kept["generation_tokens"],
        started_s=kept["launch_time"],
        ended_s=kept["finish_time"],
        failed=failed or None,
    )
    return summed_up(figures, BenchmarkRun(tool="LMCache multi-round-qa", flags=("prompts_shared",)))


def _e2e_s(columns: Mapping[str, Column]) -> Column:
    """Finish - launch, whatever the generation time of a version counts."""
    e2e_s = columns["finish_time"] - columns["launch_time"]
    e2e_s[~(e2e_s >= 0)] = np.nan
    return e2e_s
