"""Can a benchmark run be believed? Each rule is a small function over the run's own numbers; this is their table.

Codes are a closed list. Some only the reader of a file can know (:data:`DECLARED`); the others are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from calc.checks.run_facts import ERROR, INFO, WARNING, Rule, RunFacts, ValidityFinding
from calc.checks.several import across_runs, check_repeats, check_warming, compare
from calc.checks.validity_load import LOAD_RULES
from calc.checks.validity_numbers import NUMBER_RULES
from calc.messages import Message, msg

__all__ = [
    "DECLARED", "RULES", "RunFacts", "ValidityFinding", "across_runs", "check_repeats", "check_run", "check_warming",
    "compare",
]  # fmt: skip

RULES: tuple[Rule, ...] = (*LOAD_RULES, *NUMBER_RULES)
"""Every rule on one load point."""

DECLARED: Mapping[str, tuple[str, Message]] = MappingProxyType(
    {
        "prompts_shared": (INFO, msg("the load shares prefixes by design: state the hit rate with the latency.")),
        "failures_in_percentiles": (
            WARNING,
            msg("percentiles include failed requests: they look faster than they are."),
        ),
        "incomplete_requests": (WARNING, msg("requests were cut off by the end of the run: run longer.")),
        "few_samples": (INFO, msg("fewer than 10 samples: take more before judging use.")),
        "headers_only": (
            WARNING,
            msg("the client timed the response headers of a stream, not its tokens: time the whole answer."),
        ),
        "few_requests": (WARNING, msg("few iterations: a mean needs 30 of them, a P99 1,000. Run longer.")),
        "all_at_once": (
            INFO,
            msg("every request was handed over at the start, so TTFT holds their queue: it is no service level."),
        ),
        "throughput_inconsistent": (
            WARNING,
            msg("this tool's throughput of single requests disagrees with their tokens and time: it is left out."),
        ),
        "itl_includes_ttft": (
            WARNING,
            msg("this tool's ITL counts the first token: use TPOT, which was computed again without it."),
        ),
        "tpot_includes_first_token": (
            WARNING,
            msg("this tool's TPOT is E2E divided by all tokens: its ITL is the usual TPOT and was taken instead."),
        ),
        "mixed_stages": (ERROR, msg("several loads are pooled in this file: give one file a load.")),
        "not_serving": (INFO, msg("one offline batch: there is no queueing in these figures.")),
        "server_side": (INFO, msg("measured inside the server: do not compare with what a client measures.")),
        "cumulative_counters": (
            WARNING,
            msg("counters run since the server's start, not for one run: give a scrape before and one after the run."),
        ),
        "zero_may_be_missing": (WARNING, msg("a latency of 0 is how this file says not measured: it is left out.")),
        "no_token_metrics": (INFO, msg("there are no tokens in this file: only request latency can be used.")),
        "lengths_nominal": (INFO, msg("prompt and output lengths are the test's settings, not measurements.")),
        "needs_companion": (INFO, msg("this file is part of a set: give the summary too.")),
        "imbalanced_gpus": (
            WARNING,
            msg("the GPUs of this run differ by more than a fifth in use or memory: check the split."),
        ),
    }
)
"""Codes a reader raises itself, with severity and sentence."""


def check_run(facts: RunFacts) -> tuple[ValidityFinding, ...]:
    """Every finding on one load point, each code once: computed ones first, for they have numbers."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    by_code: dict[str, ValidityFinding] = {}
    for finding in (*found, *_declared(facts.flags)):
        by_code.setdefault(finding.code, finding)
    return tuple(by_code.values())


def _declared(flags: Sequence[str]) -> Iterator[ValidityFinding]:
    for flag in flags:
        severity, text = DECLARED[flag]
        yield ValidityFinding(code=flag, severity=severity, text=text)
