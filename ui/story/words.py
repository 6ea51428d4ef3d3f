"""Words for a scenario and its targets, shared by all pages."""

from __future__ import annotations

from dataclasses import dataclass

from calc import MODEL_VERSION
from calc.calibrate.calibration import UNCALIBRATED
from calc.calibrate.transfer import applied
from calc.latency import LatencyReport
from calc.scenario import Scenario
from calc.workload import Closed, Slo, Workload
from ui import format as show
from ui.glossary import TERMS
from ui.text import t

METRICS = ("ttft", "itl", "e2e")
METRIC_NAMES = {metric: TERMS[metric].label for metric in METRICS}
DEFAULT_METRIC = "ttft"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of the answer row: label with percentile, text with unit, provenance, and what it means."""

    label: str
    value: str
    provenance: str
    help: str = ""
    target: str = ""
    """What it is held against, if anything."""
    over: bool = False
    """Whether it is over its target."""


def versions(scenario: Scenario | None = None) -> str:
    """Which numbers these are, and which measurements the predictions of a scenario rest on."""
    version = t("Model version {version}", version=MODEL_VERSION)
    if scenario is None or scenario.calibration is None:
        return version
    return f"{version} · {calibrated(applied(scenario.calibration, scenario.deployment).name)}"


def calibrated(name: str) -> str:
    """Whether measured constants stand behind a prediction."""
    return t("Calibration: none, generic constants") if name == UNCALIBRATED else t("Calibration: {name}", name=name)


def describe(scenario: Scenario) -> str:
    """The scenario in one line."""
    deployment = scenario.deployment
    split = f"TP {deployment.tp}" + (f" · PP {deployment.pp}" if deployment.pp > 1 else "")
    return " · ".join(
        [
            deployment.model.name,
            f"{deployment.gpu_count} × {deployment.gpu.name} ({split})",
            f"{deployment.engine.id} {deployment.engine.version}",
            load(scenario.workload),
        ]
    )


def load(workload: Workload) -> str:
    """The load in words: rate or concurrency, and the lengths."""
    arrivals = workload.arrivals
    if isinstance(arrivals, Closed):
        what = t("{number:count} requests in flight", number=arrivals.concurrency)
    else:
        what = show.rate(arrivals.rate_per_s)
    prompt, output = workload.prompt_tokens, workload.output_tokens
    return t(
        "{load}, prompt P50/P95 {p50:count}/{p95:count}, output {o50:count}/{o95:count} tokens",
        load=what,
        p50=prompt.quantile(0.5),
        p95=prompt.quantile(0.95),
        o50=output.quantile(0.5),
        o95=output.quantile(0.95),
    )


def latency_text(metric: str, value_s: float | None) -> str:
    """TTFT and ITL in ms, end-to-end in s."""
    return show.seconds(value_s) if metric == "e2e" else show.ms(value_s)


def target(slo: Slo, metric: str) -> float | None:
    """The SLO's target for ``metric`` in seconds."""
    return {"ttft": slo.ttft_s, "itl": slo.itl_s, "e2e": slo.e2e_s}[metric]


def has_target(slo: Slo) -> bool:
    """True when at least one target is set."""
    return any(target(slo, metric) is not None for metric in METRICS)


def missed(latency: LatencyReport, slo: Slo) -> list[str]:
    """The metrics whose percentile is over its target; answers of one token have no ITL that could be."""
    over = []
    for metric in METRICS:
        limit, told = target(slo, metric), getattr(latency, metric)
        value = told.at(slo.percentile_share)
        if limit is not None and told.mean_s is not None and (value is None or value > limit):
            over.append(metric)
    return over


def unstable(latency: LatencyReport) -> bool:
    """Whether latency has no steady value: arrivals outrun the engine. A closed loop's users wait, but only so many."""
    return latency.saturated and latency.offered_rate_per_s is not None


def term_label(key: str) -> str:
    """The standard name of a metric."""
    return TERMS[key].label


def day(moment: str | None) -> str:
    """The date of an ISO time."""
    return show.missing() if not moment else moment[:10]


KIBI = 1024


def short_count(number: float) -> str:
    """32,768 → 32k, as people name context lengths; other numbers in full."""
    return f"{number / KIBI:,.0f}k" if number >= KIBI and number % KIBI == 0 else f"{number:,.0f}"
