"""The evaluation plan: which cells, loads that repeat as said, commands as the tools' own documentation has them."""

from __future__ import annotations

import itertools
import json
import random
import shlex
import subprocess
from collections import Counter, OrderedDict
from dataclasses import replace
from functools import cache

import pytest
import yaml
from click.testing import CliRunner

from calc.deployment import Deployment
from calc.errors import InputError, UnknownName
from calc.poc.cells import CacheStrategy, Repetition
from calc.poc.load_command import LoadRun
from calc.poc.plan import REQUESTS_FOR_P99, ROUNDS_OF_E2E, Plan, PlanSet, plan
from calc.poc.repetition import (
    PromptShape,
    RepeatedLoad,
    Room,
    drawn_hit_share,
    expected_hit_share,
    load_of,
    missed_at_start_share,
    shape_of,
    unlimited_hit_share,
)
from calc.poc.script import Target, script
from calc.poc.server import start_of
from calc.poc.tools import TOOLS
from calc.scenario import Scenario
from cli import main
from data.case import example_case, read_case
from data.checkpoint import launch_of
from data.plan_answer import plan_answer

SHAPE = PromptShape(prefix_tokens=2048, suffix_tokens=500, output_tokens=300)
"""2,048 shared + 500 own + 300 output tokens, the worked example of the tools' documentation below."""


def _run(level: Repetition, *, engine: str = "vllm", base_url: str = "http://HOST:8000", **arrivals: float) -> LoadRun:
    load = load_of(level, SHAPE, 1000)
    given = arrivals or {"rate_per_s": 4.0, "burstiness": 0.7}
    return LoadRun(name="n", load=load, model="MODEL", base_url=base_url, engine=engine, seed=7, **given)  # type: ignore[arg-type]


DOCUMENTED = {
    ("vllm", Repetition.MEDIUM): (
        "vllm bench serve --backend vllm --base-url http://HOST:8000 --model MODEL --dataset-name prefix_repetition "
        "--num-prompts 1000 --prefix-repetition-prefix-len 2048 --prefix-repetition-suffix-len 500 "
        "--prefix-repetition-num-prefixes 500 --prefix-repetition-output-len 300 --ignore-eos --request-rate 4 "
        "--burstiness 0.7 --seed 7 --num-warmups 0 --save-result"
    ),
    ("sglang", Repetition.MEDIUM): (
        "python3 -m sglang.benchmark.serving --backend sglang --base-url http://HOST:30000 --model MODEL "
        "--dataset-name generated-shared-prefix --gsp-num-groups 500 --gsp-prompts-per-group 2 "
        "--gsp-system-prompt-len 2048 --gsp-question-len 500 --gsp-output-len 300 --gsp-range-ratio 1.0 "
        "--request-rate 4 --seed 7 --flush-cache --warmup-requests 0"
    ),
    ("aiperf", Repetition.MEDIUM): (
        "aiperf profile --model MODEL --url http://HOST:8000 --endpoint-type completions --streaming --tokenizer MODEL "
        "--num-prefix-prompts 627 --prefix-prompt-length 2048 --isl 500 --isl-stddev 0 --osl 300 --osl-stddev 0 "
        "--num-dataset-entries 1000 --request-count 1000 --request-rate 4 --arrival-pattern gamma "
        "--arrival-smoothness 0.7 --random-seed 7 --extra-inputs ignore_eos:true min_tokens:300"
    ),
    ("aiperf", Repetition.LOW): "aiperf profile --isl 2548 --isl-stddev 0 --num-dataset-entries 1000",
    ("aiperf", Repetition.HIGH): "aiperf profile --num-prefix-prompts 5 --prefix-prompt-length 2048 --isl 500",
    ("guidellm", Repetition.MEDIUM): (
        "guidellm run --backend kind=openai_http,target=http://HOST:8000 --profile kind=poisson,rate=4 "
        "--constraint kind=max_requests,count=1000 --seed kind=static,value=7 "
        "--data kind=synthetic_text,prompt_tokens=500,output_tokens=300,prefix_count=627,prefix_tokens=2048"
    ),
    ("guidellm", Repetition.LOW): "guidellm run --data kind=synthetic_text,prompt_tokens=2548,output_tokens=300",
}
"""vLLM 0.32 datasets and serve, SGLang 0.5.23, AIPerf 0.13 and GuideLLM 0.8.1 as read in their packages, 2026-11."""


@pytest.mark.parametrize(("tool", "level"), DOCUMENTED)
def test_a_command_holds_every_word_of_the_documented_one_in_its_order(tool: str, level: Repetition) -> None:
    engine, url = ("sglang", "http://HOST:30000") if tool == "sglang" else ("vllm", "http://HOST:8000")
    made = iter(TOOLS[tool](_run(level, engine=engine, base_url=url)).words)
    assert all(word in made for word in shlex.split(DOCUMENTED[tool, level]))


def test_inference_perf_reads_a_file_in_which_no_prompt_comes_twice() -> None:
    made = TOOLS["inference-perf"](_run(Repetition.MEDIUM))
    (name, text), read = next(iter(made.files.items())), yaml.safe_load(next(iter(made.files.values())))
    assert made.words == ("inference-perf", "--config_file", name)
    assert read["data"]["shared_prefix"] == {
        "num_groups": 500,
        "num_prompts_per_group": 2,
        "system_prompt_len": 2048,
        "question_len": 500,
        "output_len": 300,
    }
    assert read["load"] == {"type": "poisson", "base_seed": 7, "stages": [{"rate": 4, "duration": 250}]}, text
    assert read["server"] == {"type": "vllm", "model_name": "MODEL", "base_url": "http://HOST:8000", "ignore_eos": True}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_closed_loop_has_no_rate_and_an_open_one_no_cap(tool: str) -> None:
    """Both at once is coordinated omission: waiting in the client goes untimed."""
    closed = TOOLS[tool](_run(Repetition.MEDIUM, concurrency=32))
    opened = TOOLS[tool](_run(Repetition.MEDIUM))
    said = {one: " ".join([made.command, *made.files.values()]) for one, made in ((True, closed), (False, opened))}
    assert "32" in said[True]
    assert "rate" not in said[True].replace("generat", "").replace("separate", "")
    assert "concurren" not in said[False]


def _lru(load: RepeatedLoad, kv_tokens: float, seed: int, *, drawn: bool) -> float:
    """A cache that evicts what was used least recently, one request at a time."""
    rng, shape = random.Random(seed), load.shape
    order = [rng.randrange(load.pool) if drawn else number % load.groups for number in range(load.requests)]
    rng.shuffle(order)
    kept: OrderedDict[tuple[str, int], int] = OrderedDict()
    hits = used = 0
    for number, prefix in enumerate(order):
        if ("shared", prefix) in kept:
            hits += shape.prefix_tokens
            kept.move_to_end(("shared", prefix))
        else:
            kept["shared", prefix] = shape.prefix_tokens
            used += shape.prefix_tokens
        kept["own", number] = shape.suffix_tokens + shape.output_tokens
        used += kept["own", number]
        while used > kv_tokens and len(kept) > 1:
            used -= kept.popitem(last=False)[1]
    return hits / (load.requests * shape.prompt_tokens)


@pytest.mark.parametrize("kv_tokens", [2e6, 1e6, 2e5])
@pytest.mark.parametrize("level", Repetition)
def test_the_expected_hit_rate_is_that_of_a_cache_which_evicts_the_least_recent(
    level: Repetition, kv_tokens: float
) -> None:
    load = load_of(level, SHAPE, 1000)
    for drawn, formula in ((False, expected_hit_share), (True, drawn_hit_share)):
        if drawn and not load.pool:
            continue
        played = [_lru(load, kv_tokens, seed, drawn=drawn) for seed in range(12)]
        assert formula(load, Room(kv_tokens=kv_tokens)) == pytest.approx(sum(played) / len(played), abs=0.012)


@pytest.mark.parametrize(("groups", "kv_tokens", "hit_share"), [
    (1000, 2e6, 0.0), (500, 2e6, 0.402), (500, 1e6, 0.292), (500, 2e5, 0.064),
    (250, 2e6, 0.603), (250, 2e5, 0.191), (5, 2e6, 0.800), (5, 2e5, 0.800),
])  # fmt: skip
def test_hit_rates_published_for_the_example_come_out(groups: int, kv_tokens: float, hit_share: float) -> None:
    """Block by block over prompts alone, 2,048 + 500 tokens, 1,000 requests; within a point."""
    load = RepeatedLoad(shape=replace(SHAPE, output_tokens=0), requests=1000, groups=groups)
    assert expected_hit_share(load, Room(kv_tokens=kv_tokens)) == pytest.approx(hit_share, abs=0.01)


def test_pools_drawn_with_replacement_meet_as_many_prefixes_as_exact_numbers() -> None:
    medium = load_of(Repetition.MEDIUM, SHAPE, 1000)
    rng = random.Random(3)
    distinct = [len({rng.randrange(medium.pool) for _ in range(1000)}) for _ in range(200)]
    assert medium.pool == 627
    assert sum(distinct) / len(distinct) == pytest.approx(medium.groups, rel=0.01)


def test_hits_fall_with_spreading_and_never_pass_the_ceiling() -> None:
    load = load_of(Repetition.MEDIUM, SHAPE, 1000)
    shares = [expected_hit_share(load, Room(kv_tokens=1e9, replicas=number)) for number in (1, 2, 4)]
    assert shares == sorted(shares, reverse=True)
    assert shares[1] == pytest.approx(shares[0] / 2), "of two uses each half lands on the other of two replicas"
    assert SHAPE.ceiling_share == pytest.approx(0.804, abs=5e-4)
    assert unlimited_hit_share(load_of(Repetition.HIGH, SHAPE, 1000)) < SHAPE.ceiling_share
    assert missed_at_start_share(load_of(Repetition.HIGH, SHAPE, 1000), 64) == pytest.approx(
        59 / 1000 * 0.804, rel=0.01
    )


def test_prefixes_end_with_a_block() -> None:
    for prompt, block in ((3520, 16), (900, 64), (8960, 128)):
        shape = shape_of(prompt, 100, block)
        assert shape.prefix_tokens % block == 0
        assert shape.prompt_tokens == prompt
        assert 0.7 < shape.ceiling_share <= 0.8


@cache
def _example() -> tuple[Scenario, Plan]:
    scenario, _ = read_case(example_case())
    return scenario, plan(scenario)


def test_the_sets_contain_each_other_and_the_smallest_begins_with_a_single_request_without_reuse() -> None:
    _, found = _example()
    small, middle, full = (found.part(which) for which in PlanSet)
    assert set(small) < set(middle) < set(full) == set(found.cells)
    assert small[0].cell.strategy is CacheStrategy.PER_REQUEST
    assert small[0].cell.concurrency == 1
    assert {one.cell.repetition for one in small} == {Repetition.MEDIUM}
    assert {one.cell.strategy for one in middle} == {
        CacheStrategy.PER_REQUEST, CacheStrategy.PREFIX, CacheStrategy.OFFLOAD,
    }  # fmt: skip
    assert {one.cell.repetition for one in middle} == set(Repetition)
    assert len(full) > 90
    assert 0 < found.gpu_hours(small) < found.gpu_hours(middle) < found.gpu_hours(full)


def test_runs_are_long_enough_for_their_percentile_and_cells_stand_apart() -> None:
    _, found = _example()
    for one in found.cells:
        assert one.load.requests % 10 == 0
        if one.cell.concurrency > 1:
            assert one.load.requests >= max(REQUESTS_FOR_P99, ROUNDS_OF_E2E * one.cell.concurrency)
    axes = found.axes
    for levels in (axes.contexts_tokens, axes.concurrencies):
        assert all(later > 1.5 * sooner for sooner, later in itertools.pairwise(levels))


def test_no_two_loads_share_a_seed_and_strategies_see_the_same_prompts() -> None:
    _, found = _example()
    seeds: dict[tuple[object, ...], tuple[int, ...]] = {}
    for one in found.cells:
        cell = one.cell
        load = (cell.repetition, cell.context_tokens, cell.concurrency, one.rate_per_s)
        assert seeds.setdefault(load, one.seeds) == one.seeds
    drawn = Counter(seed for each in seeds.values() for seed in each)
    assert set(drawn.values()) == {1}
    assert not {0, 1, 42} & set(drawn), "the tools' own seeds"


def _deploy(engine: str, **changes: object) -> Deployment:
    case = {"model": "Qwen/Qwen3-32B", "gpu": "h100-sxm", "tp": 2, "engine": engine, **changes}
    workload = {
        "prompt_tokens": {"distribution": "fixed", "value": 500},
        "output_tokens": {"distribution": "fixed", "value": 50},
        "arrivals": {"kind": "closed", "concurrency": 2},
    }
    return read_case({**case, "workload": workload})[0].deployment


def test_prompts_shorter_than_a_block_are_never_found_again() -> None:
    workload = {
        "prompt_tokens": {"distribution": "fixed", "value": 12},
        "output_tokens": {"distribution": "fixed", "value": 8},
        "arrivals": {"kind": "closed", "concurrency": 4},
    }
    found = plan(read_case({**example_case(), "workload": workload})[0], PlanSet.MINIMAL)
    assert {one.expected_hit_share for one in found.cells} == {0.0}


@pytest.mark.parametrize(("engine", "version", "off", "offload"), [
    ("vllm", "0.19.0", "--no-enable-prefix-caching", "--kv-offloading-size 93"),
    ("vllm", "0.11.0", "--no-enable-prefix-caching", "OffloadingConnector"),
    ("sglang", None, "--disable-radix-cache", "--enable-hierarchical-cache --hicache-size 50"),
    ("tensorrt-llm", None, "enable_block_reuse: false", "host_cache_size: 50000000000"),
])  # fmt: skip
def test_each_strategy_starts_the_server_its_own_way(engine: str, version: str | None, off: str, offload: str) -> None:
    deployment = _deploy(engine, engine_version=version)
    said = {}
    for strategy in (CacheStrategy.PER_REQUEST, CacheStrategy.PAGED, CacheStrategy.PREFIX, CacheStrategy.OFFLOAD):
        start = start_of(deployment, strategy, 100 * 10**9, launch_of)
        said[strategy] = start.command + "".join(start.files.values())
        for text in start.files.values():
            assert isinstance(yaml.safe_load(text), dict)
    assert off in said[CacheStrategy.PER_REQUEST]
    assert said[CacheStrategy.PAGED] == said[CacheStrategy.PER_REQUEST]
    assert off not in said[CacheStrategy.PREFIX]
    assert offload in said[CacheStrategy.OFFLOAD]
    assert offload not in said[CacheStrategy.PREFIX]


def test_an_engine_without_offload_says_so() -> None:
    start = start_of(_deploy("vllm", engine_version="0.8.0"), CacheStrategy.OFFLOAD, 10**9, launch_of)
    assert "no offload" in " ".join(str(note) for note in start.notes)


def test_lines_of_the_command_add_up() -> None:
    cells, total = plan_answer(example_case(), "recommended", [], "http://HOST:8000")
    assert total["cells"] == len(cells)
    assert total["runs"] == sum(line["runs"] for line in cells)
    assert total["gpu_hours"] == pytest.approx(sum(line["gpu_hours"] for line in cells), abs=0.05)
    for line in cells:
        assert set(line["load"]) == set(TOOLS)
        assert all(len(set(one["commands"])) == line["runs"] for one in line["load"].values())
        assert line["expected_hit_share"] <= line["ceiling_share"]
        assert json.loads(json.dumps(line)) == line


@pytest.mark.parametrize(("which", "tools", "url", "error"), [
    ("small", [], "http://h", UnknownName), ("full", ["wrk"], "http://h", UnknownName),
    ("full", [], "file:///etc", InputError), ("full", [], "http://a\nb", InputError),
])  # fmt: skip
def test_what_is_not_known_is_said(which: str, tools: list[str], url: str, error: type[InputError]) -> None:
    with pytest.raises(error):
        plan_answer(example_case(), which, tools, url)


@pytest.mark.parametrize("tool", ["vllm", "inference-perf"])
def test_the_script_is_shell_and_a_hostile_name_runs_nothing(tool: str) -> None:
    scenario, found = _example()
    named = replace(scenario.deployment, model=replace(scenario.deployment.model, name="$(touch x); 'a\" b"))
    target = Target(deployment=named, launch_of=launch_of)
    text = script(found, found.part(PlanSet.MINIMAL), target, tool)
    assert subprocess.run(["sh", "-n"], input=text.encode(), check=False).returncode == 0
    outside, inside = [], False
    for line in text.splitlines():
        if not inside:
            outside.append(line)
        inside = line.endswith("<<'END_OF_FILE'") or (inside and line != "END_OF_FILE")
    assert not [line for line in outside if "touch" in line and "'$(touch" not in line]
    assert text.count("-before.txt") == text.count("-after.txt") == 7


def test_the_command_line_prints_a_cell_a_line_and_sums_up_beside_it() -> None:
    asked = json.dumps({"id": "mine", **example_case()})
    answer = CliRunner().invoke(main, ["plan", "-", "--set", "minimal", "--tool", "vllm"], input=asked)
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    assert answer.exit_code == 0
    assert [line["id"] for line in lines] == ["mine"] * 3
    assert json.loads(answer.stderr)["cells"] == 3
    refused = CliRunner().invoke(main, ["plan", "--set", "tiny"])
    assert refused.exit_code == 1
    assert "minimal, recommended, full" in json.loads(refused.stdout)["error"]


def test_the_server_listens_where_the_load_generator_asks() -> None:
    def started(engine: str, port: int | None) -> str:
        return start_of(_deploy(engine), CacheStrategy.PREFIX, 10**9, launch_of, port).command

    assert "--port 8000" in started("sglang", 8000)
    assert "--port" not in started("sglang", 30000)
    assert "--port" not in started("vllm", 8000)
    assert "--port 9000" in started("vllm", 9000)
    assert "--port" not in started("sglang", None)
