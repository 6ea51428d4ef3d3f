"""How far the four steps of the evaluation are: which figures are measured, and which a review would miss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from calc.messages import Message, msg
from calc.poc.cells import CacheStrategy, Repetition
from calc.poc.coverage import BASELINE, CellState, PlacedRun, evidence_of
from calc.poc.plan import REQUESTS_FOR_P99


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What was seen outside the runs themselves; ``None`` = nobody looked."""

    memory_peak_bytes: float | None = None
    compute_share: float | None = None
    gpu_hour_price: float | None = None
    hit_share: float | None = None
    kv_usage_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Required:
    """One figure of a step."""

    code: str
    step: int
    title: Message
    measured: bool
    how: Message
    """Where it comes from when it is missing."""


Test = Callable[[Sequence[PlacedRun], Watched], bool]

STEPS: Mapping[int, Message] = MappingProxyType(
    {
        1: msg("Baseline without reuse across requests"),
        2: msg("Gain at three levels of repetition"),
        3: msg("Peak and tail"),
        4: msg("Full cost"),
    }
)


def status(runs: Sequence[PlacedRun], watched: Watched) -> tuple[Required, ...]:
    """Every required figure, in the order of the steps; only usable runs that have a place count."""
    placed = [run for run in runs if run.cell is not None and run.usable]
    return tuple(
        Required(code=code, step=step, title=title, measured=test(placed, watched), how=how)
        for code, step, title, how, test in _TABLE
    )


def gap(required: Sequence[Required]) -> tuple[Message, ...]:
    """What a review is told of the evaluation: how much is there, and the first figure that is not."""
    missing = [one for one in required if not one.measured]
    if not missing:
        return ()
    return (
        msg(
            "Evaluation: {done:count} of {all:count} figures are there; first missing: {title}",
            done=len(required) - len(missing),
            all=len(required),
            title=missing[0].title,
        ),
    )


def _of(runs: Sequence[PlacedRun], strategy: CacheStrategy) -> list[PlacedRun]:
    return [run for run in runs if run.cell is not None and run.cell.strategy is strategy]


def _baseline(test: Callable[[PlacedRun], bool]) -> Test:
    return lambda runs, _: any(test(run) for run in _of(runs, BASELINE))


def _single(run: PlacedRun) -> bool:
    ttft = run.facts.ttft
    return run.cell is not None and run.cell.concurrency == 1 and (ttft.p50_s or ttft.mean_s) is not None


def _decode(run: PlacedRun) -> bool:
    return any(value is not None for one in (run.facts.tpot, run.facts.itl) for value in (one.mean_s, one.p50_s))


def _tails(run: PlacedRun) -> bool:
    e2e, counted = run.facts.e2e, run.facts.completed or 0
    return None not in (e2e.p50_s, e2e.p95_s, e2e.p99_s) and counted >= REQUESTS_FOR_P99


def _lengths(run: PlacedRun) -> bool:
    return run.facts.input_tokens_mean is not None and run.facts.output_tokens_mean is not None


def _throughput(run: PlacedRun) -> bool:
    return bool(run.facts.request_throughput_per_s)


def _failures(run: PlacedRun) -> bool:
    return run.facts.failed is not None or run.facts.success_share is not None


def _several_loads(runs: Sequence[PlacedRun], _: Watched) -> bool:
    return len({run.cell.concurrency for run in _of(runs, BASELINE) if run.cell}) >= 3  # noqa: PLR2004 - a knee has two sides


def _level(level: Repetition) -> Test:
    """The same load without and with reuse."""

    def test(runs: Sequence[PlacedRun], _: Watched) -> bool:
        loads = {
            strategy: {
                (run.cell.context_tokens, run.cell.concurrency)
                for run in _of(runs, strategy)
                if run.cell and run.cell.repetition is level
            }
            for strategy in (BASELINE, CacheStrategy.PREFIX)
        }
        return bool(loads[BASELINE] & loads[CacheStrategy.PREFIX])

    return test


def _repeated(runs: Sequence[PlacedRun], _: Watched) -> bool:
    return any(len(one.usable) > 1 and one.state is not CellState.CONTRADICTING for one in evidence_of((), runs))


def _beyond(runs: Sequence[PlacedRun], _: Watched) -> bool:
    """A load at which queueing shows: twice another one, with a P99."""
    loads = [run.cell.concurrency for run in runs if run.cell and run.facts.ttft.p99_s is not None]
    return bool(loads) and max(loads) >= 2 * min(load for load in loads if load > 1 or len(loads) == 1) > 1


def _open_loop(runs: Sequence[PlacedRun], _: Watched) -> bool:
    return any(run.facts.request_rate_per_s is not None and run.facts.max_concurrency is None for run in runs)


_UPLOAD = msg("a run of this kind, uploaded under Benchmarks")
_GPU = msg("a log of nvidia-smi or DCGM taken during a baseline run, uploaded under Benchmarks")
_SCRAPE = msg("the engine's metrics before and after a run, uploaded under Benchmarks")
_PAIR = msg("the same load with and without reuse")


def _seen(name: str) -> Test:
    return lambda _, watched: getattr(watched, name) is not None


_TABLE: tuple[tuple[str, int, Message, Message, Test], ...] = (
    ("single_ttft", 1, msg("TTFT of a single request"), msg("a baseline run at concurrency 1"), _baseline(_single)),
    ("decode_itl", 1, msg("ITL while decoding"), _UPLOAD, _baseline(_decode)),
    ("e2e_tails", 1, msg("E2E P50, P95 and P99 of 1,000 requests"), _UPLOAD, _baseline(_tails)),
    ("lengths", 1, msg("prompt and output tokens"), _UPLOAD, _baseline(_lengths)),
    ("memory_peak", 1, msg("memory peak"), _GPU, _seen("memory_peak_bytes")),
    ("compute", 1, msg("compute utilisation"), _GPU, _seen("compute_share")),
    ("sustainable", 1, msg("sustainable concurrency"), msg("baseline runs at three concurrencies"), _several_loads),
    ("failures", 1, msg("shares of refused, failed and timed-out requests"), _UPLOAD, _baseline(_failures)),
    ("gpu_time", 1, msg("GPU time per request"), _UPLOAD, _baseline(_throughput)),
    ("gain_medium", 2, msg("gain at medium repetition"), _PAIR, _level(Repetition.MEDIUM)),
    ("gain_low", 2, msg("gain at low repetition"), _PAIR, _level(Repetition.LOW)),
    ("gain_high", 2, msg("gain at high repetition"), _PAIR, _level(Repetition.HIGH)),
    ("hit_rate", 2, msg("hit rate as the server counts it"), _SCRAPE, _seen("hit_share")),
    ("repeats", 2, msg("repeats of a cell that agree"), msg("the same cell with another seed"), _repeated),
    ("peak", 3, msg("P99 at twice the usual load"), _UPLOAD, _beyond),
    ("tail", 3, msg("latency at a request rate, whatever the server does"), msg("an open-loop run"), _open_loop),
    ("kv_usage", 3, msg("KV usage under load"), _SCRAPE, _seen("kv_usage_share")),
    ("price", 4, msg("price of a GPU-hour"), msg("enter it at the side"), _seen("gpu_hour_price")),
)
"""What each step needs, by the runs that show it."""
