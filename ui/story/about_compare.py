"""Words about comparisons: what a strategy changed, how sure that is, and runs beside a pinned baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from calc.poc.cells import CacheStrategy, Repetition
from calc.poc.coverage import Gain, PlacedRun, refusal
from calc.poc.effect import Basis, Effect, effect
from data.store import StoredRun
from ui import format as show
from ui.benchmarks.runs import label, name, statistic_name
from ui.charts.poc import LoadPoint, Series, text_of
from ui.story import about_poc, words
from ui.text import t

Value: TypeAlias = Callable[[PlacedRun], float | None]
Text: TypeAlias = Callable[[float], str]
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
SHOWN_METRICS = ("ttft", "tpot", "e2e")


def statistics() -> dict[str, str]:
    """Statistic code → its name."""
    return {code: statistic_name(code) for code in STATISTICS}


def metrics() -> dict[str, str]:
    """Metric code → its name."""
    return {code: words.term_label(code) for code in SHOWN_METRICS}


def change(found: Effect) -> str:
    """A change with its sign."""
    return _signed(found.change_share)


def _signed(share: float) -> str:
    return f"{share * show.PERCENT:+.1f} %"


def interval(found: Effect) -> str:
    """The 95 % interval of a change; an end that cannot be bounded is left open."""
    low, high = found.interval_share
    if found.basis is Basis.UNKNOWN:
        return t("not known")
    ends = [t("open") if end is None else _signed(end) for end in (low, high)]
    return t("{low} to {high}", low=ends[0], high=ends[1])


def basis(found: Effect) -> str:
    """What an interval rests on."""
    return {
        Basis.REPEATS: t(
            "{before:count} and {after:count} runs: their spread", before=found.before_runs, after=found.after_runs
        ),
        Basis.REQUESTS: t("one run on a side: the spread of its requests, not of runs"),
        Basis.BOUND: t("one run on a side: bounds from its percentiles and count"),
        Basis.UNKNOWN: t("one run each: chance not known"),
    }[found.basis]


def verdict(found: Effect) -> str:
    """Whether a change is more than chance."""
    if found.certain is None:
        return t("cannot be told")
    return t("more than chance") if found.certain else t("within chance")


def _worth_quoting(one: Gain) -> tuple[bool, bool]:
    """Repeated cells before others, prefix reuse before other strategies."""
    return one.effect is None or one.effect.basis is not Basis.REPEATS, one.cell.strategy is not CacheStrategy.PREFIX


def headline(gains: Sequence[Gain], metric: str, statistic: str) -> str:
    """The gain that may be quoted: medium repetition, prefix reuse before other strategies."""
    medium = [
        one for one in gains if one.effect is not None and one.cell.repetition is Repetition.MEDIUM
    ]  # fmt: skip
    if not medium:
        return t("No cell of medium repetition has runs with and without reuse yet: no gain may be quoted.")
    first = min(medium, key=_worth_quoting)
    assert first.effect is not None
    figure = f"{words.term_label(metric)} {statistic_name(statistic)}"
    return t(
        "{strategy} at medium repetition, {context:tok}, {users:count} in flight: {metric} {change} ({interval}), "
        "{verdict}.",
        strategy=about_poc.strategies()[first.cell.strategy],
        context=first.cell.context_tokens,
        users=first.cell.concurrency,
        metric=figure,
        change=change(first.effect),
        interval=interval(first.effect),
        verdict=verdict(first.effect),
    )


def gain_rows(gains: Sequence[Gain], metric: str) -> list[Mapping[str, str]]:
    """One row per cell of another strategy, as Markdown that a phone can show: cell, change, what it rests on."""
    return [
        {
            t("Cell"): f"**{about_poc.strategies()[one.cell.strategy]}**  \n{about_poc.load_name(one.cell)}",
            t("Change"): f"**{change(one.effect)}**  \n{interval(one.effect)}" if one.effect else show.missing(),
            t("Rests on"): f":gray[{_rests_on(one, metric)}]",
        }
        for one in gains
    ]


def _rests_on(one: Gain, metric: str) -> str:
    if one.effect is not None:
        return f"{_from_to(one.effect, metric)}  \n{basis(one.effect)}"
    return t(one.refused) if one.refused else t("a side does not state it")


def _from_to(found: Effect, metric: str) -> str:
    return f"{text_of(metric, found.before_s)} → {text_of(metric, found.after_s)}"


def beside_rows(
    baseline: PlacedRun, others: Sequence[PlacedRun], stored: Mapping[str, StoredRun], metric: str
) -> list[Mapping[str, str]]:
    """Percentiles of each run, and what changed against the pinned one."""
    return [_beside(baseline, run, stored[run.run_id], metric) for run in (baseline, *others)]


def _beside(baseline: PlacedRun, run: PlacedRun, row: StoredRun, metric: str) -> Mapping[str, str]:
    pinned = run.run_id == baseline.run_id
    named = [name(row.run), row.run_id[:6], *([t("baseline")] if pinned else [])]
    cells = {t("Run"): " · ".join(named)}
    for statistic in STATISTICS:
        own = run.latencies[metric].value_s(statistic) if metric in run.latencies else None
        shown = words.latency_text(metric, own)
        sides = [one.latencies.get(metric) for one in (baseline, run)]
        found = None if pinned or None in sides else effect([sides[0]], [sides[1]], statistic)  # type: ignore[list-item]
        cells[statistic_name(statistic)] = f"{shown} ({change(found)})" if found else shown
    rate = row.run.output_token_throughput_per_s
    return cells | {t("Output"): show.tokens_rate(rate), t("Hit rate"): show.percent(row.run.prefix_hit_share)}


def run_name(run: PlacedRun, stored: StoredRun) -> str:
    """A run in one line, its strategy first where it is known."""
    return label(stored) if run.cell is None else f"{about_poc.strategies()[run.cell.strategy]} · {label(stored)}"


def refusals(baseline: PlacedRun, others: Sequence[PlacedRun], stored: Mapping[str, StoredRun]) -> list[str]:
    """Which chosen runs must not be compared with the pinned one, and what differs."""
    return [
        f"{run_name(run, stored[run.run_id])}: {t(why)}"
        for run in others
        if (why := refusal(baseline, run)) is not None
    ]


def of_others(runs: Sequence[StoredRun]) -> list[str]:
    """That chosen runs were not made on the deployment they are held against."""
    if not runs:
        return []
    told = ", ".join(label(run) for run in runs)
    return [t("Measured on another model, other GPUs or another engine than the scenario's: {runs}.", runs=told)]


def errors(medians: Mapping[str, float | None]) -> str:
    """Median absolute error of the chosen runs, by metric."""
    known = ", ".join(f"{title} {show.percent(value)}" for title, value in medians.items() if value is not None)
    return t("Median error of the model on these runs: {errors}.", errors=known or show.missing())


def latency_series(runs: Sequence[PlacedRun], metric: str, statistic: str) -> list[Series]:
    """Placed runs by strategy, for one latency."""
    return _series(runs, lambda run: run.latencies[metric].value_s(statistic) if metric in run.latencies else None,
                   lambda value: text_of(metric, value))  # fmt: skip


def throughput_series(runs: Sequence[PlacedRun]) -> list[Series]:
    """The same for output tokens per second."""
    return _series(runs, lambda run: run.facts.output_token_throughput_per_s, show.tokens_rate)


def _series(runs: Sequence[PlacedRun], value: Value, text: Text) -> list[Series]:
    found = []
    for code, title in about_poc.strategies().items():
        own = [(run, value(run)) for run in runs if run.cell is not None and run.cell.strategy == code]
        points = tuple(
            LoadPoint(name=about_poc.cell_name(run.cell), concurrency=run.cell.concurrency, value=at, text=text(at))
            for run, at in own
            if at is not None and run.cell is not None
        )
        if points:
            found.append(Series(name=title, points=points))
    return found


def pareto_series(runs: Sequence[PlacedRun], gpu_count: int) -> list[tuple[str, list[tuple[str, float, float]]]]:
    """(name, tokens/s per user, tokens/s per GPU) by strategy; runs that do not state both stay away."""
    found = []
    for code, title in about_poc.strategies().items():
        points = []
        for run in runs:
            gap, rate = run.facts.tpot.mean_s or run.facts.tpot.p50_s, run.facts.output_token_throughput_per_s
            if run.cell is not None and run.cell.strategy == code and gap and rate:
                gpus = run.facts.gpu_count or gpu_count
                points.append((about_poc.cell_name(run.cell), 1 / gap, rate / gpus))
        if points:
            found.append((title, points))
    return found
