"""The cheapest ways to make a deployment fit, or to make more room: every lever, and pairs where none is enough."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from calc.deployment import MAX_GPUS, Deployment
from calc.engine import resolve
from calc.errors import InputError
from calc.judge.lever_changes import LONGEST_SHARE
from calc.memory import MemoryReport, sequences_at
from calc.messages import Message, msg
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.units import GIB
from calc.ways.change import change_of, changed_flags
from calc.ways.gap import Gap, Peak, at_peak, carries, gap_of, longest_length, lost_share, planned_peak
from calc.ways.levers import GROWING, LEVERS, Place
from calc.workload import Prices

LEAST_GAIN_BYTES = GIB // 10
"""A lever that gains less and does not suffice is no way out."""
FEW_LOST_SHARE = 1 - LONGEST_SHARE
"""Up to this share of requests a length limit refuses next to nothing."""
LOSING_SEVERITY = 2
"""Added where a length limit refuses more."""
MOST_PAIRS = 4
"""Combinations shown beside the single levers."""
ONLY_LATER = ("shorter-context", "more-replicas")
"""Levers that may apply only once another has made room."""
OTHER_GPU = "other-gpu"
"""Code of a way that changes the GPU type."""
OTHER_GPU_SEVERITY = 1


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way out: what is changed, and what it does."""

    codes: tuple[str, ...]
    change: Message
    """Setting by setting, from which value to which."""
    scenario: Scenario
    memory: MemoryReport
    gap: Gap
    gained_bytes: int
    """How much less the need exceeds the room, per GPU; can be below 0."""
    starts: bool
    """One sequence of max length fits."""
    carries: bool | None
    """The planned peak fits too; ``None`` = the peak is not known."""
    sequences: float
    """Requests of the load's mean length that the whole deployment holds."""
    gpu_count: int
    cost_per_hour: float | None
    lost_share: float
    """Share of the user's own requests longer than the length limit."""
    flags: tuple[str, ...]
    """What changes on the engine's command line."""
    side_effects: tuple[Message, ...]
    severity: int

    @property
    def suffices(self) -> bool:
        """It starts, and holds the planned peak where that is known."""
        return self.starts and self.carries is not False


@dataclass(frozen=True, kw_only=True)
class WaysOut:
    """Where the gap comes from, and what closes it: the ways that suffice first, then cost, then side effects."""

    gap: Gap
    peak: Peak
    now: Way
    ways: tuple[Way, ...]
    refused: Mapping[str, Message] = field(default_factory=dict)
    """Levers that do not apply, each with the reason."""
    longest_tokens: int | None = None
    """The longest max model length with which the scenario starts; ``None`` = none does."""


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """What every trial is held against."""

    start: Scenario
    now_over_bytes: int
    peak: Peak
    formats: Mapping[str, ModelSpec]
    prices: Mapping[str, Prices]
    """Of other GPU types, by id."""

    def try_out(self, codes: tuple[str, ...], deployment: Deployment) -> Way:
        start = self.start
        same_gpu = deployment.gpu == start.deployment.gpu
        prices = start.prices if same_gpu else self.prices.get(deployment.gpu.id, replace(start.prices, gpu_hour=None))
        scenario = replace(start, deployment=deployment, prices=prices)
        memory = at_peak(scenario, self.peak)
        gap = gap_of(deployment, memory, self.peak)
        shorter = memory.max_model_len_tokens < resolve(start.deployment).max_model_len_tokens
        return Way(
            codes=codes,
            change=change_of(start.deployment, deployment),
            scenario=scenario,
            memory=memory,
            gap=gap,
            gained_bytes=self.now_over_bytes - gap.over_bytes,
            starts=memory.fits,
            carries=carries(memory, self.peak),
            sequences=0.0,
            gpu_count=deployment.gpu_count,
            cost_per_hour=None if prices.gpu_hour is None else prices.gpu_hour * deployment.gpu_count,
            lost_share=lost_share(start.workload, memory.max_model_len_tokens) if shorter else 0.0,
            flags=(),
            side_effects=tuple(LEVERS[code].side_effect for code in codes if code in LEVERS),
            severity=sum(LEVERS[code].severity if code in LEVERS else OTHER_GPU_SEVERITY for code in codes),
        )

    def pull(self, code: str, way: Way, most_gpus: int = MAX_GPUS) -> tuple[Way, ...] | Message:
        """The lever's steps up to the first that suffices, on top of what ``way`` has changed already."""
        place = Place(scenario=way.scenario, memory=way.memory, peak=self.peak, formats=self.formats)
        tried: list[Way] = []
        try:
            steps = LEVERS[code].steps(place)
            if isinstance(steps, Message):
                return steps
            for deployment in (step for step in steps if step.gpu_count <= most_gpus):
                tried.append(self.try_out((*way.codes, code), deployment))
                if tried[-1].suffices:
                    break
        except InputError as error:
            return tuple(tried) or error.message
        return tuple(tried)


def ways_out(
    scenario: Scenario,
    memory: MemoryReport,
    *,
    formats: Mapping[str, ModelSpec] | None = None,
    others: Sequence[Deployment] = (),
    prices: Mapping[str, Prices] | None = None,
) -> WaysOut:
    """Every lever on ``scenario``, pairs where none alone is enough, and the given deployments on ``others``.

    ``memory`` is the scenario's own report, at the simulated peak where that is known; ``formats`` is the model as it
    would be stored in FP8 or INT4, by dtype code; ``prices`` those of other GPU types, by id.
    """
    bench, now = _bench(scenario, memory, formats or {}, prices or {})
    singles: dict[str, tuple[Way, ...]] = {}
    refused: dict[str, Message] = {}
    for code in LEVERS:
        pulled = bench.pull(code, now)
        if isinstance(pulled, Message):
            refused[code] = pulled
        elif pulled:
            singles[code] = pulled
    found = [way for ways in singles.values() for way in _chosen(ways)]
    if not now.suffices:
        found += _pairs(bench, singles)
    found += [bench.try_out((OTHER_GPU,), other) for other in others]
    idle = [way for way in found if not way.starts > now.starts and _is_idle(way)]
    refused |= {way.codes[0]: msg("It gains next to nothing here.") for way in idle}
    ranked = sorted((way for way in found if way not in idle), key=lambda way: _rank(way, scenario.prices))
    return WaysOut(
        gap=now.gap,
        peak=bench.peak,
        now=_finished(now, scenario),
        ways=tuple(_finished(way, scenario) for way in ranked),
        refused=refused,
        longest_tokens=longest_length(scenario.deployment, now.memory),
    )


def _is_idle(way: Way) -> bool:
    return not way.suffices and way.gained_bytes < LEAST_GAIN_BYTES


def _chosen(ways: Sequence[Way]) -> list[Way]:
    """Of a lever's steps: the first that starts and the first that suffices, or the one that comes nearest."""
    best, starting = _best(ways), next((way for way in ways if way.starts), None)
    return [best] if starting is None or starting is best else [starting, best]


def _bench(
    scenario: Scenario, memory: MemoryReport, formats: Mapping[str, ModelSpec], prices: Mapping[str, Prices]
) -> tuple[_Bench, Way]:
    peak = planned_peak(scenario, memory)
    plain = _Bench(start=scenario, now_over_bytes=0, peak=peak, formats=formats, prices=prices)
    now = plain.try_out((), scenario.deployment)
    return replace(plain, now_over_bytes=now.gap.over_bytes), replace(now, gained_bytes=0)


def _best(ways: Sequence[Way]) -> Way:
    """The first step that suffices; else the first that starts; else the one that comes nearest."""
    for fine in (lambda way: way.suffices, lambda way: way.starts):
        if found := next(filter(fine, ways), None):
            return found
    return max(ways, key=lambda way: way.gained_bytes)


def _pairs(bench: _Bench, singles: Mapping[str, tuple[Way, ...]]) -> list[Way]:
    """Two levers together, where none is enough without more GPUs or refused requests; one more where two are not."""
    enough = [way for ways in singles.values() for way in ways if way.suffices and way.lost_share <= FEW_LOST_SHARE]
    most_gpus = min((way.gpu_count for way in enough), default=MAX_GPUS + 1) - 1
    if most_gpus < bench.start.deployment.gpu_count:
        return []
    helping = {code: ways for code, ways in singles.items() if max(way.gained_bytes for way in ways) > 0}
    later = [code for code in ONLY_LATER if code not in singles]
    tried: list[Way] = []
    for first, second in itertools.combinations([*_settings_first(helping), *later], 2):
        if first not in later and _worth_trying(helping, first, second, bench.now_over_bytes):
            start = _best(helping[first]) if first in GROWING else helping[first][-1]
            tried += _on_top(bench, start, second, most_gpus)
    fine = [way for way in tried if way.suffices]
    if not fine and tried and not enough:
        fine = _thirds(bench, max(tried, key=lambda way: way.gained_bytes), [*helping, *later])
    return sorted(fine, key=lambda way: _rank(way, bench.start.prices))[:MOST_PAIRS]


def _thirds(bench: _Bench, best: Way, codes: Iterable[str]) -> list[Way]:
    others = (code for code in codes if LEVERS[code].axis not in _axes(best))
    return [way for code in others for way in _on_top(bench, best, code, MAX_GPUS) if way.suffices]


def _settings_first(helping: Mapping[str, tuple[Way, ...]]) -> list[str]:
    """Settings before growth: the last lever of a pair is stepped, so that no more GPUs are taken than needed."""
    return sorted(helping, key=lambda code: (code in GROWING, code in ONLY_LATER))


def _worth_trying(helping: Mapping[str, tuple[Way, ...]], first: str, second: str, over_bytes: int) -> bool:
    """Halving what was halved already gains less than the sum of both, so pairs below the gap need no trial."""
    if LEVERS[first].axis == LEVERS[second].axis:
        return False
    if second not in helping:
        return True
    return sum(max(way.gained_bytes for way in helping[code]) for code in (first, second)) >= over_bytes


def _axes(way: Way) -> set[str]:
    return {LEVERS[code].axis for code in way.codes}


def _on_top(bench: _Bench, way: Way, code: str, most_gpus: int) -> list[Way]:
    pulled = bench.pull(code, way, most_gpus)
    return [] if isinstance(pulled, Message) or not pulled else [_best(pulled)]


def _rank(way: Way, now: Prices) -> tuple[bool, bool, bool, float, int, int]:
    """Suffices, starts; known price before unknown; cheaper; milder; more room. Below that, what gains most."""
    unknown, cost = _cost(way, now)
    if not way.suffices:
        return (True, not way.starts, unknown, 0.0, 0, -way.gained_bytes)
    severity = way.severity + (LOSING_SEVERITY if way.lost_share > FEW_LOST_SHARE else 0)
    return (False, False, unknown, cost, severity, -way.gained_bytes)


def _cost(way: Way, now: Prices) -> tuple[bool, float]:
    """Whether it cannot be compared with today's, and the amount; without a price the GPUs of one type compare."""
    if OTHER_GPU not in way.codes:
        return False, float(way.gpu_count) if way.cost_per_hour is None else way.cost_per_hour
    if now.gpu_hour is None or way.cost_per_hour is None or way.scenario.prices.currency != now.currency:
        return True, float(way.gpu_count)
    return False, way.cost_per_hour


def _finished(way: Way, start: Scenario) -> Way:
    """With the flags that change, and in words what a shorter limit refuses."""
    effects = way.side_effects
    if (length := way.memory.max_model_len_tokens) < resolve(start.deployment).max_model_len_tokens:
        longer = msg("{share:pct} of the requests are longer than {length:tok}.", share=way.lost_share, length=length)
        effects = (*effects, longer)
    flags = () if OTHER_GPU in way.codes else changed_flags(start.deployment, way.scenario.deployment)
    return replace(way, side_effects=effects, flags=flags, sequences=_sequences(way))


def _sequences(way: Way) -> float:
    """Requests of the load's mean live length, outputs half written, that all replicas hold."""
    if not way.starts:
        return 0.0
    load, memory, deployment = way.scenario.workload, way.memory, way.scenario.deployment
    live = max(1, round(load.prompt_tokens.mean() + load.output_tokens.mean() / 2))
    held = sequences_at(deployment, memory, min(live, memory.max_model_len_tokens))
    return min(held, memory.num_seqs_limit) * deployment.replicas
