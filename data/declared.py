"""What people declare about a run, laid over its file: what the file says stands, and a contradiction is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from calc.messages import Message, msg
from calc.poc.cells import CacheStrategy
from data.catalogue import gpus_named, short_name
from data.engine_flags import flag_hints
from data.records import BenchmarkRun, RunDeclaration

IN_THE_RECORD = ("model", "gpu", "gpu_count", "engine")
"""Declared facts that a file may state itself."""
ASKED = ("model", "gpu", "gpu_count", "engine", "engine_version", "engine_flags", "strategy", "repetition",
         "session_group")  # fmt: skip
"""Facts a run needs for its place among others."""
WITHOUT_REUSE = (CacheStrategy.NO_CACHE, CacheStrategy.PER_REQUEST, CacheStrategy.PAGED)


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A run with its declaration laid over it."""

    run: BenchmarkRun
    declared: tuple[str, ...] = ()
    """Fields of ``run`` whose value somebody declared; every other one is the file's."""
    contradictions: tuple[Message, ...] = ()


def apply(run: BenchmarkRun, declaration: RunDeclaration | None) -> Applied:
    """Fill what the file leaves open."""
    if declaration is None:
        return Applied(run=run)
    told: Mapping[str, str | int | None] = {name: getattr(declaration, name) for name in IN_THE_RECORD}
    filled = {name: value for name, value in told.items() if value is not None and getattr(run, name) is None}
    return Applied(
        run=replace(run, **filled),  # type: ignore[arg-type]  # the names are fields of both records, of one type each
        declared=tuple(filled),
        contradictions=tuple(_contradictions(run, told)),
    )


def _contradictions(run: BenchmarkRun, told: Mapping[str, str | int | None]) -> Iterator[Message]:
    for name, value in told.items():
        written = getattr(run, name)
        if value is not None and written is not None and not _same(name, str(written), str(value)):
            yield msg(
                "{name}: the file says {written}, {declared} was declared; the file's value is used.",
                name=name,
                written=str(written),
                declared=str(value),
            )


def _same(name: str, written: str, declared: str) -> bool:
    """Equal but for case and folder; a GPU also when the file's name may mean it."""
    if name == "gpu" and declared in {gpu.id for gpu in gpus_named(written)}:
        return True
    return short_name(written).lower() == short_name(declared).lower()


def reuse_declared(declaration: RunDeclaration | None) -> bool | None:
    """Whether the run was meant to find prompts again; ``None`` when nobody said."""
    if declaration is None:
        return None
    if declaration.strategy is not None:
        return declaration.strategy not in WITHOUT_REUSE
    return flag_hints(declaration.engine_flags).reuse


def open_facts(run: BenchmarkRun, declaration: RunDeclaration | None) -> tuple[str, ...]:
    """Facts that neither the file nor anybody has stated, in the order in which they are asked for."""
    told = declaration or RunDeclaration()
    stated = {name: getattr(run, name) for name in IN_THE_RECORD}
    stated["engine_version"] = run.extra.get("engine_version")
    return tuple(name for name in ASKED if getattr(told, name) is None and stated.get(name) is None)


def merged(before: RunDeclaration | None, now: RunDeclaration) -> RunDeclaration:
    """A newer declaration; what it leaves open stays as it was declared before."""
    if before is None:
        return now
    told = {field.name: getattr(now, field.name) for field in fields(RunDeclaration)}
    return replace(before, **{name: value for name, value in told.items() if value is not None})
