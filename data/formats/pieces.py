"""Pieces of a file as load points: one piece, one run, and a piece that contradicts itself is listed with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from data.formats.document import Document
from data.formats.result import finish
from data.formats.row_checks import RefusedRow, check_row
from data.records import BenchmarkRun, ReadResult, RowProblem

Piece = TypeVar("Piece")


def read_pieces(
    document: Document,
    code: str,
    pieces: Iterable[tuple[int, Piece]],
    run: Callable[[Piece], BenchmarkRun],
    notes: Iterable[str] = (),
) -> ReadResult:
    """One load point of each piece (line, content)."""
    runs: list[BenchmarkRun] = []
    problems: list[RowProblem] = []
    for line, piece in pieces:
        try:
            found = replace(run(piece), line=line)
            check_row(found)
        except RefusedRow as refused:
            problems.append(RowProblem(line=line, reason=refused.reason))
        else:
            runs.append(found)
    return finish(document, code, runs, (*document.problems, *problems), notes)
