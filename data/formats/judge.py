"""From a reader's load points to validity findings: the rules live in ``calc``, this maps the record onto them."""

from __future__ import annotations

from collections.abc import Sequence

from calc.checks.validity import RunFacts, ValidityFinding, check_repeats, check_run
from calc.evidence import Percentiles
from calc.messages import msg
from data.records import BenchmarkRun, LatencyStats, RunWarning

HAND_MADE = ""
"""``tool`` of a run read from somebody's own table."""
P99_REQUESTS = 1000
"""A P99 rests on ten requests from here on."""

_SHARED = (
    "model",
    "request_rate_per_s",
    "request_rate_is_infinite",
    "max_concurrency",
    "achieved_concurrency",
    "num_prompts",
    "completed",
    "failed",
    "success_share",
    "duration_s",
    "input_tokens_mean",
    "output_tokens_mean",
    "request_throughput_per_s",
    "output_token_throughput_per_s",
    "total_token_throughput_per_s",
    "ambiguous_throughput_per_s",
    "prefix_hit_share",
    "flags",
)
"""Fields of the same name and unit in both dataclasses."""


def facts_of(run: BenchmarkRun) -> RunFacts:
    """What the validity rules need of one load point."""
    return RunFacts(
        **{name: getattr(run, name) for name in _SHARED},
        ttft=_percentiles(run.ttft),
        tpot=_percentiles(run.tpot),
        itl=_percentiles(run.itl),
        e2e=_percentiles(run.e2e),
        client_queue_timed=any("client_queue" in key for key in run.extra),
        settings=_settings(run),
        table=run.tool == HAND_MADE,
    )


def warnings_of(run: BenchmarkRun) -> tuple[RunWarning, ...]:
    """Findings on one load point."""
    return tuple(_warning(finding) for finding in check_run(facts_of(run)))


def warnings_of_file(runs: Sequence[BenchmarkRun]) -> tuple[tuple[RunWarning, ...], tuple[str, ...]]:
    """One warning per code, the gravest first of its kind, and note codes for what is only worth knowing."""
    facts = [facts_of(run) for run in runs]
    found = [finding for fact in facts for finding in check_run(fact)]
    repeats = check_repeats(facts)
    if repeats is not None:
        found.append(repeats)
    by_code: dict[str, list[ValidityFinding]] = {}
    for finding in found:
        by_code.setdefault(finding.code, []).append(finding)
    warnings = tuple(_joined(findings, len(runs)) for findings in by_code.values())
    return warnings, tuple(dict.fromkeys(note for fact in facts for note in _notes(fact)))


def _joined(findings: Sequence[ValidityFinding], runs: int) -> RunWarning:
    gravest = min(findings, key=lambda finding: "EWI".index(finding.severity))
    warning = _warning(gravest)
    if len(findings) == 1:
        return warning
    text = msg("{text} ({count:count} of {runs:count} runs)", text=warning.text, count=len(findings), runs=runs)
    return RunWarning(code=warning.code, severity=warning.severity, text=text, fields=warning.fields)


def _warning(finding: ValidityFinding) -> RunWarning:
    return RunWarning(code=finding.code, severity=finding.severity, text=finding.text, fields=finding.fields)


def _notes(facts: RunFacts) -> list[str]:
    answered = facts.completed if facts.completed is not None else facts.num_prompts
    has_p99 = any(stats.p99_s is not None for stats in (facts.ttft, facts.tpot, facts.itl, facts.e2e))
    notes = ["p99_of_few_requests"] if has_p99 and answered and answered < P99_REQUESTS else []
    if facts.table and (facts.input_tokens_mean is None or facts.output_tokens_mean is None):
        notes.append("no_length_columns")
    if facts.table and facts.failed is None and facts.success_share is None:
        notes.append("no_failure_columns")
    return notes


def _settings(run: BenchmarkRun) -> tuple[tuple[str, str | float], ...]:
    """GPU and count, and what a sweep wrote after ``run_number``: the options it varied."""
    keys = list(run.extra)
    swept = keys[keys.index("run_number") + 1 :] if "run_number" in keys else []
    named: tuple[tuple[str, str | float], ...] = (
        ("gpu", run.gpu or ""),
        ("gpu_count", run.gpu_count or 0),
        ("backend", run.backend or ""),
    )
    return (*named, *((key, run.extra[key]) for key in swept))


def _percentiles(stats: LatencyStats | None) -> Percentiles:
    if stats is None:
        return Percentiles()
    return Percentiles(mean_s=stats.mean_s, p50_s=stats.p50_s, p90_s=stats.p90_s, p95_s=stats.p95_s, p99_s=stats.p99_s)
