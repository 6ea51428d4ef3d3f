"""Words for what is asked about a run: labels, choices, and what suggests an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from calc.poc.cells import CacheStrategy, Repetition, SessionGroup
from calc.poc.place import suggested
from data.catalogue import gpus_named
from data.declared import open_facts
from data.engine_flags import flag_hints
from data.formats.judge import facts_of
from data.store import StoredRun
from ui import format as show
from ui.story import about_poc
from ui.text import t

AXES: Mapping[str, Sequence[str]] = {
    "strategy": tuple(CacheStrategy),
    "repetition": tuple(Repetition),
    "session_group": tuple(SessionGroup),
}
"""Facts with a closed list of answers."""
TOLD_BY_FLAGS = {"strategy", "gpu_count"}
"""Facts that start options may mean."""


def label(fact: str) -> str:
    """What is asked."""
    return {
        "model": t("Model"),
        "gpu": t("GPU"),
        "gpu_count": t("Number of GPUs"),
        "engine": t("Engine"),
        "engine_version": t("Engine version"),
        "engine_flags": t("Start options"),
        "strategy": t("Cache strategy"),
        "repetition": t("Repetition of prompts"),
        "session_group": t("Kind of sessions"),
    }[fact]


def explanation(fact: str) -> str | None:
    """What the answer decides, where that is not plain."""
    return {
        "gpu_count": t("All GPUs of the run, over all replicas."),
        "engine_flags": t("As typed, for example --no-enable-prefix-caching: what is known in them is read."),
        "strategy": t("How KV was kept while the run was measured. The baseline is per request: nothing found again."),
        "repetition": t("Low: every prompt is new. Medium: a prefix is used about twice. High: many times."),
        "session_group": t("Short, long or multi-turn conversations are looked at apart."),
    }.get(fact)


def choices(fact: str) -> dict[str, str]:
    """Codes and names of a closed list."""
    return {"strategy": about_poc.strategies(), "repetition": about_poc.levels(), "session_group": groups()}[fact]


def groups() -> dict[str, str]:
    """Kinds of conversations."""
    return {
        SessionGroup.SHORT.value: t("short"),
        SessionGroup.LONG.value: t("long"),
        SessionGroup.MULTI_TURN.value: t("multi-turn"),
    }


def missing(stored: Iterable[StoredRun]) -> tuple[str, ...]:
    """Facts that at least one of the runs lacks."""
    lacking = [open_facts(one.run, one.declaration.declaration if one.declaration else None) for one in stored]
    return tuple(dict.fromkeys(fact for facts in lacking for fact in facts))


def question(stored: Sequence[StoredRun], facts: Sequence[str]) -> str:
    """Why this is asked, and of how many runs."""
    names = t(", ").join(label(fact) for fact in facts)
    if len(stored) == 1:
        return t("Not said by the file: {names}. What you do not know stays open.", names=names)
    return t(
        "Not said by the file ({number:count} load points): {names}. One answer holds for all of them; runs that "
        "differ are answered file by file under In the store. What you do not know stays open.",
        number=len(stored), names=names,
    )  # fmt: skip


def from_name(suggestions: Mapping[str, str | int], gpu_names: Mapping[str, str]) -> dict[str, str | int]:
    """What a file's name suggests, as answers of the form: a GPU only where the name means one."""
    found = {name: suggestions[name] for name in ("gpu_count", "engine") if name in suggestions}
    if "gpu_count" not in found and "tensor_parallel" in suggestions:
        found["gpu_count"] = suggestions["tensor_parallel"]
    named = [gpu.id for gpu in gpus_named(str(suggestions.get("gpu", "")))]
    if len(named) == 1 and named[0] in gpu_names:
        found["gpu"] = named[0]
    return found


def likely_first(gpu_names: Mapping[str, str], suggestions: Mapping[str, str | int]) -> dict[str, str]:
    """GPUs that the name of the file may mean at the head of the list."""
    named = [gpu.id for gpu in gpus_named(str(suggestions.get("gpu", "")))]
    return {code: gpu_names[code] for code in (*named, *gpu_names) if code in gpu_names}


def from_flags(flags: str) -> dict[str, str | int]:
    """What start options mean, as answers of the form."""
    found = flag_hints(flags)
    told = {"strategy": found.strategy.value if found.strategy else None, "gpu_count": found.gpu_count}
    return {fact: value for fact, value in told.items() if value is not None}


def hint_of_hits(stored: Sequence[StoredRun]) -> str:
    """What measured hit rates hint at; never taken without somebody's word."""
    shares = [one.run.prefix_hit_share for one in stored if one.run.prefix_hit_share]
    found = [suggested(facts_of(one.run)) for one in stored]
    levels = {one.repetition for one in found if one.repetition is not None}
    if not shares or len(levels) != 1:
        return ""
    (level,) = levels
    return t(
        "The measured hit rate of {share} hints at prefix reuse and {level} repetition.",
        share=show.percent(max(shares)), level=about_poc.levels()[level.value],
    )  # fmt: skip
