"""The latency report in words: sentence, numbers, rows, formulas, alt text."""

from __future__ import annotations

from collections.abc import Mapping

from calc.latency import Bands, LatencyReport, LoadSweep
from calc.memory import MemoryReport
from calc.scenario import Scenario
from calc.simulator.replica import prepare
from calc.workload import Slo
from ui import format as show
from ui.glossary import BOUNDS, TERMS
from ui.story.words import (
    DEFAULT_METRIC,
    METRICS,
    Figure,
    calibrated,
    has_target,
    latency_text,
    missed,
    target,
    unstable,
)
from ui.text import t


def verdict(latency: LatencyReport, slo: Slo) -> bool | None:
    """True: meets the SLO; False: misses it or is saturated; None: no target to judge by."""
    if latency.saturated or missed(latency, slo):
        return False
    return True if has_target(slo) else None


def percentile(metric: str, latency: LatencyReport, slo: Slo) -> Figure:
    """One latency at the SLO's percentile, against its target."""
    value = latency_text(metric, getattr(latency, metric).at(slo.percentile_share))
    over = unstable(latency) or metric in missed(latency, slo)
    limit = target(slo, metric)
    meaning = t(TERMS[metric].meaning)
    if limit is not None:
        meaning += " " + t("Shown against its target.")
    label = f"{TERMS[metric].label} {show.percentile_name(slo.percentile_share)}"
    if unstable(latency):
        value = t("unstable")
    return Figure(
        label=label,
        value=value,
        provenance="simulated",
        help=meaning,
        target="" if limit is None else latency_text(metric, limit),
        over=over and limit is not None,
    )


def knee(sweep: LoadSweep) -> Figure:
    """The highest load within the SLO."""
    value = show.rate(sweep.knee_load) if sweep.axis == "rate" else show.decimal(sweep.knee_load)
    if sweep.knee_load is None:
        value = t("none meets it")
    return Figure(label=t("Load line (knee)"), value=value, provenance="simulated", help=t(TERMS["knee"].meaning))


def limit(latency: LatencyReport) -> Figure:
    """The stability limit."""
    return Figure(
        label=t("Stability limit"),
        value=show.rate(latency.max_rate_per_s),
        provenance="estimated",
        help=t("Above this rate queues grow without end, whatever the target."),
    )


def sentence(latency: LatencyReport, slo: Slo) -> str:
    """Is the SLO met, and what binds?"""
    bound = t(BOUNDS[latency.bound])
    if latency.saturated:
        return t(
            "Saturated: at most {limit:rate} can be served; {bound} binds.", limit=latency.max_rate_per_s, bound=bound
        )
    over = missed(latency, slo)
    if over:
        names = t(", ").join(TERMS[metric].label for metric in over)
        return t(
            "SLO missed on {metrics} at {percentile}; {bound} binds.",
            metrics=names,
            percentile=show.percentile_name(slo.percentile_share),
            bound=bound,
        )
    if not has_target(slo):
        return t("No target is set; {bound} binds at this load.", bound=bound)
    return t(
        "SLO met at {percentile}; {bound} binds.", percentile=show.percentile_name(slo.percentile_share), bound=bound
    )


def curve_alt(sweep: LoadSweep, metric: str) -> str:
    """The load curve in words: its ends."""
    first, last = getattr(sweep.reports[0], metric), getattr(sweep.reports[-1], metric)
    return t(
        "{metric} at P50, P95 and P99 over load: P95 {first} at {low:.3g} to {last} at {high:.3g}.",
        metric=TERMS[metric].label,
        first=latency_text(metric, first.p95_s),
        last=latency_text(metric, last.p95_s),
        low=sweep.loads[0],
        high=sweep.loads[-1],
    )


def parts_alt(latency: LatencyReport) -> str:
    """The decomposition in words."""
    return t(
        "Mean E2E as a bar: queue {queue:s}, prefill {prefill:s}, decode {decode:s}, network {network:s}.",
        queue=latency.queue_s,
        prefill=latency.prefill_s,
        decode=latency.decode_s,
        network=latency.network_s,
    )


def tightest(latency: LatencyReport, slo: Slo) -> str:
    """The metric that uses most of its target at this load: the one to look at first."""
    share = slo.percentile_share
    used = {
        metric: (getattr(latency, metric).at(share) or 0.0) / limit
        for metric in METRICS
        if (limit := target(slo, metric)) is not None
    }
    return max(used, key=lambda metric: used[metric]) if used else DEFAULT_METRIC


def percentiles(latency: LatencyReport, slo: Slo) -> list[Mapping[str, str]]:
    """P50, P95, P99 of each metric, and how far the SLO's percentile could be off by chance."""
    name = show.percentile_name(slo.percentile_share)
    return [
        {
            t("Metric"): TERMS[metric].label,
            "P50": _shown(latency, metric, values.p50_s),
            "P95": _shown(latency, metric, values.p95_s),
            "P99": _shown(latency, metric, values.p99_s),
            t("Mean"): _shown(latency, metric, values.mean_s),
            t("95 % band of {percentile}", percentile=name): _band(metric, latency, slo.percentile_share),
            t("Provenance"): t("simulated"),
        }
        for metric in ("ttft", "itl", "tpot", "e2e")
        for values in (getattr(latency, metric),)
    ]


def _shown(latency: LatencyReport, metric: str, value_s: float | None) -> str:
    return t("unstable") if unstable(latency) else latency_text(metric, value_s)


def _band(metric: str, latency: LatencyReport, share: float) -> str:
    bands: Bands | None = getattr(latency, f"{metric}_band", None)
    if bands is None or unstable(latency):
        return "–"
    low, high = {0.5: bands.p50_s, 0.9: bands.p90_s, 0.95: bands.p95_s, 0.99: bands.p99_s}[share]
    return f"{latency_text(metric, low)} – {latency_text(metric, high)}"


def calibration(latency: LatencyReport) -> str:
    """Whether measured constants stand behind the simulation."""
    return calibrated(latency.calibration)


def facts(latency: LatencyReport) -> list[str]:
    """SLO attainment, throughput, KV usage and what mixes at this load."""
    met = (
        []
        if latency.slo_attainment_share is None or latency.goodput_per_s is None or unstable(latency)
        else [
            t(
                "{share:pct} of requests meet every target: goodput {goodput:rate}.",
                share=latency.slo_attainment_share,
                goodput=latency.goodput_per_s,
            )
        ]
    )
    return [
        *met,
        _served(latency),
        t(
            "KV usage mean {mean:pct}, max {most:pct}; {preempted:pct} preemptions per request.",
            mean=latency.kv_usage_mean_share,
            most=latency.kv_usage_max_share,
            preempted=latency.preempted_share,
        ),
        t("{mixed:pct} of output tokens come from steps that also prefill.", mixed=latency.mixed_step_share),
    ]


def _served(latency: LatencyReport) -> str:
    rate, tokens = latency.request_rate_per_s, latency.output_tokens_per_s
    if unstable(latency):
        return t(
            "Served {rate:rate} and {tokens:toks} output; more in flight with every minute.", rate=rate, tokens=tokens
        )
    return t(
        "Served {rate:rate} and {tokens:toks} output; {concurrency:.3g} in flight.",
        rate=rate,
        tokens=tokens,
        concurrency=latency.concurrency,
    )


def formulas(scenario: Scenario, memory: MemoryReport) -> list[str]:
    """The formulas with this scenario's numbers put in."""
    model = prepare(scenario, memory, seed=1).model
    return [
        "T_e2e = T_queue + T_prefill + T_decode + T_network",
        t(
            "Each step reads {weights:gib} of weights and {kv} per token of context at {speed:gbps} per GPU, "
            "or computes them if that takes longer; launches and engine code add {fixed:ms}.",
            weights=model.weight_bytes,
            kv=show.kib(model.kv_bytes_per_token),
            speed=model.bandwidth_bytes_per_s,
            fixed=model.fixed_s,
        ),
        t("Stability limit: λ = min over the three caps of b / (E[output] · t(b)), b requests running."),
    ]
