"""Where the time goes, in words: the parts of slow requests, what a step waits for, and the tail of ITL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.anatomy.gaps import BudgetTrial, GapTail
from calc.anatomy.splits import Split
from calc.latency import LoadSweep
from calc.step.view import StepView
from calc.workload import Slo
from ui import format as show
from ui.glossary import BOUNDS, TERMS
from ui.story.words import has_target, latency_text, missed, unstable
from ui.text import t

SPLIT_METRICS = ("e2e", "ttft")
PARTS = ("queue", "prefill", "decode", "network")
TAIL_FROM = 0.01
"""Share of mixed tokens from which P99 of ITL lies in a mixed step."""


def metrics() -> Mapping[str, str]:
    """Latencies that can be taken apart."""
    return {metric: TERMS[metric].label for metric in SPLIT_METRICS}


def split_name(split: Split) -> str:
    """All requests, or those around a percentile."""
    return t("mean") if split.name == "mean" else split.name


def splits_alt(splits: Sequence[Split], metric: str) -> str:
    """The bars in words."""
    bars = "; ".join(
        f"{split_name(split)} {latency_text(metric, split.total_s)}: "
        + ", ".join(f"{part} {show.seconds(getattr(split, f'{part}_s'))}" for part in PARTS)
        for split in splits
    )
    return t("{metric} in its parts: {bars}.", metric=TERMS[metric].label, bars=bars)


def splits_sentence(splits: Sequence[Split], metric: str) -> str:
    """What grows most from the usual request to the slow one."""
    usual, slow = splits[1], splits[2]
    grown = {part: getattr(slow, f"{part}_s") - getattr(usual, f"{part}_s") for part in PARTS}
    most = max(grown, key=lambda part: grown[part])
    words = {
        "queue": t("waiting"),
        "prefill": t("its prefill"),
        "decode": t("its decode"),
        "network": t("the network"),
    }
    return t(
        "What makes a slow {metric} slow is {part}: {more} of the {total} between P50 and P95. "
        "Each bar below the first is the mean of the requests around its percentile, {least:count} or more.",
        metric=TERMS[metric].label,
        part=words[most],
        more=latency_text(metric, grown[most]),
        total=latency_text(metric, slow.total_s - usual.total_s),
        least=min(split.requests for split in splits[1:]),
    )


def over_load_alt(sweep: LoadSweep, metric: str) -> str:
    """The stacked bars in words."""
    return t(
        "Mean {metric} over load in its stacked parts, from {low:.3g} to {high:.3g}.",
        metric=TERMS[metric].label,
        low=sweep.loads[0],
        high=sweep.loads[-1],
    )


def step_rows(view: StepView) -> list[Mapping[str, str]]:
    """What the mean step waits for."""
    return [
        {t("The mean step waits for"): t(BOUNDS[name]), t("Share of its time"): show.percent(share)}
        for name, share in sorted(view.shares.items(), key=lambda item: -item[1])
    ]


def intensity(view: StepView) -> str:
    """Why: FLOP per byte against the GPU's balance."""
    decode = (
        t("decode waits for memory bandwidth")
        if view.decode_flop_per_byte < view.ridge_flop_per_byte
        else t("even decode waits for compute")
    )
    return t(
        "The mean step runs {sequences:.3g} sequences. Decode alone computes {decode:.3g} FLOP per byte read, with its "
        "share of prefill {mixed:.3g}; this GPU balances at {ridge:.3g}, so {bound}.",
        sequences=view.sequences,
        decode=view.decode_flop_per_byte,
        mixed=view.mixed_flop_per_byte,
        ridge=view.ridge_flop_per_byte,
        bound=decode,
    )


def worth(view: StepView) -> str:
    """What a faster GPU could save at most: half of what waits for the part that is doubled."""
    return t(
        "Twice the FLOP/s would shorten the mean step by at most {compute:pct}, twice the memory bandwidth by at most "
        "{memory:pct}.",
        compute=view.shares.get("compute", 0.0) / 2,
        memory=view.shares.get("memory_bandwidth", 0.0) / 2,
    )


def tail(found: GapTail) -> str:
    """Why P99 of ITL is what it is."""
    if found.plain_mean_s is None and found.slow_mean_s is None:
        return t("Outputs of a single token have no gaps.")
    if found.mixed_share < TAIL_FROM:
        return t(
            "{share:pct} of tokens share their step with a prefill, fewer than one in a hundred: P99 of ITL "
            "({p99:ms}) is still a plain step.",
            share=found.mixed_share,
            p99=found.p99_s or 0.0,
        )
    return t(
        "{share:pct} of tokens share their step with a prefill, so P99 of ITL ({p99:ms}) lies in such a step, "
        "P50 ({p50:ms}) in a plain one.",
        share=found.mixed_share,
        p99=found.p99_s or 0.0,
        p50=found.p50_s or 0.0,
    )


def tail_rows(found: GapTail) -> list[Mapping[str, str]]:
    """Plain and mixed steps side by side."""
    rows = (
        (t("plain decode step"), 1 - found.mixed_share, found.plain_mean_s),
        (t("step that also prefills"), found.mixed_share, found.slow_mean_s),
    )
    return [
        {
            t("Step"): name,
            t("Share of tokens"): show.percent(share),
            t("Mean gap"): show.ms(gap_s) if gap_s is not None else "–",
            t("Provenance"): t("simulated"),
        }
        for name, share, gap_s in rows
    ]


def budget_rows(trials: Sequence[BudgetTrial], slo: Slo) -> list[Mapping[str, str]]:
    """The scenario at other token budgets: the tail of ITL against the first token."""
    columns = (("itl", 0.5), ("itl", 0.99), ("ttft", 0.95), ("e2e", 0.95))
    return [
        {
            t("Tokens per step"): f"{show.count(trial.budget_tokens)}" + (" ●" if trial.current else ""),
            **{f"{TERMS[one].label} {show.percentile_name(share)}": _text(trial, one, share) for one, share in columns},
            t("Verdict"): _verdict(trial, slo),
        }
        for trial in trials
    ]


def _text(trial: BudgetTrial, metric: str, share: float) -> str:
    if trial.latency is None or unstable(trial.latency):
        return "–"
    return latency_text(metric, getattr(trial.latency, metric).at(share))


def _verdict(trial: BudgetTrial, slo: Slo) -> str:
    if trial.latency is None:
        return t(trial.refused) if trial.refused else "–"
    if trial.latency.saturated:
        return t("saturated at {limit:rate}", limit=trial.latency.max_rate_per_s)
    over = missed(trial.latency, slo)
    if over:
        return t("misses {metrics}", metrics=t(", ").join(TERMS[one].label for one in over))
    return t("meets the SLO") if has_target(slo) else t("no target")


def budget_sentence(trials: Sequence[BudgetTrial]) -> str:
    """The trade in one sentence."""
    usable = [trial for trial in trials if trial.latency is not None and not unstable(trial.latency)]
    if len(usable) < 2:  # noqa: PLR2004 - a trade needs two
        return t("At this load no other token budget gives a steady latency.")
    first, last = usable[0], usable[-1]
    return t(
        "From {small:count} to {large:count} tokens per step, ITL P99 goes from {itl_small} to {itl_large}, TTFT P95 "
        "from {ttft_small} to {ttft_large}: a smaller budget cuts prefill into shorter steps.",
        small=first.budget_tokens,
        large=last.budget_tokens,
        itl_small=_text(first, "itl", 0.99),
        itl_large=_text(last, "itl", 0.99),
        ttft_small=_text(first, "ttft", 0.95),
        ttft_large=_text(last, "ttft", 0.95),
    )


def formulas(found: GapTail) -> list[str]:
    """How the figures of this view are made."""
    return [
        "T_e2e = T_queue + T_prefill + T_decode + T_network",
        t("Around P95: the mean of the requests between P93 and P97; P99: between P98.5 and P99.5."),
        t(
            "Mixed steps: {share:pct} of decoded tokens were made in steps that also prefilled; as many of the longest "
            "gaps are averaged.",
            share=found.mixed_share,
        ),
        t("Arithmetic intensity: FLOP of a step ÷ bytes it reads; balance: peak FLOP/s ÷ reached bandwidth."),
    ]
