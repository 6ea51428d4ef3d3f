"""Can a benchmark run be believed? Each rule is a small function over the run's own numbers; this is their table.

Codes are a closed list. Some only the reader of a file can know (:data:`DECLARED`); the others are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from calc.checks.run_facts import ERROR, INFO, WARNING, Rule, RunFacts, ValidityFinding, achieved_per_s
from calc.checks.validity_load import FAILED_WARNING_SHARE, LOAD_RULES
from calc.checks.validity_numbers import NUMBER_RULES
from calc.messages import Message, msg

__all__ = ["DECLARED", "RULES", "RunFacts", "ValidityFinding", "check_repeats", "check_run", "compare"]

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
        "itl_includes_ttft": (
            WARNING,
            msg("this tool's ITL counts the first token: it was computed again without it."),
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

REPEAT_TOLERANCE = 0.2
LENGTH_TOLERANCE = 0.05


def check_run(facts: RunFacts) -> tuple[ValidityFinding, ...]:
    """Every finding on one load point, computed ones first."""
    found = (rule(facts) for rule in RULES)
    return (*(finding for finding in found if finding is not None), *_declared(facts.flags))


def _declared(flags: Sequence[str]) -> Iterator[ValidityFinding]:
    for flag in flags:
        severity, text = DECLARED[flag]
        yield ValidityFinding(code=flag, severity=severity, text=text)


def check_repeats(runs: Sequence[RunFacts]) -> ValidityFinding | None:
    """``runs_differ`` when two runs of one setting disagree by more than 20 % in throughput."""
    rates: dict[tuple[object, ...], list[float]] = {}
    for run in runs:
        achieved = achieved_per_s(run)
        if achieved is not None:
            rates.setdefault(_setting(run), []).append(achieved)
    for repeats in rates.values():
        if max(repeats) > (1 + REPEAT_TOLERANCE) * min(repeats):
            text = msg(
                "repeats of one setting reach {low:rate} and {high:rate}: find out what differed before using either.",
                low=min(repeats),
                high=max(repeats),
            )
            return ValidityFinding(code="runs_differ", severity=WARNING, text=text, fields=("request_throughput",))
    return None


def _setting(run: RunFacts) -> tuple[object, ...]:
    return (
        run.model,
        run.request_rate_per_s,
        run.request_rate_is_infinite,
        run.max_concurrency,
        run.num_prompts,
        run.input_tokens_mean,
        run.settings,
    )


def compare(a: RunFacts, b: RunFacts) -> ValidityFinding | None:
    """``not_comparable`` when two runs differ in lengths, arrivals or failed share."""
    reasons = (reason(a, b) for reason in _DIFFERENCES)
    text = next((r for r in reasons if r is not None), None)
    return None if text is None else ValidityFinding(code="not_comparable", severity=WARNING, text=text)


def _lengths_differ(a: RunFacts, b: RunFacts) -> Message | None:
    for mean_a, mean_b in ((a.input_tokens_mean, b.input_tokens_mean), (a.output_tokens_mean, b.output_tokens_mean)):
        if mean_a and mean_b and abs(mean_a - mean_b) > LENGTH_TOLERANCE * min(mean_a, mean_b):
            return msg(
                "mean lengths are {a:tok} and {b:tok}: compare runs of the same lengths only.", a=mean_a, b=mean_b
            )
    return None


def _arrivals_differ(a: RunFacts, b: RunFacts) -> Message | None:
    if (a.request_rate_per_s is None) == (b.request_rate_per_s is None):
        return None
    return msg("one run sends at a fixed rate, the other when answers come back: their latencies cannot be compared.")


def _failures_differ(a: RunFacts, b: RunFacts) -> Message | None:
    shares = [run.failed / run.num_prompts for run in (a, b) if run.failed is not None and run.num_prompts]
    if len(shares) < len((a, b)) or abs(shares[0] - shares[1]) <= FAILED_WARNING_SHARE:
        return None
    return msg(
        "{a:pct} and {b:pct} of requests failed: the faster run may have lost the slow ones.", a=shares[0], b=shares[1]
    )


_DIFFERENCES: tuple[Callable[[RunFacts, RunFacts], Message | None], ...] = (
    _lengths_differ,
    _arrivals_differ,
    _failures_differ,
)
