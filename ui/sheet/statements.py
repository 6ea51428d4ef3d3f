"""The sentences of the sheet that are made from the numbers: where it applies and where not, checks, risks, steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from types import MappingProxyType

from calc.deployment import Deployment
from calc.judge.decision import Decision, Outcome
from calc.latency import LatencyReport, LoadSweep
from calc.memory import MemoryReport
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.units import GB
from calc.workload import Arrivals, Closed, Slo, Workload
from ui.glossary import CHOICES
from ui.sheet.review import Check, Filing, Party, Step

MARGIN_BYTES = int(1.5 * GB)
"""Least memory kept outside the engine's budget: starts failed with 0.5-0.7 GB free and held with 1.2-1.5 GB."""
MARGIN_SHARE = 0.05
"""The same as a share of the GPU, whichever is more."""
BUSY_SHARE = 0.8
"""From this share of the highest load within the SLO, published schedulers scale out (GIE, llm-d)."""
PERCENT = 100
MAX_RISKS = 5
MAX_STEPS = 5

METRICS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "vllm": (
            "vllm:kv_cache_usage_perc",
            "vllm:num_requests_waiting, vllm:num_preemptions_total",
            "vllm:prefix_cache_hits_total / vllm:prefix_cache_queries_total",
        ),
        "sglang": ("sglang:token_usage", "sglang:num_queue_reqs, sglang:num_retracted_reqs", "sglang:cache_hit_rate"),
    }
)
"""Names under which an engine exports KV usage, waiting and preemption, and hits."""


def applies(scenario: Scenario, latency: LatencyReport | None) -> tuple[Message, ...]:
    """The scenario in three lines: who asks what, how often, and what was promised."""
    load = scenario.workload
    return (
        msg(
            "{business}: prompts P50 {p50:count} / P95 {p95:tok}, outputs P50 {o50:count} / P95 {o95:tok}",
            business=CHOICES.get(load.business_type, msg("Custom")),
            p50=load.prompt_tokens.quantile(0.5),
            p95=load.prompt_tokens.quantile(0.95),
            o50=load.output_tokens.quantile(0.5),
            o95=load.output_tokens.quantile(0.95),
        ),
        _traffic(load, latency),
        msg("Promised: {targets}", targets=_targets(scenario.slo)),
    )


def _traffic(load: Workload, latency: LatencyReport | None) -> Message:
    arrivals, hit = _arrivals(load.arrivals), load.prefix_hit_share
    if latency is None:
        return msg("{arrivals}, hit rate {hit:pct}", arrivals=arrivals, hit=hit)
    if latency.saturated:
        return msg("{arrivals}, more than can be served; hit rate {hit:pct}", arrivals=arrivals, hit=hit)
    return msg(
        "{arrivals}, {concurrency:count} requests in flight on average, hit rate {hit:pct}",
        arrivals=arrivals,
        concurrency=latency.concurrency,
        hit=hit,
    )


def _arrivals(arrivals: Arrivals) -> Message:
    if isinstance(arrivals, Closed):
        return msg("{users:count} users who wait for each answer", users=arrivals.concurrency)
    return msg("{rate:rate} from all users together", rate=arrivals.rate_per_s)


def _targets(slo: Slo) -> Message:
    targets = [
        target
        for target, value in (
            (msg("TTFT ≤ {limit:ms}", limit=slo.ttft_s), slo.ttft_s),
            (msg("ITL ≤ {limit:ms}", limit=slo.itl_s), slo.itl_s),
            (msg("E2E ≤ {limit:s}", limit=slo.e2e_s), slo.e2e_s),
        )
        if value is not None
    ]
    if not targets:
        return msg("no target is set")
    listed = reduce(lambda first, rest: msg("{first}, {rest}", first=first, rest=rest), targets)
    return msg("{targets} at P{percentile:.3g}", targets=listed, percentile=slo.percentile_share * PERCENT)


def boundaries(
    scenario: Scenario, memory: MemoryReport, latency: LatencyReport | None, sweep: LoadSweep | None
) -> tuple[Message, ...]:
    """Where the sheet says nothing, each with its number."""
    return tuple(_boundaries(scenario, memory, latency, sweep))


def _boundaries(
    scenario: Scenario, memory: MemoryReport, latency: LatencyReport | None, sweep: LoadSweep | None
) -> Iterator[Message]:
    yield _load_limit(memory, latency, sweep)
    yield msg(
        "Requests longer than {longest:tok} (prompt and output) are refused by the engine",
        longest=memory.max_model_len_tokens,
    )
    most = memory.kv_pool_bytes // max(memory.kv_per_request_bytes, 1)
    if memory.fits and most:
        yield msg(
            "More than {most:count} requests of mean length in flight on one replica do not fit the KV pool", most=most
        )
    if scenario.workload.prefix_hit_share > 0:
        yield msg(
            "A hit rate under {hit:pct}, as after a change of template or routing",
            hit=scenario.workload.prefix_hit_share,
        )
    yield msg(
        "Any engine version but {engine} {version}; another GPU, KV dtype or parallel split",
        engine=scenario.deployment.engine.id,
        version=scenario.deployment.engine.version,
    )
    yield msg("Not evaluated: failure drill, model switch and rollback, isolation between tenants, quality of answers")


def _load_limit(memory: MemoryReport, latency: LatencyReport | None, sweep: LoadSweep | None) -> Message:
    if latency is None or not memory.fits:
        return msg("No load at all: it is {over:gib} over the budget of a GPU", over=memory.over_bytes)
    if sweep is None or sweep.knee_load is None:
        return msg("Above {limit:rate} queues grow without end", limit=latency.max_rate_per_s)
    if sweep.axis != "rate":
        return msg("Above {knee:count} concurrent requests the SLO is missed", knee=sweep.knee_load)
    return msg(
        "Above {knee:rate} the SLO is missed; above {limit:rate} queues grow without end",
        knee=sweep.knee_load,
        limit=sweep.max_rate_per_s,
    )


def checks(deployment: Deployment) -> tuple[Check, ...]:
    """What to verify by hand, with the engine's own metric names where they are known."""
    usage, waiting, hits = METRICS.get(
        deployment.engine.id, (msg("KV usage"), msg("waiting, preemptions"), msg("hits, queries"))
    )
    return (
        Check(group="logs", text=msg("Start-up log shows the KV pool and concurrency of this sheet")),
        Check(
            group="logs",
            text=msg("Preemption, out-of-memory, time-out of a peak hour; errors traced to a request"),
        ),
        Check(group="metrics", text=msg("{usage} (0-1), {waiting} in one window", usage=usage, waiting=waiting)),
        Check(group="metrics", text=msg("{hits} by tenant; TTFT and ITL at client and server", hits=hits)),
        Check(
            group="metrics",
            text=msg("GPU power, memory, link (DCGM); drift of memory and queue over hours"),
        ),
        Check(group="configuration", text=msg("Load generator: arrivals, lengths, warm-up, limit of concurrency")),
        Check(
            group="configuration",
            text=msg("Templates: first token that differs; policy for long requests"),
        ),
        Check(
            group="owners",
            text=msg("Each alarm reaches a named person; access and release tried once"),
        ),
    )


def risks(
    decision: Decision, memory: MemoryReport, latency: LatencyReport | None, sweep: LoadSweep | None
) -> tuple[Message, ...]:
    """The decision's own risks first, then those the numbers show."""
    return (*decision.risks, *_number_risks(memory, latency, sweep))[:MAX_RISKS]


def _number_risks(memory: MemoryReport, latency: LatencyReport | None, sweep: LoadSweep | None) -> Iterator[Message]:
    needed_bytes = max(MARGIN_BYTES, round(MARGIN_SHARE * memory.total_bytes))
    if memory.margin_bytes < needed_bytes:
        yield msg(
            "Only {left:gib} stay outside the memory budget ({needed:gib} advised): a runtime peak can stop the engine",
            left=max(memory.margin_bytes, 0),
            needed=needed_bytes,
        )
    if latency is not None and latency.preemptions:
        yield msg(
            "{share:pct} preemptions per request at the planned load: requests are computed twice",
            share=latency.preempted_share,
        )
    if sweep is not None and sweep.knee_load and BUSY_SHARE < sweep.operating_load / sweep.knee_load <= 1:
        yield msg(
            "The planned load is {share:pct} of the highest load within the SLO: a burst breaks it",
            share=sweep.operating_load / sweep.knee_load,
        )


def steps(decision: Decision, lever: Message | None, slo: Slo, filing: Filing) -> tuple[Step, ...]:
    """At most five actions: what is missing first, then the first lever, then who and when."""
    return tuple(_steps(decision, lever, slo, filing))[:MAX_STEPS]


def _steps(decision: Decision, lever: Message | None, slo: Slo, filing: Filing) -> Iterator[Step]:
    if not (filing.real_requests and filing.real_roles and filing.real_figures):
        yield Step(action=msg("Bring real requests, permission roles and operating figures"), owner=Party.BUSINESS)
    if decision.missing:
        yield Step(
            action=msg("Measure the {gaps:count} missing figures, then size again", gaps=len(decision.missing)),
            owner=Party.PLATFORM,
        )
    if lever is not None and decision.outcome is not Outcome.MEASURE_FIRST:
        yield Step(
            action=msg(
                "Try {lever} on a replay of real requests; keep it if {targets}", lever=lever, targets=_targets(slo)
            ),
            owner=Party.PLATFORM,
        )
    if any(not filing.owners.get(party) for party in Party):
        yield Step(
            action=msg("Name the owners who watch capacity, cost and stability after go-live"), owner=Party.BUSINESS
        )
    yield Step(
        action=msg("Review data in the cache: tenants, retention, where offloaded KV is kept"), owner=Party.SECURITY
    )
    if not filing.look_back_on:
        yield Step(
            action=msg("Set a date, 2-4 weeks into operation, to compare prediction and measurement"),
            owner=Party.PLATFORM,
        )
