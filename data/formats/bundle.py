"""Many files read together: each by its own reader, companions joined, copies found; a bad one stops no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from calc.errors import PlimsollError, UnreadableFile
from calc.messages import Message, msg
from data.formats import read
from data.formats.bundle_files import GivenFile
from data.formats.companions import COMPANIONS, Companion, agree, stem
from data.formats.decode import MAX_FILE_BYTES, refuse_size
from data.formats.judge import warnings_of_file
from data.formats.name_facts import suggested
from data.formats.result import COMPANION_NOTE
from data.formats.same_runs import copies
from data.records import BenchmarkRun, ReadResult

Columns = Mapping[str, Mapping[str, str]]
"""Path of a table → what its columns mean."""
_JOINED = "joined_companion"
_DEFECTS = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, AttributeError)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class BundleItem:
    """One file and what became of it: read, refused, left out, joined to another, or a copy of another."""

    file: GivenFile
    result: ReadResult | None = None
    error: Message | None = None
    left_out: Message | None = None
    belongs_to: str | None = None
    """Path of the file whose run this one completes; its own figures are in that run."""
    same_as: str | None = None
    """Path of a file that holds the same runs and says more."""
    companions: tuple[GivenFile, ...] = ()
    """Files whose figures were added to this one's run."""
    suggestions: Mapping[str, str | int] = field(default_factory=dict)
    """What the path suggests of facts that the file does not state; never taken as one."""

    @property
    def path(self) -> str:
        """Where the file lies among those given."""
        return self.file.path

    @property
    def to_store(self) -> bool:
        """Whether it holds results of its own, or completes others that are not here."""
        return self.result is not None and self.belongs_to is None and self.same_as is None and _holds(self.result)


def read_files(
    files: Iterable[GivenFile], columns: Columns | None = None, tell: Callable[[str], None] | None = None
) -> tuple[BundleItem, ...]:
    """Every file in its order; ``tell`` hears the path of each before it is read."""
    items: list[BundleItem] = []
    for file in files:
        if tell is not None:
            tell(file.path)
        items.append(_item(file, (columns or {}).get(file.path)))
    return _with_copies(_with_companions(items))


def _holds(result: ReadResult) -> bool:
    held = (result.runs, result.snapshots, result.gpu_logs, result.startup)
    return any(held) or COMPANION_NOTE in result.notes


def _item(file: GivenFile, columns: Mapping[str, str] | None) -> BundleItem:
    if file.left_out is not None or file.error is not None:
        return BundleItem(file=file, left_out=file.left_out, error=file.error)
    try:
        result = read(_content(file), file.path, columns)
    except PlimsollError as error:
        return BundleItem(file=file, error=error.message)
    except MemoryError:
        return BundleItem(file=file, error=msg("{file}: it needs more memory than there is.", file=file.path))
    except _DEFECTS:
        # Our own defect must not cost the other files their answers; the log has it in full.
        _log.exception("reading %s", file.path)
        return BundleItem(
            file=file, error=msg("{file}: it hit a defect of Plimsoll, please report it with the log.", file=file.path)
        )
    return BundleItem(file=file, result=result, suggestions=_suggestions(file, result))


def _content(file: GivenFile) -> bytes:
    if file.size_bytes > MAX_FILE_BYTES:
        raise UnreadableFile(
            msg(
                "{file}: at most {limit:count} bytes are read, this file has {size:count}: "
                "write it without per-request details.",
                file=file.path,
                limit=MAX_FILE_BYTES,
                size=file.size_bytes,
            )
        )
    content = file.load()
    refuse_size(content, file.path)
    return content


def _suggestions(file: GivenFile, result: ReadResult) -> dict[str, str | int]:
    """Facts in the path that the runs lack."""
    if not result.runs:
        return {}
    first = result.runs[0]
    known = {name: getattr(first, name) for name in ("gpu", "gpu_count", "max_concurrency")}
    engine = first.engine or first.backend or first.tool
    return suggested(file.path, known | {"engine": engine or None, "tensor_parallel": first.gpu_count})


def _with_companions(items: Sequence[BundleItem]) -> tuple[BundleItem, ...]:
    """Companions joined to their leads, kind after kind."""
    joined = list(items)
    for kind in COMPANIONS:
        for index, item in enumerate(joined):
            if item.result is None or item.belongs_to is not None or item.result.format != kind.format:
                continue
            lead = _lead(joined, item, kind)
            if lead is not None:
                joined[index] = replace(item, belongs_to=joined[lead].path)
                joined[lead] = _joined(joined[lead], item, kind)
    return tuple(joined)


def _lead(items: Sequence[BundleItem], companion: BundleItem, kind: Companion) -> int | None:
    """The one file beside it that it completes; of several kinds the most telling."""
    for code in kind.leads:
        found = [
            index
            for index, item in enumerate(items)
            if item.result is not None and item.result.format == code and _beside(item, companion)
        ]
        if len(found) == 1:
            return found[0]
    return None


def _beside(item: BundleItem, companion: BundleItem) -> bool:
    same_place = (item.file.folder, stem(item.file.name)) == (companion.file.folder, stem(companion.file.name))
    return same_place and item is not companion and item.belongs_to is None and _agree(item, companion)


def _agree(item: BundleItem, companion: BundleItem) -> bool:
    pairs = zip(_runs(item)[:1], _runs(companion)[:1], strict=False)
    server_side = companion.result is not None and companion.result.format.endswith("_prometheus")
    return server_side or all(agree(run, other) for run, other in pairs)


def _runs(item: BundleItem) -> tuple[BenchmarkRun, ...]:
    return () if item.result is None else item.result.runs


def _joined(lead: BundleItem, companion: BundleItem, kind: Companion) -> BundleItem:
    assert lead.result is not None
    assert companion.result is not None  # only files that were read are joined
    runs = tuple(kind.join(run, companion.result, companion.file.load) for run in lead.result.runs)
    warnings, notes = warnings_of_file(runs)
    result = replace(
        lead.result,
        runs=runs,
        warnings=warnings,
        notes=tuple(dict.fromkeys((*lead.result.notes, *notes, _JOINED))),
    )
    return replace(lead, result=result, companions=(*lead.companions, companion.file))


def _with_copies(items: Sequence[BundleItem]) -> tuple[BundleItem, ...]:
    runs = {item.path: item.result.runs for item in items if item.to_store and item.result and item.result.runs}
    found = copies(runs)
    return tuple(replace(item, same_as=found.get(item.path)) if item.belongs_to is None else item for item in items)
