"""The last step every reader shares: judge the runs, list the problems, refuse a file without one usable run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from calc.checks.validity import DECLARED
from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.document import Document
from data.formats.judge import warnings_of_file
from data.records import BenchmarkRun, ReadResult, RowProblem, RunWarning

COMPANION_NOTE = "companion_file"
"""Note of a file that only completes others."""


def finish(
    document: Document,
    code: str,
    runs: Sequence[BenchmarkRun],
    problems: Sequence[RowProblem],
    notes: Iterable[str] = (),
) -> ReadResult:
    """The result of a reader, with validity warnings; a file of which nothing could be used is an error."""
    if not runs:
        raise _nothing_used(document.name, problems)
    warnings, judged = warnings_of_file(runs)
    return ReadResult(
        file=document.name,
        format=code,
        runs=tuple(runs),
        warnings=warnings,
        problems=tuple(problems),
        notes=tuple(dict.fromkeys((*document.notes, *notes, *judged))),
    )


def companion(document: Document, code: str, *, warned: bool = True) -> ReadResult:
    """A file that belongs to others and holds no load point itself (settings, failures, a history)."""
    severity, text = DECLARED["needs_companion"]
    warning = RunWarning(code="needs_companion", severity=severity, text=text)
    return ReadResult(
        file=document.name,
        format=code,
        runs=(),
        warnings=(warning,) if warned else (),
        notes=tuple(dict.fromkeys((*document.notes, COMPANION_NOTE))),
    )


def _nothing_used(name: str, problems: Sequence[RowProblem]) -> UnreadableFile:
    if not problems:
        return UnreadableFile(
            msg("{file}: a header was found but no row of results below it: export the table with its rows.", file=name)
        )
    return UnreadableFile(
        msg(
            "{file}: none of its {count:count} rows can be used; line {line:count}: {reason}",
            file=name,
            count=len(problems),
            line=problems[0].line,
            reason=problems[0].reason,
        )
    )
