"""Words about the evaluation: what is measured, which cells are filled, what to run next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from calc.poc.cells import CacheStrategy, Cell, Repetition
from calc.poc.coverage import CellEvidence, CellState, PlacedRun
from calc.poc.place import Gap
from calc.poc.plan import WHY, Plan, PlannedCell, PlanSet
from calc.poc.script import GPU_LOG, Target
from calc.poc.status import STEPS, Required
from calc.poc.tools import RESULTS
from calc.units import SECONDS_PER_MINUTE
from data.store import StoredRun
from ui import format as show
from ui.story.words import Figure
from ui.text import t


def strategies() -> dict[str, str]:
    """Strategy code → its name."""
    return {
        CacheStrategy.NO_CACHE.value: t("No KV cache"),
        CacheStrategy.PER_REQUEST.value: t("Per request"),
        CacheStrategy.PAGED.value: t("Paged"),
        CacheStrategy.PREFIX.value: t("Prefix reuse"),
        CacheStrategy.OFFLOAD.value: t("Offload"),
    }


def levels() -> dict[str, str]:
    """Repetition code → its name."""
    return {
        Repetition.LOW.value: t("Low"),
        Repetition.MEDIUM.value: t("Medium"),
        Repetition.HIGH.value: t("High"),
    }


def gaps(missing: Sequence[Gap]) -> str:
    """What a run lacks for its place."""
    names = {
        Gap.STRATEGY: t("strategy"),
        Gap.REPETITION: t("repetition"),
        Gap.CONTEXT: t("prompt tokens"),
        Gap.CONCURRENCY: t("concurrency"),
    }
    return t("no place yet: {names} not known", names=", ".join(names[gap] for gap in missing))


def cell_name(cell: Cell) -> str:
    """A cell in one line."""
    return " · ".join([strategies()[cell.strategy], load_name(cell)])


def load_name(cell: Cell) -> str:
    """A cell without its strategy."""
    return t(
        "{level} repetition, {context:tok}, {users:count} in flight",
        level=levels()[cell.repetition],
        context=cell.context_tokens,
        users=cell.concurrency,
    )


def place_name(run: PlacedRun) -> str:
    """The cell of a run, or what it lacks for one."""
    return cell_name(run.place) if isinstance(run.place, Cell) else gaps(run.place)


def sentence(runs: Sequence[StoredRun]) -> str:
    """What the store holds, in one sentence."""
    files = len({run.file_id for run in runs})
    return t("{number:count} load points of {files:count} files are stored.", number=len(runs), files=files)


def figures(runs: Sequence[StoredRun]) -> list[Figure]:
    """How much was measured, and how much of it can be used as it stands."""
    unplaced = sum(run.declaration is None for run in runs)
    refused = sum(not run.is_evidence for run in runs)
    return [
        Figure(label=t("Load points stored"), value=show.count(len(runs)), provenance="measured"),
        Figure(
            label=t("Not usable as they stand"),
            value=show.count(refused),
            provenance="measured",
            help=t("Load points with a finding that has to be cleared up first."),
        ),
        Figure(
            label=t("Nothing declared"),
            value=show.count(unplaced),
            provenance="declared",
            help=t("Load points of which nobody has said strategy and repetition: they fill no cell of the matrix."),
        ),
    ]


def sets() -> dict[str, str]:
    """Plan set code → its name."""
    return {
        PlanSet.MINIMAL.value: t("Minimal"),
        PlanSet.RECOMMENDED.value: t("Recommended"),
        PlanSet.FULL.value: t("Full"),
    }


def set_sentence(plan: Plan, cells: Sequence[PlannedCell], evidence: Sequence[CellEvidence]) -> str:
    """What a set costs, and how much of it is done."""
    filled = sum(bool(one.usable) for one in evidence)
    total = len({one.cell for one in cells})
    return t(
        "{filled:count} of {total:count} cells have evidence. All of them take {runs:count} runs and about "
        "{hours:.3g} GPU-hours, starting the server not counted.",
        filled=filled,
        total=total,
        runs=sum(len(one.seeds) for one in cells),
        hours=plan.gpu_hours(cells),
    )


BADGES: Mapping[CellState, tuple[str, str]] = {
    CellState.MISSING: ("gray", ":material/radio_button_unchecked:"),
    CellState.MEASURED: ("green", ":material/check:"),
    CellState.WARNED: ("orange", ":material/warning:"),
    CellState.DOUBTFUL: ("red", ":material/block:"),
    CellState.CONTRADICTING: ("red", ":material/compare_arrows:"),
}
"""Colour and sign; the word beside them says the same."""


def state_name(found: CellEvidence) -> str:
    """The state of a cell in words."""
    count = len(found.runs)
    return {
        CellState.MISSING: t("missing"),
        CellState.MEASURED: t("1 run") if count == 1 else t("{count:count} runs", count=count),
        CellState.WARNED: t("{count:count} warned", count=count),
        CellState.DOUBTFUL: t("{count:count} unused", count=count),
        CellState.CONTRADICTING: t("{count:count} differ", count=count),
    }[found.state]


def badge(found: CellEvidence | None) -> str:
    """A cell as Markdown: colour, sign and word; a dash where the plan wants none."""
    if found is None:
        return "–"
    colour, sign = BADGES[found.state]
    return f":{colour}-badge[{sign} {state_name(found)}]"


def grid(evidence: Sequence[CellEvidence], context_tokens: int) -> list[Mapping[str, str]]:
    """One context: a row per repetition and concurrency, a column per strategy."""
    here = {one.cell: one for one in evidence if one.cell.context_tokens == context_tokens}
    columns = [code for code in CacheStrategy if any(cell.strategy is code for cell in here)]
    order = (Repetition.MEDIUM, Repetition.LOW, Repetition.HIGH)
    rows = sorted({(order.index(cell.repetition), cell.concurrency) for cell in here})
    names = {level: levels()[level] for level in order} | {Repetition.MEDIUM: f"**{levels()[Repetition.MEDIUM]}**"}
    head = t("Repetition · in flight")
    return [
        {
            head: f"{names[order[level]]} · {show.count(users)}",
            **{
                strategies()[code]: badge(
                    here.get(
                        Cell(strategy=code, repetition=order[level], context_tokens=context_tokens, concurrency=users)
                    )
                )
                for code in columns
            },
        }
        for level, users in rows
    ]  # fmt: skip


def contradictions(evidence: Sequence[CellEvidence]) -> list[str]:
    """Cells whose runs do not agree, with what they say."""
    return [f"{cell_name(one.cell)}: {t(one.why)}" for one in evidence if one.why is not None]


def why(planned: PlannedCell) -> str:
    """Why a cell is in the plan."""
    return t(WHY[planned.purpose])


def arrivals(planned: PlannedCell) -> str:
    """How requests of a cell come."""
    if planned.rate_per_s is not None:
        return t("{rate:rate} whatever the server does", rate=planned.rate_per_s)
    users = planned.cell.concurrency
    return t("one request at a time") if users == 1 else t("{users:count} requests kept in flight", users=users)


def facts(planned: PlannedCell) -> list[str]:
    """The load of a cell, its size and the hit rate it must show."""
    load, shape = planned.load, planned.load.shape
    return [
        t(
            "{requests:count} requests: {prefix:tok} shared, {suffix:tok} of their own, {output:tok} answered; "
            "{arrivals}; runs: {runs:count}, of about {minutes:.2g} min each",
            requests=load.requests,
            prefix=shape.prefix_tokens,
            suffix=shape.suffix_tokens,
            output=shape.output_tokens,
            arrivals=arrivals(planned),
            runs=len(planned.seeds),
            minutes=planned.run_s / SECONDS_PER_MINUTE,
        ),
        t(
            "{groups:count} distinct prefixes, {uses:count} uses each, {tokens:tok} together; "
            "no hit rate can pass {most:pct}",
            groups=load.groups,
            uses=load.uses,
            tokens=load.working_set_tokens,
            most=shape.ceiling_share,
        ),
    ]  # fmt: skip


def steps(required: Sequence[Required]) -> list[Mapping[str, str]]:
    """The four steps, how far each is, and what is missing with where it comes from."""
    rows: list[Mapping[str, str]] = []
    for step, title in STEPS.items():
        own = [one for one in required if one.step == step]
        missing = [one for one in own if not one.measured]
        rows.append(
            {
                t("Evaluation step"): f"{step} · {t(title)}",
                t("Measured"): t("{done:count} of {all:count}", done=len(own) - len(missing), all=len(own)),
                t("Missing"): "; ".join(t(one.title) for one in missing) or t("nothing"),
            }
        )
    return rows


def missing_rows(required: Sequence[Required]) -> list[Mapping[str, str]]:
    """Every missing figure with where it comes from."""
    return [
        {t("Evaluation step"): str(one.step), t("Missing"): t(one.title), t("Comes from"): t(one.how)}
        for one in required
        if not one.measured
    ]


def state_words() -> Mapping[str, str]:
    """Cell states for the legend."""
    return {
        CellState.MISSING.value: t("no run yet"),
        CellState.MEASURED.value: t("runs without warnings"),
        CellState.WARNED.value: t("every run has a warning"),
        CellState.DOUBTFUL.value: t("only runs that have to be cleared up first"),
        CellState.CONTRADICTING.value: t("runs more than a fifth apart"),
    }


def badge_word(code: str) -> str:
    """A state's sign for the legend."""
    return BADGES[CellState(code)][1]


def planned_name(planned: PlannedCell) -> str:
    """A planned cell in one line; its open-loop twin is told apart."""
    name = cell_name(planned.cell)
    return name if planned.rate_per_s is None else t("{cell}, at a rate", cell=name)


def before(planned: PlannedCell, target: Target) -> str:
    """What is run before each run, as shell: empty the cache, read the counters, watch the GPUs."""
    reset = [shlex.join(target.reset)] if target.reset else []
    gpus = f"{GPU_LOG} > {RESULTS}/gpu-{planned.name}.csv & gpu_log=$!"
    return "\n".join([f"mkdir -p {RESULTS}", *reset, _scrape(planned, target, "before"), gpus])


def after(planned: PlannedCell, target: Target) -> str:
    """What is run after each run."""
    return "\n".join(["kill $gpu_log", _scrape(planned, target, "after")])


def _scrape(planned: PlannedCell, target: Target, when: str) -> str:
    return f"{shlex.join(target.scrape)} > {RESULTS}/{planned.name}-{when}.txt"
