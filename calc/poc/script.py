"""A plan as one shell script: a start of the server, then its runs, each between two readings of the counters."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from calc.deployment import Deployment
from calc.errors import InputError
from calc.messages import msg
from calc.poc.cells import CacheStrategy
from calc.poc.load_command import LoadCommand, LoadRun
from calc.poc.plan import Plan, PlannedCell
from calc.poc.server import reset_of, start_of
from calc.poc.tools import RESULTS, TOOLS
from calc.ways.launch import Launch

BASE_URL = "http://HOST:8000"
"""Put the server's address in its place."""
LONGEST_URL = 500
END = "END_OF_FILE"
GPU_LOG = (
    "nvidia-smi --query-gpu=timestamp,index,name,memory.used,memory.total,utilization.gpu,power.draw,power.limit "
    "--format=csv -l 5"
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is measured: which deployment, how one starts it, and where it answers."""

    deployment: Deployment
    launch_of: Callable[[Deployment], Launch]
    base_url: str = BASE_URL

    def __post_init__(self) -> None:
        if not (self.base_url.startswith(("http://", "https://")) and self.base_url.isprintable()) or (
            " " in self.base_url or len(self.base_url) > LONGEST_URL
        ):
            raise InputError(
                msg("the server's address must be like http://host:8000, got {value}: correct it.", value=self.base_url)
            )

    def start(self, plan: Plan, strategy: CacheStrategy) -> Launch:
        """The start command of a strategy."""
        return start_of(self.deployment, strategy, plan.host_bytes, self.launch_of, self._port)

    @property
    def _port(self) -> int | None:
        try:
            return urlsplit(self.base_url).port
        except ValueError:
            return None

    @property
    def reset(self) -> tuple[str, ...]:
        """The command that empties the cache, if the engine has one."""
        return reset_of(self.deployment.engine.id, self.base_url)

    @property
    def scrape(self) -> tuple[str, ...]:
        """Reads the server's own counters."""
        return ("curl", "-fsS", self.base_url.rstrip("/") + "/metrics")


def runs_of(planned: PlannedCell, target: Target, model: str) -> tuple[LoadRun, ...]:
    """One run a seed."""
    closed = planned.rate_per_s is None
    return tuple(
        LoadRun(
            name=f"{planned.name}-s{seed}",
            load=planned.load,
            model=model,
            base_url=target.base_url,
            engine=target.deployment.engine.id,
            seed=seed,
            concurrency=planned.cell.concurrency if closed else None,
            rate_per_s=planned.rate_per_s,
            burstiness=planned.burstiness,
        )
        for seed in planned.seeds
    )


def model_of(launch: Launch, engine: str) -> str:
    """The model's name as the start line has it: safe to paste, or a placeholder."""
    words = [word for word in launch.words if "=" not in word or word.startswith("-")]
    if engine == "vllm":
        return words[words.index("serve") + 1]
    return words[words.index("--model-path") + 1] if engine == "sglang" else words[words.index("trtllm-serve") + 1]


def script(plan: Plan, cells: Sequence[PlannedCell], target: Target, tool: str) -> str:
    """POSIX shell; it stops where the server has to be started otherwise, and at the first command that fails."""
    lines = ["#!/bin/sh", "set -eu", f"mkdir -p {RESULTS}"]
    for strategy, group in itertools.groupby(cells, key=lambda one: one.cell.strategy):
        start = target.start(plan, strategy)
        lines += ["", *_files(start.files), f"echo 'Start the server for {strategy}:'", "cat <<'" + END + "'"]
        lines += [start.lines, END, "printf 'Press Enter when it answers. '; read -r _"]
        lines += [f"{GPU_LOG} > {RESULTS}/gpu-{strategy}.csv & gpu_log=$!"]
        model = model_of(start, target.deployment.engine.id)
        for one in group:
            for run in runs_of(one, target, model):
                lines += _run(TOOLS[tool](run), run.name, target)
        lines += ["kill $gpu_log"]
    return "\n".join(lines) + "\n"


def _run(command: LoadCommand, name: str, target: Target) -> Iterator[str]:
    scrape = shlex.join(target.scrape)
    yield ""
    yield from _files(command.files)
    if target.reset:
        yield shlex.join(target.reset)
    yield f"{scrape} > {RESULTS}/{name}-before.txt"
    yield command.command
    yield f"{scrape} > {RESULTS}/{name}-after.txt"


def _files(files: Mapping[str, str]) -> Iterator[str]:
    for name, text in files.items():
        yield f"cat > {shlex.quote(name)} <<'{END}'"
        yield text.rstrip("\n")
        yield END
