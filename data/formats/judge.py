"""From a reader's load points to validity findings: the rules live in ``calc``, this maps the record onto them.

Of ``extra`` the rules know: ``schedule_delay_*_s`` (how late the client sent), ``client_queue*`` (its own waiting is
timed), ``latency_growth_ratio``, ``dataset`` or ``dataset_name``, ``input_tokens_p50`` and ``engine_version``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.checks.validity import RunFacts, ValidityFinding, across_runs, check_run
from calc.evidence import Percentiles
from calc.hardware import Gpu
from calc.messages import msg
from data.declared import reuse_declared
from data.prefill_limits import NO_OWN, prefill_limit
from data.records import BenchmarkRun, LatencyStats, RunDeclaration, RunWarning

HAND_MADE = ""
"""``tool`` of a run read from somebody's own table."""
DELAY_STATISTICS = ("p99", "p95", "p90", "mean")
"""Of the client's delay, the first that is there counts."""
_SHARED = (
    "tool", "model", "engine", "gpu", "gpu_count", "request_rate_per_s", "request_rate_is_infinite", "max_concurrency",
    "achieved_concurrency", "peak_concurrency", "num_prompts", "completed", "failed", "incomplete", "success_share",
    "duration_s", "input_tokens_mean", "output_tokens_mean", "request_throughput_per_s",
    "output_token_throughput_per_s", "total_token_throughput_per_s", "ambiguous_throughput_per_s", "prefix_hit_share",
    "flags",
)  # fmt: skip
"""Fields of the same name and unit in both dataclasses."""


def facts_of(
    run: BenchmarkRun, declaration: RunDeclaration | None = None, own_gpus: Mapping[str, Gpu] = NO_OWN
) -> RunFacts:
    """What the validity rules need of one load point, on which its declaration already lies."""
    return RunFacts(
        **{name: getattr(run, name) for name in _SHARED},
        ttft=_percentiles(run.ttft),
        tpot=_percentiles(run.tpot),
        itl=_percentiles(run.itl),
        e2e=_percentiles(run.e2e),
        client_queue_timed=any("client_queue" in key for key in run.extra),
        schedule_delay_s=_first(run, *(f"schedule_delay_{statistic}_s" for statistic in DELAY_STATISTICS)),
        latency_growth_ratio=_first(run, "latency_growth_ratio"),
        input_tokens_p50=_first(run, "input_tokens_p50"),
        dataset=_text(run, "dataset", "dataset_name"),
        started_at=run.date,
        engine_version=_version(run, declaration),
        reuse_declared=reuse_declared(declaration),
        prefill_limit_tokens_per_s=prefill_limit(run, declaration, own_gpus),
        settings=(*_settings(run), *_declared_settings(declaration)),
        table=run.tool == HAND_MADE,
    )


def warnings_of(
    run: BenchmarkRun, declaration: RunDeclaration | None = None, own_gpus: Mapping[str, Gpu] = NO_OWN
) -> tuple[RunWarning, ...]:
    """Findings on one load point."""
    return tuple(_warning(finding) for finding in check_run(facts_of(run, declaration, own_gpus)))


def warnings_by_run(runs: Sequence[BenchmarkRun]) -> tuple[tuple[RunWarning, ...], ...]:
    """Findings on each load point of a file, those it shares with the others of the file among them."""
    return tuple(tuple(_warning(finding) for finding in findings) for findings in _findings(runs))


def _findings(runs: Sequence[BenchmarkRun]) -> list[tuple[ValidityFinding, ...]]:
    facts = [facts_of(run) for run in runs]
    shared = across_runs(facts)
    found = []
    for place, fact in enumerate(facts):
        by_code = {finding.code: finding for finding in (*shared.get(place, ()), *check_run(fact))}
        found.append(tuple(by_code.values()))
    return found


def warnings_together(facts: Sequence[RunFacts]) -> dict[int, tuple[RunWarning, ...]]:
    """Findings that take several runs, by the place of each run they are about."""
    return {place: tuple(_warning(one) for one in findings) for place, findings in across_runs(facts).items()}


def warnings_of_file(runs: Sequence[BenchmarkRun]) -> tuple[tuple[RunWarning, ...], tuple[str, ...]]:
    """One warning per code, the gravest first of its kind, and note codes for what is only worth knowing."""
    by_code: dict[str, list[ValidityFinding]] = {}
    for findings in _findings(runs):
        for finding in findings:
            by_code.setdefault(finding.code, []).append(finding)
    warnings = tuple(_joined(findings, len(runs)) for findings in by_code.values())
    return warnings, tuple(dict.fromkeys(note for run in runs for note in _notes(run)))


def _joined(findings: Sequence[ValidityFinding], runs: int) -> RunWarning:
    gravest = min(findings, key=lambda finding: "EWI".index(finding.severity))
    warning = _warning(gravest)
    if len(findings) == 1:
        return warning
    text = msg("{text} ({count:count} of {runs:count} runs)", text=warning.text, count=len(findings), runs=runs)
    return RunWarning(code=warning.code, severity=warning.severity, text=text, fields=warning.fields)


def _warning(finding: ValidityFinding) -> RunWarning:
    return RunWarning(code=finding.code, severity=finding.severity, text=finding.text, fields=finding.fields)


def _notes(run: BenchmarkRun) -> list[str]:
    """What a hand-made table has no columns for is seen on the page."""
    if run.tool != HAND_MADE:
        return []
    notes = []
    if run.input_tokens_mean is None or run.output_tokens_mean is None:
        notes.append("no_length_columns")
    if run.failed is None and run.success_share is None:
        notes.append("no_failure_columns")
    return notes


def _first(run: BenchmarkRun, *keys: str) -> float | None:
    """The first of these further facts that is a number."""
    return next((value for key in keys if isinstance(value := run.extra.get(key), float | int)), None)


def _text(run: BenchmarkRun, *keys: str) -> str | None:
    return next((value for key in keys if isinstance(value := run.extra.get(key), str)), None)


def _version(run: BenchmarkRun, declaration: RunDeclaration | None) -> str | None:
    written = _text(run, "engine_version")
    return written if written is not None or declaration is None else declaration.engine_version


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


def _declared_settings(declaration: RunDeclaration | None) -> tuple[tuple[str, str], ...]:
    """What somebody said of the server and of the prompts: runs that differ in it are no repeats."""
    told = {name: getattr(declaration, name, None) for name in ("engine_flags", "strategy", "repetition")}
    return tuple((name, str(value)) for name, value in told.items() if value is not None)


def _percentiles(stats: LatencyStats | None) -> Percentiles:
    if stats is None:
        return Percentiles()
    return Percentiles(mean_s=stats.mean_s, p50_s=stats.p50_s, p90_s=stats.p90_s, p95_s=stats.p95_s, p99_s=stats.p99_s)
