"""A start-up log beside the estimate, part by part, with why they differ; the differences add up to the pool's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from calc.cache.pool import plan_for
from calc.deployment import Deployment
from calc.engine import FractionOf, TokensMeaning, resolve
from calc.errors import ImpossibleDeployment
from calc.memory import estimate_memory
from calc.messages import Message, msg
from calc.room.budget import Stage, covered_runtime_bytes, plan_stages
from calc.startup.log import Seen, StartupLog
from calc.startup.match import differences, listed, logged_gpu, started_as
from calc.startup.measured import MeasuredMemory
from calc.startup.reasons import (
    AGREES_SHARE,
    WORTH_TELLING_BYTES,
    least_of_ranks,
    most_of_ranks,
    own_reasons,
    rank_reasons,
)
from calc.units import GIB


@dataclass(frozen=True, kw_only=True)
class ComparedPart:
    """One part of a GPU's memory, estimated for the deployment as asked and as logged."""

    part: str
    label: Message
    estimated_bytes: int
    logged_bytes: int | None
    """``None`` = the log does not name it."""
    effect_bytes: int = 0
    """What this difference does to the pool; the effects add up to the pool's own difference."""
    why: tuple[Message, ...] = ()
    line: str = ""

    @property
    def difference_bytes(self) -> int | None:
        """Logged − estimated."""
        return None if self.logged_bytes is None else self.logged_bytes - self.estimated_bytes


@dataclass(frozen=True, kw_only=True)
class LogComparison:
    """Parts in the order of the budget, then what was left for the cache."""

    parts: tuple[ComparedPart, ...]
    pool: ComparedPart
    estimated_tokens: int
    logged_tokens: int | None
    tokens_why: tuple[Message, ...] = ()
    other_settings: tuple[Message, ...] = ()
    """Where the log's start differs from what is asked."""


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """What each row is made from."""

    log: StartupLog
    measured: MeasuredMemory
    deployment: Deployment
    asked: Stage
    """Estimated as asked."""
    started: Stage
    """Estimated with the log's settings."""
    away: tuple[Message, ...]

    @property
    def of_total(self) -> bool:
        return self.deployment.engine.fraction_of is FractionOf.TOTAL

    @property
    def graphs_in_budget(self) -> bool:
        said = self.measured.graphs_in_budget
        return self.deployment.engine.graphs_in_budget if said is None else said


def compare_log(log: StartupLog, measured: MeasuredMemory, deployment: Deployment) -> LogComparison:
    """Estimated and logged memory of the rank with the least room, in bytes per GPU."""
    deployment = replace(deployment, measured_memory=None)
    sides = _Sides(
        log=log,
        measured=measured,
        deployment=deployment,
        asked=_tightest(deployment),
        started=_started(measured, deployment),
        away=tuple(differences(measured, deployment, resolve(deployment))),
    )
    parts = [row for row in (_budget(sides), _weights(sides), *_runtime(sides), _graphs(sides)) if row is not None]
    pool = _pool(sides)
    if pool.difference_bytes is not None:
        parts.append(_rest(pool.difference_bytes - sum(part.effect_bytes for part in parts)))
    report = estimate_memory(deployment)
    tokens = measured.kv_tokens and measured.kv_tokens * measured.dp
    return LogComparison(
        parts=tuple(parts),
        pool=pool,
        estimated_tokens=report.kv_tokens,
        logged_tokens=tokens,
        tokens_why=tuple(_tokens_why(sides)),
        other_settings=sides.away,
    )


def _tightest(deployment: Deployment) -> Stage:
    settings = resolve(deployment)
    sizes = plan_for(deployment, settings).stage_bytes_per_block
    stages = plan_stages(deployment, settings)
    return min(zip(stages, sizes, strict=True), key=lambda pair: pair[0].room_bytes / pair[1])[0]


def _started(measured: MeasuredMemory, deployment: Deployment) -> Stage:
    try:
        return _tightest(started_as(measured, deployment))
    except ImpossibleDeployment:  # a log without its model's name: its split need not fit
        return _tightest(deployment)


def _from_settings(sides: _Sides, figure: Callable[[Stage], int]) -> Iterator[Message]:
    """The part of a difference that the estimate makes too once it is given the log's settings."""
    shift = figure(sides.started) - figure(sides.asked)
    if sides.away and abs(shift) >= WORTH_TELLING_BYTES:
        text = (
            msg("The log's other settings make it {size:gib} larger: {what}.", size=shift, what=listed(sides.away))
            if shift > 0
            else msg("The log's other settings make it {size:gib} smaller: {what}.", size=-shift,
                     what=listed(sides.away))
        )  # fmt: skip
        yield text


def _line(seen: Seen[float] | None) -> str:
    return "" if seen is None else seen.line


def _budget(sides: _Sides) -> ComparedPart:
    logged = _logged_budget(sides)
    estimated = sides.asked.budget_bytes
    return ComparedPart(
        part="budget",
        label=msg("Budget of the engine"),
        estimated_bytes=estimated,
        logged_bytes=logged,
        effect_bytes=0 if logged is None else logged - estimated,
        why=tuple(_budget_why(sides)),
        line=_line(sides.log.budget_bytes or sides.log.memory_fraction),
    )


def _logged_budget(sides: _Sides) -> int | None:
    measured = sides.measured
    if not sides.of_total:
        if measured.kv_pool_bytes is None or measured.weights_bytes is None:
            return None
        # The fraction of these engines covers what was found to be free: weights and pool are what it came to.
        return (
            measured.weights_bytes
            + measured.kv_pool_bytes
            + covered_runtime_bytes(sides.deployment, sides.asked.runtime)
        )
    if sides.log.budget_bytes is not None:
        return round(sides.log.budget_bytes.value)
    if sides.log.memory_fraction is None and not sides.log.tells_settings:
        return None
    total = logged_gpu(measured, sides.deployment).memory_bytes
    usual = resolve(replace(sides.deployment, memory_fraction=None)).memory_fraction
    return int(total * (measured.memory_fraction or usual))


def _budget_why(sides: _Sides) -> Iterator[Message]:
    asked, total = resolve(sides.deployment).memory_fraction, sides.measured.gpu_memory_bytes
    logged = sides.measured.memory_fraction
    if logged is not None and abs(logged - asked) >= AGREES_SHARE / 10:
        yield msg("The log was started with {there:pct}, here it is {here:pct}.", there=logged, here=asked)
    if total is not None and abs(total - sides.deployment.gpu.memory_bytes) >= WORTH_TELLING_BYTES:
        yield msg(
            "The GPU of the log shows {there:.2f} GiB, the one here {here:.2f} GiB.",
            there=total / GIB,
            here=sides.deployment.gpu.memory_bytes / GIB,
        )
    if _logged_budget(sides) is None:
        yield msg("The log does not say which share of the memory the engine was given.")
    elif not sides.of_total:
        yield msg("This engine's fraction is of what was free: weights and pool of the log are added.")


def _weights(sides: _Sides) -> ComparedPart:
    return _covered(sides, "weights", msg("Weights"), lambda stage: stage.weights_bytes, sides.log.weights_bytes)


def _covered(
    sides: _Sides, part: str, label: Message, figure: Callable[[Stage], int], seen: Seen[float] | None,
    logged: int | None = None, inside: bool = True,
) -> ComparedPart:  # fmt: skip
    """A part inside the budget: what it takes more, the pool has less."""
    logged = round(seen.value) if logged is None and seen is not None else logged
    estimated = figure(sides.asked)
    why = [*_from_settings(sides, figure), *rank_reasons(seen, most_of_ranks)]
    if not why and logged is not None:
        why = list(own_reasons(part, estimated, logged))
    return ComparedPart(
        part=part,
        label=label,
        estimated_bytes=estimated,
        logged_bytes=logged,
        effect_bytes=estimated - logged if logged is not None and inside else 0,
        why=tuple(why),
        line=_line(seen),
    )


def _runtime(sides: _Sides) -> list[ComparedPart]:
    """Activations and libraries: apart where the log names both, else together as what is left of the budget."""
    inside, measured = sides.of_total, sides.measured
    if measured.activation_bytes is None and measured.non_torch_bytes is None and sides.of_total:
        return [_together(sides)]
    return [
        _covered(
            sides, "activation", msg("Activations at the peak"), lambda stage: stage.runtime.activation_bytes,
            sides.log.activation_bytes, inside=inside,
        ),
        _covered(
            sides, "non_torch", msg("Libraries and buffers"), lambda stage: stage.runtime.non_torch_bytes,
            sides.log.non_torch_bytes, logged=measured.non_torch_bytes, inside=inside,
        ),
    ]  # fmt: skip


def _together(sides: _Sides) -> ComparedPart:
    measured, budget = sides.measured, _logged_budget(sides)
    logged = None
    if measured.kv_pool_bytes is not None and measured.weights_bytes is not None and budget is not None:
        graphs = _logged_graphs(sides) if sides.graphs_in_budget else 0
        logged = budget - measured.kv_pool_bytes - measured.weights_bytes - (graphs or 0)
        if sides.graphs_in_budget and graphs is None:
            logged -= sides.asked.runtime.graph_bytes
    row = _covered(
        sides, "activation", msg("Activations and libraries"),
        lambda stage: stage.runtime.activation_bytes + stage.runtime.non_torch_bytes, None, logged=logged,
    )  # fmt: skip
    said = msg("The log does not name them: what it leaves between budget, weights and pool.")
    return replace(row, why=(said, *row.why)) if logged is not None else row


def _logged_graphs(sides: _Sides) -> int | None:
    measured = sides.measured
    if sides.graphs_in_budget and measured.graph_reserved_bytes is not None:
        return measured.graph_reserved_bytes
    return measured.graph_bytes


def _graphs(sides: _Sides) -> ComparedPart:
    """Graphs change the pool only where they come out of the budget, on either side."""
    log, inside, reserved = sides.log, sides.graphs_in_budget and sides.of_total, sides.measured.graph_reserved_bytes
    seen = log.graph_estimate_bytes if inside and reserved is not None else log.graph_bytes
    row = _covered(sides, "graphs", msg("CUDA graphs"), lambda stage: stage.runtime.graph_bytes, seen)
    if row.logged_bytes is None:
        return row
    expected = sides.of_total and sides.deployment.engine.graphs_in_budget
    effect = (row.estimated_bytes if expected else 0) - (row.logged_bytes if inside else 0)
    return replace(row, effect_bytes=effect, why=(*_graphs_why(sides, inside, expected), *row.why))


def _graphs_why(sides: _Sides, inside: bool, expected: bool) -> Iterator[Message]:
    if inside != expected:
        yield msg("This start took them from the budget.") if inside else msg("This start left them out of the budget.")
    elif inside:
        yield msg("This version sets room for graphs aside inside the budget.")
    else:
        yield msg("Captured outside the budget: the pool does not depend on it.")
    used = sides.log.graph_bytes
    if inside and sides.measured.graph_reserved_bytes is not None and used is not None:
        yield msg("Set aside before capture; {used:.2f} GiB were used in the end.", used=used.value / GIB)


def _rest(effect_bytes: int) -> ComparedPart:
    """What the named parts leave unexplained."""
    small = abs(effect_bytes) <= WORTH_TELLING_BYTES
    why = (
        msg("Logs are rounded to a hundredth of a GiB.")
        if small
        else msg("Not named in the log: parts of different ranks, or memory other processes took meanwhile.")
    )
    return ComparedPart(
        part="rest", label=msg("Rounding and rest"), estimated_bytes=0, logged_bytes=-effect_bytes,
        effect_bytes=effect_bytes, why=(why,),
    )  # fmt: skip


def _pool(sides: _Sides) -> ComparedPart:
    seen = sides.log.kv_pool_bytes
    why = [*_from_settings(sides, lambda stage: stage.room_bytes), *rank_reasons(seen, least_of_ranks)]
    if seen is not None and " GB" in seen.line:
        why.append(msg("GB in this log means GiB."))
    return ComparedPart(
        part="pool",
        label=msg("KV pool"),
        estimated_bytes=sides.asked.room_bytes,
        logged_bytes=sides.measured.kv_pool_bytes,
        effect_bytes=0,
        why=tuple(why),
        line=_line(seen),
    )


def _tokens_why(sides: _Sides) -> Iterator[Message]:
    log, model = sides.log, sides.deployment.model
    if len(model.groups) > 1 or log.padding_layers is not None:
        if sides.deployment.engine.tokens_meaning is TokensMeaning.CONCURRENCY_TIMES_LENGTH:
            yield msg("This version logs concurrency times maximum length as its tokens.")
        else:
            yield msg("This version logs blocks divided by the groups of layers as its tokens: local layers count in "
                      "full.")  # fmt: skip
    if log.padding_layers is not None:
        yield msg("{layers:count} layers were added so that groups are equal: they take room and hold nothing.",
                  layers=log.padding_layers.value)  # fmt: skip
    if log.block_size_tokens is not None and log.block_size_tokens.value > resolve(sides.deployment).block_size_tokens:
        yield msg("Blocks were raised to {block:tok}.", block=log.block_size_tokens.value)
    if log.kv_pool_bytes is not None and log.kv_pool_bytes.differs:
        yield msg("Tokens follow the rank with the least room.")
