"""Runs beside each other: repeats that disagree, a cache that warmed up between them, and what must not be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from calc.checks.run_facts import WARNING, RunFacts, ValidityFinding, achieved_per_s
from calc.checks.validity_load import FAILED_WARNING_SHARE
from calc.messages import Message, msg

REPEAT_TOLERANCE = 0.2
"""Throughput of repeats; a quiet server repeats within a few per cent."""
LENGTH_TOLERANCE = 0.05
"""Mean prompt and output tokens of runs that are compared."""
WARM_FALL_SHARE = 0.4
"""TTFT may fall by this much between runs before the first one's prompts must have been found again."""
SHORTEST_CACHED_TOKENS = 256
"""Below it prefill is too small a part of TTFT for a cache to show."""


def across_runs(runs: Sequence[RunFacts]) -> Mapping[int, tuple[ValidityFinding, ...]]:
    """Findings that take several runs, by the place of each run they are about."""
    found: dict[int, tuple[ValidityFinding, ...]] = {}
    for places, finding in (*_repeats(runs), *_warming(runs)):
        for place in places:
            found[place] = (*found.get(place, ()), finding)
    return found


def check_repeats(runs: Sequence[RunFacts]) -> ValidityFinding | None:
    """``runs_differ`` when two runs of one setting disagree by more than 20 % in throughput."""
    return next((finding for _, finding in _repeats(runs)), None)


def check_warming(runs: Sequence[RunFacts]) -> ValidityFinding | None:
    """``warm_cache`` when TTFT of equal prompts falls by more than 40 % at no lighter load than the first run's."""
    return next((finding for _, finding in _warming(runs)), None)


def _repeats(runs: Sequence[RunFacts]) -> list[tuple[list[int], ValidityFinding]]:
    found = []
    for places in _grouped(runs, _setting):
        rates = {place: rate for place in places if (rate := achieved_per_s(runs[place])) is not None}
        if rates and max(rates.values()) > (1 + REPEAT_TOLERANCE) * min(rates.values()):
            text = msg(
                "repeats of one setting reach {low:rate} and {high:rate}: find out what differed before using either.",
                low=min(rates.values()),
                high=max(rates.values()),
            )
            fields = ("request_throughput",)
            found.append((list(rates), ValidityFinding(code="runs_differ", severity=WARNING, text=text, fields=fields)))
    return found


def _warming(runs: Sequence[RunFacts]) -> list[tuple[list[int], ValidityFinding]]:
    found = []
    for places in _grouped(runs, _server):
        in_order = _by_time(runs, places)
        first = runs[in_order[0]]
        before = _first_token_s(first)
        if before is None or (first.input_tokens_mean or 0) < SHORTEST_CACHED_TOKENS:
            continue
        warm = [
            place
            for place in in_order[1:]
            if _load(runs[place]) >= _load(first)
            and (after := _first_token_s(runs[place])) is not None
            and after < (1 - WARM_FALL_SHARE) * before
        ]
        if warm:
            after = min(t for place in warm if (t := _first_token_s(runs[place])) is not None)
            found.append((warm, _warm(before, after)))
    return found


def _warm(before: float, after: float) -> ValidityFinding:
    text = msg(
        "TTFT falls from {before:ms} in the first run to {after:ms} at no lighter load: the same prompts were in the "
        "cache. Reset it between runs, or change the seed.",
        before=before,
        after=after,
    )
    return ValidityFinding(code="warm_cache", severity=WARNING, text=text, fields=("ttft",))


def _grouped(runs: Sequence[RunFacts], key: Callable[[RunFacts], tuple[object, ...]]) -> list[list[int]]:
    """Places of runs that share a key, groups of one left out."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(key(run), []).append(place)
    return [places for places in groups.values() if len(places) > 1]


def _by_time(runs: Sequence[RunFacts], places: Sequence[int]) -> list[int]:
    """In order of start where every run says it, else as they stand in the file."""
    if any(not runs[place].started_at for place in places):
        return list(places)
    return sorted(places, key=lambda place: str(runs[place].started_at))


def _server(run: RunFacts) -> tuple[object, ...]:
    """What the cache of one server would know again: the model, its settings, and prompts of one length."""
    return (run.model, run.engine_version, run.dataset, run.input_tokens_mean, run.output_tokens_mean, run.settings)


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


def _first_token_s(run: RunFacts) -> float | None:
    return run.ttft.p50_s if run.ttft.p50_s is not None else run.ttft.mean_s


def _load(run: RunFacts) -> float:
    """Requests/s, or requests in flight; both grow with load, and runs of one group have the same kind."""
    return run.request_rate_per_s or run.max_concurrency or 0.0


_TIMED_OTHERWISE: Mapping[str, Message] = MappingProxyType(
    {
        "server_side": msg("one run was timed in the server, the other by a client: they do not mean the same."),
        "headers_only": msg("one run timed response headers, the other whole answers: they do not mean the same."),
        "failures_in_percentiles": msg("percentiles of one run include failed requests, those of the other do not."),
        "not_serving": msg("one run is an offline batch, the other was served: only one of them has queueing."),
    }
)
"""Flags of readers that change what a latency means."""


def compare(a: RunFacts, b: RunFacts) -> ValidityFinding | None:
    """``not_comparable`` with the first reason why two runs must not be set side by side."""
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


def _hardware_differs(a: RunFacts, b: RunFacts) -> Message | None:
    if a.gpu_count and b.gpu_count and a.gpu_count != b.gpu_count:
        return msg(
            "the runs used {a:count} and {b:count} GPUs: compare per GPU, or the same number.",
            a=a.gpu_count,
            b=b.gpu_count,
        )
    if a.gpu and b.gpu and a.gpu != b.gpu:
        return msg("the runs used {a} and {b}: they show the GPUs, not the setting.", a=a.gpu, b=b.gpu)
    return None


def _versions_differ(a: RunFacts, b: RunFacts) -> Message | None:
    for one, other in ((a.model, b.model), (a.engine, b.engine), (a.engine_version, b.engine_version)):
        if one and other and one != other:
            return msg("the runs used {a} and {b}: the difference may come from there.", a=one, b=other)
    return None


def _meanings_differ(a: RunFacts, b: RunFacts) -> Message | None:
    """Readers bring TPOT and ITL to one meaning; what was timed, and of which requests, they cannot change."""
    for flag, text in _TIMED_OTHERWISE.items():
        if (flag in a.flags) != (flag in b.flags):
            return text
    return None


_DIFFERENCES: tuple[Callable[[RunFacts, RunFacts], Message | None], ...] = (
    _lengths_differ,
    _arrivals_differ,
    _failures_differ,
    _hardware_differs,
    _versions_differ,
    _meanings_differ,
)
