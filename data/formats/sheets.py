"""Sheets of a workbook read one by one, given back as one result; a sheet without results costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.document import Document
from data.formats.generic_csv import FORMAT as TABLE
from data.records import BenchmarkRun, ReadResult, RowProblem, RunWarning

FORMAT = "generic_xlsx"


def read_sheets(documents: Sequence[Document], name: str, read: Callable[[Document], ReadResult]) -> ReadResult:
    """What all sheets say; a workbook of which no sheet can be read is refused with the first sheet's reason."""
    results: list[tuple[Document, ReadResult]] = []
    refused: list[UnreadableFile] = []
    for document in documents:
        try:
            results.append((document, read(document)))
        except UnreadableFile as error:
            refused.append(error)
    if not results:
        raise refused[0] if refused else _empty(name)
    problems = [RowProblem(line=1, reason=error.message) for error in refused]
    formats = {result.format for _, result in results}
    return ReadResult(
        file=name,
        format=FORMAT if TABLE in formats else formats.pop(),
        runs=tuple(run for document, result in results for run in _runs(document, result, len(results) > 1)),
        warnings=_first_of_each(warning for _, result in results for warning in result.warnings),
        problems=(*(problem for _, result in results for problem in result.problems), *problems),
        notes=tuple(dict.fromkeys(note for _, result in results for note in result.notes)),
        snapshots=tuple(snapshot for _, result in results for snapshot in result.snapshots),
    )


def _runs(document: Document, result: ReadResult, several: bool) -> Iterable[BenchmarkRun]:
    """Runs that say which sheet they stand on, when there is more than one."""
    sheet = document.name.rpartition("[")[2].rstrip("]")
    return (replace(run, extra={**run.extra, "sheet": sheet}) for run in result.runs) if several else result.runs


def _first_of_each(warnings: Iterable[RunWarning]) -> tuple[RunWarning, ...]:
    codes: dict[str, RunWarning] = {}
    for warning in warnings:
        codes.setdefault(warning.code, warning)
    return tuple(codes.values())


def _empty(name: str) -> UnreadableFile:
    return UnreadableFile(msg("{file}: a workbook with results was expected, but no sheet holds anything.", file=name))
