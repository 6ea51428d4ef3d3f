"""The command of each load generator for one run of a cell: exact numbers of prefixes, or the pool to draw them from.

Flags as in vLLM 0.32, SGLang 0.5.23, AIPerf 0.13, GuideLLM 0.8.1 and inference-perf's configuration guide (2026-11).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from calc.messages import Message, msg
from calc.poc.load_command import LoadCommand, LoadRun, flags

RESULTS = "results"
"""Folder of the result files."""
DRAWN = msg(
    "This tool draws prefixes with replacement: the pool is sized so that the level comes out, "
    "but with a small cache the hit rate is not quite that of exact numbers."
)
POISSON_ONLY = msg("This tool knows Poisson arrivals only: bursts of your traffic are left out.")
PER_REQUEST = (
    "summary: true, per_stage: true, per_request: true, per_request_fields: {request: false, response: false, "
    "info: false, response_chunks: false, computed_metrics: true}"
)
"""inference-perf's report: figures of single requests without their prompts and answers."""
USUAL_IN_FLIGHT = 40
"""Four workers of ten requests each, as inference-perf's guide shows them."""
VLLM_TEST_RUN = msg("One prompt is sent before the clock starts; it then counts as a hit.")


def vllm_bench(run: LoadRun) -> LoadCommand:
    """``vllm bench serve``: exactly G prefixes with N//G prompts each, shuffled."""
    load, shape = run.load, run.load.shape
    arrivals = (
        {"--max-concurrency": run.concurrency}
        if run.concurrency is not None
        else {"--request-rate": run.rate, "--burstiness": f"{run.burstiness:.3g}"}
    )
    words = flags(
        {
            "--backend": "vllm" if run.engine == "vllm" else "openai",
            "--base-url": run.base_url,
            "--model": run.model,
            "--dataset-name": "prefix_repetition",
            "--num-prompts": load.requests,
            "--prefix-repetition-prefix-len": shape.prefix_tokens,
            "--prefix-repetition-suffix-len": shape.suffix_tokens,
            "--prefix-repetition-num-prefixes": load.groups,
            "--prefix-repetition-output-len": shape.output_tokens,
            "--ignore-eos": "",
            **arrivals,
            "--seed": run.seed,
            "--num-warmups": 0,
            "--percentile-metrics": "ttft,tpot,itl,e2el",
            "--metric-percentiles": "50,90,95,99",
            "--save-result": "",
            "--save-detailed": "",
            "--result-dir": RESULTS,
            "--result-filename": f"{run.name}.json",
        }
    )
    return LoadCommand(tool="vllm", words=("vllm", "bench", "serve", *words), notes=(VLLM_TEST_RUN,))


def sglang(run: LoadRun) -> LoadCommand:
    """``sglang.benchmark.serving``: groups × prompts per group, shuffled; end-of-sequence is ignored by default."""
    load, shape = run.load, run.load.shape
    arrivals = {"--max-concurrency": run.concurrency} if run.concurrency is not None else {"--request-rate": run.rate}
    flush = {"--flush-cache": ""} if run.engine == "sglang" else {}
    words = flags(
        {
            "--backend": "sglang" if run.engine == "sglang" else "vllm",
            "--base-url": run.base_url,
            "--model": run.model,
            "--dataset-name": "generated-shared-prefix",
            "--gsp-num-groups": load.groups,
            "--gsp-prompts-per-group": load.uses,
            "--gsp-system-prompt-len": shape.prefix_tokens,
            "--gsp-question-len": shape.suffix_tokens,
            "--gsp-output-len": shape.output_tokens,
            "--gsp-range-ratio": "1.0",
            **arrivals,
            "--seed": run.seed,
            **flush,
            "--warmup-requests": 0,
            "--output-file": f"{RESULTS}/{run.name}.jsonl",
            "--output-details": "",
        }
    )
    notes = () if run.concurrency is not None or run.poisson else (POISSON_ONLY,)
    return LoadCommand(tool="sglang", words=("python3", "-m", "sglang.benchmark.serving", *words), notes=notes)


def aiperf(run: LoadRun) -> LoadCommand:
    """``aiperf profile``: a pool drawn from; without one, longer prompts of their own (low)."""
    load, shape = run.load, run.load.shape
    prefixes: dict[str, str | int] = (
        {"--num-prefix-prompts": load.pool, "--prefix-prompt-length": shape.prefix_tokens, "--isl": shape.suffix_tokens}
        if load.pool
        else {"--isl": shape.prompt_tokens}
    )
    words = flags(
        {
            "--model": run.model,
            "--url": run.base_url,
            "--endpoint-type": "completions",
            "--streaming": "",
            "--tokenizer": run.model,
            **prefixes,
            "--isl-stddev": 0,
            "--osl": shape.output_tokens,
            "--osl-stddev": 0,
            "--num-dataset-entries": load.requests,
            "--request-count": load.requests,
            **_aiperf_arrivals(run),
            "--random-seed": run.seed,
            "--artifact-dir": f"{RESULTS}/{run.name}",
        }
    )
    extra = ("--extra-inputs", "ignore_eos:true", f"min_tokens:{shape.output_tokens}")
    drawn = load.pool > 0
    return LoadCommand(
        tool="aiperf", words=("aiperf", "profile", *words, *extra), notes=(DRAWN,) if drawn else (), drawn=drawn
    )


def _aiperf_arrivals(run: LoadRun) -> Mapping[str, str | int]:
    if run.concurrency is not None:
        return {"--concurrency": run.concurrency}
    if run.poisson:
        return {"--request-rate": run.rate, "--arrival-pattern": "poisson"}
    return {
        "--request-rate": run.rate,
        "--arrival-pattern": "gamma",
        "--arrival-smoothness": f"{run.burstiness:.3g}",
    }


def guidellm(run: LoadRun) -> LoadCommand:
    """``guidellm run``: prefixes drawn from a pool, bodies new for every request."""
    load, shape = run.load, run.load.shape
    profile = (
        f"kind=concurrent,streams={run.concurrency}" if run.concurrency is not None else f"kind=poisson,rate={run.rate}"
    )
    prompt = shape.suffix_tokens if load.pool else shape.prompt_tokens
    prefix = f",prefix_count={load.pool},prefix_tokens={shape.prefix_tokens}" if load.pool else ""
    words = flags(
        {
            "--backend": f"kind=openai_http,target={run.base_url}",
            "--profile": profile,
            "--constraint": f"kind=max_requests,count={load.requests}",
            "--seed": f"kind=static,value={run.seed}",
            "--data": f"kind=synthetic_text,prompt_tokens={prompt},output_tokens={shape.output_tokens}{prefix}",
            "--output": f"kind=json,path={RESULTS}/{run.name}.json",
        }
    )
    bursts = () if run.concurrency is not None or run.poisson else (POISSON_ONLY,)
    drawn = load.pool > 0
    return LoadCommand(
        tool="guidellm", words=("guidellm", "run", *words), notes=(*((DRAWN,) if drawn else ()), *bursts), drawn=drawn
    )


def inference_perf(run: LoadRun) -> LoadCommand:
    """inference-perf: groups × prompts per group in its configuration file; no prompt is used twice."""
    load, shape = run.load, run.load.shape
    shared = {
        "num_groups": load.groups,
        "num_prompts_per_group": load.uses,
        "system_prompt_len": shape.prefix_tokens,
        "question_len": shape.suffix_tokens,
        "output_len": shape.output_tokens,
    }
    name, model, url = f"{run.name}.yml", json.dumps(run.model), json.dumps(run.base_url)
    kind = "vllm" if run.engine == "tensorrt-llm" else run.engine
    text = "\n".join(
        [
            f"data: {{type: shared_prefix, shared_prefix: {_inline(shared)}}}",
            f"load: {_stages(run)}",
            "api: {type: completion, streaming: true}",
            f"server: {{type: {kind}, model_name: {model}, base_url: {url}, ignore_eos: true}}",
            f"tokenizer: {{pretrained_model_name_or_path: {model}}}",
            f"report: {{request_lifecycle: {{{PER_REQUEST}}}}}",
            f"storage: {{local_storage: {{path: {RESULTS}/{run.name}}}}}",
            "",
        ]
    )
    bursts = () if run.concurrency is not None or run.poisson else (POISSON_ONLY,)
    users = run.concurrency or 0
    workers = (
        (msg("Give the tool so many workers that they keep {users:count} requests in flight.", users=users),)
        if users > USUAL_IN_FLIGHT
        else ()
    )
    return LoadCommand(
        tool="inference-perf",
        words=("inference-perf", "--config_file", name),
        files={name: text},
        notes=(*workers, *bursts),
    )


def _stages(run: LoadRun) -> str:
    """A rate is kept for as long as there are prompts that were not sent yet."""
    if run.concurrency is not None:
        stage = {"num_requests": run.load.requests, "concurrency_level": run.concurrency}
        return f"{{type: concurrent, base_seed: {run.seed}, stages: [{_inline(stage)}]}}"
    seconds = math.floor(run.load.requests / (run.rate_per_s or 1))
    return f"{{type: poisson, base_seed: {run.seed}, stages: [{{rate: {run.rate}, duration: {seconds}}}]}}"


def _inline(pairs: Mapping[str, int]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs.items()) + "}"


TOOLS: Mapping[str, Callable[[LoadRun], LoadCommand]] = MappingProxyType(
    {
        "vllm": vllm_bench,
        "sglang": sglang,
        "aiperf": aiperf,
        "guidellm": guidellm,
        "inference-perf": inference_perf,
    }
)
"""By the name asked for on the command line."""
TOOL_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "vllm": "vllm bench serve",
        "sglang": "SGLang benchmark",
        "aiperf": "AIPerf",
        "guidellm": "GuideLLM",
        "inference-perf": "inference-perf",
    }
)
"""Proper names; the same in every language."""
LARGEST_GAP = 0.005
"""Drawn and exact hit rates nearer than this need no remark."""


def remarks(command: LoadCommand, exact_share: float, drawn_share: float) -> tuple[Message, ...]:
    """Notes of a command, without those that make no difference to this run."""
    needless = (DRAWN,) if abs(exact_share - drawn_share) < LARGEST_GAP else ()
    return tuple(note for note in command.notes if note not in needless)
