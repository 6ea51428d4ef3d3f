"""The closed list of validity codes: severity, when each fires, what to do, and where the symptom was reported.

``docs/validity.md`` is written from this table, and the thresholds in it are the constants of the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calc.checks import gpus, growth, plausible, several, streaming
from calc.checks import validity_load as load
from calc.checks import validity_numbers as numbers

VLLM, SGLANG = "github.com/vllm-project/vllm", "github.com/sgl-project/sglang"
EVALSCOPE, GUIDELLM = "github.com/modelscope/evalscope", "github.com/vllm-project/guidellm"
RULE_OF_THUMB = "about ten requests beyond the percentile"
TOOL_SOURCE = "the tool's source"


@dataclass(frozen=True, kw_only=True)
class Code:
    """One code as the documentation tells it."""

    severity: str
    """E, W or I; ``W/E`` when it depends on how much."""
    when: str
    do: str
    source: str


def _pct(share: float) -> str:
    return f"{share * 100:g} %"


_FEW = ", ".join(f"{name} from < {needed:,} completed" for name, needed in reversed(load.FEWEST_FOR))
_LOW, _HIGH = plausible.LITTLE_RANGE

CODES: Mapping[str, Code] = MappingProxyType(
    {
        "prefill_above_roofline": Code(
            severity="E",
            when="prompt tokens not known to be found ÷ TTFT P50 exceed GPUs × peak FLOP/s ÷ (2 × parameters a token "
            "passes); asked where model, GPU and their number are known or declared, and no reuse of unknown extent is",
            do="empty the cache, change the seed, check the unit, measure again",
            source="github.com/raullenchai/Rapid-MLX/issues/1641; the step model's own peak",
        ),
        "warm_cache": Code(
            severity="W",
            when=f"≥ {_pct(load.WARM_HIT_SHARE)} of prompt tokens found in a run declared without reuse or of random "
            f"prompts; or TTFT of equal prompts (≥ {several.SHORTEST_CACHED_TOKENS} tokens) more than "
            f"{_pct(several.WARM_FALL_SHARE)} below the first run's at no lighter load",
            do="reset the cache between runs, or change the seed",
            source=f"{VLLM}/issues/52884",
        ),
        "prompts_shared": Code(
            severity="I",
            when="the load shares prefixes by design: turns of one conversation, a shared system prompt",
            do="state the hit rate with the latency",
            source=TOOL_SOURCE,
        ),
        "coordinated_omission": Code(
            severity="W",
            when="a request rate and a concurrency cap together, the client's queue not timed, and the cap not shown "
            "to have held nobody back",
            do="remove the cap, or use the fields that include the client's queue; until then latency is a lower bound",
            source=f"{VLLM}/issues/54101",
        ),
        "start_burst": Code(
            severity="W",
            when=f"fewer than {load.BURST_REQUESTS_PER_USER} requests per user, from {load.SMALLEST_BURST} users on",
            do="send more requests, or start the users one after the other",
            source=f"{EVALSCOPE}/pull/1641",
        ),
        "all_at_once": Code(
            severity="I",
            when=f"no request rate, and {load.ALL_AT_ONCE_REQUESTS} or more requests sent in the same instant",
            do="use a rate to measure a service level: TTFT here is mostly queueing",
            source=f"{EVALSCOPE}/issues/664; {VLLM}/issues/4252",
        ),
        "rate_not_reached": Code(
            severity="W",
            when=f"achieved rate < {_pct(load.REACHED_SHARE)} of the requested one and latency does not explain it; or "
            f"the client sent > {load.SCHEDULE_DELAY_S * 1000:g} ms behind its schedule",
            do="look at the load generator first: more processes, a lower rate",
            source="github.com/kubernetes-sigs/inference-perf/issues/648",
        ),
        "saturated": Code(
            severity="W",
            when=f"completed ÷ duration < {_pct(load.REACHED_SHARE)} of the offered rate and the slowest requests "
            f"explain it; or latency of the last third ≥ {load.GROWTH_RATIO:g} × the first's, a trend of "
            f"{growth.SIGMAS:g} standard deviations",
            do="lower the load; these percentiles depend on how long the run was",
            source=f"{GUIDELLM}/issues/92",
        ),
        "failed_requests": Code(
            severity="W/E",
            when=f"> {_pct(load.FAILED_WARNING_SHARE)} of requests failed (W), > {_pct(load.FAILED_ERROR_SHARE)} (E); "
            "rows without any latency count as failed",
            do="find out why: throughput and percentiles speak for the others only",
            source=TOOL_SOURCE,
        ),
        "all_failed": Code(
            severity="E",
            when="nothing completed",
            do="fix the run and measure again: latencies of 0 are missing values",
            source=f"{VLLM} benchmarks/serve.py",
        ),
        "failures_unknown": Code(
            severity="I",
            when="the file says neither how many requests failed nor how many of those sent completed",
            do="look into the tool's log",
            source=f"{SGLANG} bench_serving.py",
        ),
        "failures_in_percentiles": Code(
            severity="W",
            when="the tool's percentiles include failed requests (Locust)",
            do="repeat without failures: fast refusals pull the median down",
            source=TOOL_SOURCE,
        ),
        "incomplete_requests": Code(
            severity="W",
            when=f"> {_pct(load.INCOMPLETE_SHARE)} of requests cut off by the end of the run",
            do="run at least ten times as long as a request takes",
            source=f"{GUIDELLM}/issues/1078",
        ),
        "few_requests": Code(
            severity="W",
            when=f"{_FEW}; any mean from < {load.MIN_FOR_MEAN}",
            do="run longer, or leave that percentile out",
            source=RULE_OF_THUMB,
        ),
        "few_samples": Code(
            severity="I",
            when=f"fewer than {gpus.FEWEST_SAMPLES} samples of a resource log",
            do="take more before judging use",
            source=RULE_OF_THUMB,
        ),
        "runs_differ": Code(
            severity="W",
            when=f"repeats of one setting differ by > {_pct(several.REPEAT_TOLERANCE)} in throughput",
            do="find out what differed before using either",
            source=f"{SGLANG}/pull/39398",
        ),
        "cold_start": Code(
            severity="W",
            when=f"mean ≥ {load.COLD_START_RATIO:g} × median in a run of at most {load.COLD_START_REQUESTS} requests",
            do="warm the server up, and leave the warm-up out",
            source=f"{SGLANG}/pull/39398",
        ),
        "unit_implausible": Code(
            severity="E",
            when=f"E2E and TTFT + TPOT·(n − 1) differ by > {_pct(plausible.IDENTITY_TOLERANCE)} and a factor of 1,000 "
            f"explains it; throughput × E2E outside {_LOW:g}–{_HIGH:g} × concurrency (Little's law); TTFT above E2E; "
            f"or > {plausible.MAX_STREAM_TOKENS_PER_S:,.0f} tokens/s in one answer",
            do="choose the unit: the sentence names the factor of 1,000 that makes everything fit",
            source="github.com/fw-ai/benchmark/issues/5",
        ),
        "no_streaming": Code(
            severity="E",
            when=f"TTFT ≥ {_pct(streaming.NO_STREAM_SHARE)} of E2E with more than {streaming.STREAMED_TOKENS} output "
            "tokens; or only E2E was timed",
            do="measure with streaming: this run has no TTFT or ITL",
            source=f"{EVALSCOPE}/issues/413",
        ),
        "headers_only": Code(
            severity="W",
            when="the client timed the response headers of a stream",
            do="time the whole answer",
            source="github.com/locustio/locust, stream=True",
        ),
        "itl_is_chunk_gap": Code(
            severity="W",
            when=f"ITL > {streaming.CHUNK_GAP_RATIO:g} × TPOT: chunks of several tokens (speculation, multi-step)",
            do="use TPOT for capacity",
            source=f"{VLLM}/issues/7242",
        ),
        "buffered_stream": Code(
            severity="W",
            when=f"ITL P50 < {streaming.BUFFERED_RATIO:g} × TPOT P50: a proxy or the client collects chunks",
            do="use TPOT",
            source="github.com/ray-project/ray/issues/59681",
        ),
        "itl_includes_ttft": Code(
            severity="W",
            when="the tool's ITL counts the first token (llmperf, old vLLM)",
            do="nothing: it was computed again",
            source="github.com/ray-project/llmperf/pull/99",
        ),
        "tpot_includes_first_token": Code(
            severity="W",
            when="the tool's TPOT is E2E ÷ all tokens (GuideLLM)",
            do="nothing: its ITL is the usual TPOT and was taken instead",
            source=f"{GUIDELLM}/issues/1144",
        ),
        "throughput_inconsistent": Code(
            severity="W",
            when=f"tokens, time and rate disagree by > {_pct(numbers.THROUGHPUT_TOLERANCE)}; or E2E and TTFT + "
            f"TPOT·(n − 1) by > {_pct(plausible.IDENTITY_TOLERANCE)} and no unit explains it",
            do="check which one is right; trust E2E before TPOT",
            source="github.com/ray-project/llmperf-leaderboard/issues/15",
        ),
        "throughput_ambiguous": Code(
            severity="E",
            when="a throughput does not say whether it counts output tokens, all tokens or requests",
            do="choose the column's meaning",
            source="tables made by hand",
        ),
        "mixed_stages": Code(
            severity="E",
            when="several loads or kinds of requests pooled into one line",
            do="give the file of each load",
            source="github.com/kubernetes-sigs/inference-perf, summary files",
        ),
        "not_serving": Code(
            severity="I",
            when="one offline batch",
            do="do not expect queueing in it",
            source=TOOL_SOURCE,
        ),
        "server_side": Code(
            severity="I",
            when="measured inside the server",
            do="do not compare with what a client measures",
            source=f"{EVALSCOPE}/issues/408",
        ),
        "cumulative_counters": Code(
            severity="W",
            when="counters since the server's start, or one scrape only",
            do="give a scrape before and one after the run",
            source=f"{VLLM}/pull/46938",
        ),
        "zero_may_be_missing": Code(
            severity="W",
            when="a 0 that the tool also writes for “not available”",
            do="nothing: it is left out",
            source=TOOL_SOURCE,
        ),
        "no_token_metrics": Code(
            severity="I",
            when="a file of a tool that knows no tokens (k6, perf_analyzer, Locust)",
            do="use its request latency only",
            source=TOOL_SOURCE,
        ),
        "lengths_nominal": Code(
            severity="I",
            when="prompt and output lengths are settings of the test",
            do="measure them where they matter: answers end early",
            source=TOOL_SOURCE,
        ),
        "lengths_missing": Code(
            severity="W",
            when="prompt or output length is not known",
            do="add it: latency and throughput cannot be compared without",
            source=f"{VLLM}/issues/359",
        ),
        "model_missing": Code(
            severity="I",
            when="the file does not name the model, and nobody declared it",
            do="choose it",
            source=TOOL_SOURCE,
        ),
        "needs_companion": Code(
            severity="I",
            when="the file is part of a set",
            do="give the summary too",
            source=TOOL_SOURCE,
        ),
        "p99_missing": Code(
            severity="I",
            when="the file has a tail but no P99",
            do="ask the tool for it; nothing is put in its place",
            source=TOOL_SOURCE,
        ),
        "imbalanced_gpus": Code(
            severity="W",
            when=f"GPUs of one run differ by > {_pct(gpus.IMBALANCE_SHARE)} in use or memory",
            do="check the split; leave idle GPUs out",
            source="DCGM and nvidia-smi logs",
        ),
        "not_comparable": Code(
            severity="W",
            when=f"two runs compared differ by > {_pct(several.LENGTH_TOLERANCE)} in lengths, in arrivals, version, "
            "GPUs, what was timed, or failed share",
            do="compare within one cell of the matrix",
            source=f"{VLLM}/issues/359",
        ),
    }
)
"""Every code there is, in the order of the documentation."""

HEAD = """# When a benchmark run cannot be believed

Every uploaded run is checked against this list. **E**: it cannot be used as it stands, and is kept out of calibration,
comparison and decision until somebody confirms it with a name and a reason. **W**: it is used, and says so wherever its
figures go. **I**: worth knowing. A code never changes its meaning; each comes with the numbers that raised it.

| code | | raised when | what to do | source |
|---|---|---|---|---|
"""


def document() -> str:
    """``docs/validity.md``."""
    return HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for name, code in CODES.items():
        yield f"| `{name}` | {code.severity} | {code.when} | {code.do} | {code.source} |"
