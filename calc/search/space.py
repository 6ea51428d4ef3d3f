"""Which deployments a search looks at: GPU types, splits, formats and strategies, every combination of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from calc.deployment import MAX_GPUS, Deployment
from calc.dtypes import KV_BYTES
from calc.engine import resolve
from calc.errors import InputError
from calc.hardware import Gpu
from calc.judge.lever_changes import FP8, estimated_pool
from calc.messages import Message, msg
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.serving import Serving

MAX_COMBINATIONS = 10_000
"""Most combinations looked at: ten seconds of arithmetic. More are left out, with a note."""
MAX_CHOICES = 100
"""Most values of one field."""
USUAL_TPS = (1, 2, 4, 8)
USUAL_STAGES = (1, 2)
USUAL_BUDGETS = (2048, 8192, 16_384)
"""Token budgets of a step tried beside the engine's own: vLLM's defaults by size of GPU, online and offline."""
USUAL_MOST_GPUS = 64
"""GPUs of the largest deployment looked at unless told otherwise: eight servers."""


class Combination(NamedTuple):
    """One choice of everything but the number of replicas; ``None`` = as the scenario has it."""

    gpu: Gpu
    weight_dtype: str | None
    tp: int
    pp: int
    dp: int
    serving: Serving
    split: bool
    kv_dtype: str | None
    prefix_caching: bool | None
    batched_tokens: int | None

    @property
    def gpus_per_replica(self) -> int:
        """GPUs one replica occupies."""
        return self.tp * self.pp * self.dp


@dataclass(frozen=True, kw_only=True)
class Space:
    """Choices per field; what a search looks at is every combination of them."""

    gpus: tuple[Gpu, ...]
    most_gpus: int = USUAL_MOST_GPUS
    """GPUs of the whole deployment."""
    tps: tuple[int, ...] = USUAL_TPS
    pps: tuple[int, ...] = (1,)
    dps: tuple[int, ...] = (1,)
    replicas: tuple[int, ...] = ()
    """Empty = from the fewest that carry the load on."""
    weights: Mapping[str, ModelSpec] | None = None
    """Weight format → the model stored so, beside the scenario's own."""
    own_weights: bool = True
    """Whether the scenario's own format is one of the choices."""
    kv_dtypes: tuple[str | None, ...] = (None,)
    prefix_caching: tuple[bool | None, ...] = (None,)
    batched_tokens: tuple[int | None, ...] = (None,)
    servings: tuple[Serving, ...] = ()
    """Empty = the scenario's own."""
    splits: tuple[bool, ...] = (False,)
    """True = some replicas only prefill (needs the bandwidth between replicas)."""

    def __post_init__(self) -> None:
        if not 1 <= self.most_gpus <= MAX_GPUS:
            raise InputError(
                msg(
                    "the most GPUs must be between 1 and {limit:count}, got {value}.",
                    limit=MAX_GPUS,
                    value=self.most_gpus,
                )
            )
        for values in self._axes():
            if not values:
                raise InputError(msg("a search needs at least one choice of every field: add one."))
            if len(values) > MAX_CHOICES:
                raise InputError(
                    msg(
                        "{number:count} choices of one field are more than the {limit:count} looked at: shorten the "
                        "list.",
                        number=len(values),
                        limit=MAX_CHOICES,
                    )
                )

    def _axes(self) -> tuple[Sequence[object], ...]:
        return (
            self.gpus,
            self.formats,
            self.tps,
            self.pps,
            self.dps,
            self.servings or (None,),
            self.splits,
            self.kv_dtypes,
            self.prefix_caching,
            self.batched_tokens,
        )

    @property
    def formats(self) -> tuple[str | None, ...]:
        """Weight formats looked at; ``None`` = the scenario's own."""
        own: tuple[str | None, ...] = (None,) if self.own_weights else ()
        return own + tuple(self.weights or ())

    @property
    def size(self) -> int:
        """Combinations, before any is ruled out."""
        return math.prod(len(values) for values in self._axes())

    def combinations(self, scenario: Scenario) -> Iterator[Combination]:
        """Every combination, those of few GPUs first, at most :data:`MAX_COMBINATIONS`."""
        servings = self.servings or (scenario.deployment.serving,)
        splits = sorted(
            itertools.product(self.tps, self.pps, self.dps), key=lambda split: (math.prod(split), split[1], split[2])
        )
        product = itertools.product(
            splits, self.gpus, self.formats, servings, self.splits, self.kv_dtypes, self.prefix_caching,
            self.batched_tokens,
        )  # fmt: skip
        for (tp, pp, dp), gpu, weights, serving, split, kv, caching, budget in itertools.islice(
            product, MAX_COMBINATIONS
        ):
            yield Combination(gpu, weights, tp, pp, dp, serving, split, kv, caching, budget)


def usual_space(
    scenario: Scenario, gpus: Sequence[Gpu], formats: Mapping[str, ModelSpec] | None = None, *, most_gpus: int
) -> Space:
    """All that is sensible for a scenario: narrower caches and weights, prefixes both ways, declared strategies.

    ``formats``: the model as stored in other weight formats. Offload is tried where the scenario names tiers, split
    prefill where it names the bandwidth between replicas.
    """
    deployment = scenario.deployment
    settings = resolve(deployment)
    narrower = KV_BYTES[settings.kv_dtype] > KV_BYTES[FP8]
    hits = scenario.workload.prefix_hit_share > 0
    return Space(
        gpus=tuple(gpus),
        most_gpus=most_gpus,
        pps=USUAL_STAGES,
        weights=dict(formats or {}),
        kv_dtypes=(None, FP8) if narrower else (None,),
        prefix_caching=(None, not settings.prefix_caching) if hits else (None,),
        batched_tokens=(None, *(tokens for tokens in USUAL_BUDGETS if tokens != settings.max_num_batched_tokens)),
        servings=serving_choices(deployment.serving),
        splits=(False, True) if deployment.serving.transfer_bytes_per_s else (False,),
    )


def serving_choices(serving: Serving) -> tuple[Serving, ...]:
    """As it is, and without the tiers outside the GPU."""
    plain = replace(serving, tiers=(), prefill_replicas=0)
    return (plain, replace(serving, prefill_replicas=0)) if serving.tiers else (plain,)


def deployed(scenario: Scenario, chosen: Combination, space: Space) -> Deployment:
    """One replica of a combination; raises where the split cannot exist.

    A pool given for today's deployment says nothing about another one: it is estimated anew.
    """
    now = scenario.deployment
    model = now.model if chosen.weight_dtype is None else (space.weights or {})[chosen.weight_dtype]
    changed = replace(
        now,
        model=model,
        gpu=chosen.gpu,
        tp=chosen.tp,
        pp=chosen.pp,
        dp=chosen.dp,
        ep=now.ep and chosen.dp > 1,
        replicas=1,
        serving=chosen.serving,
        weight_dtype=chosen.weight_dtype or now.weight_dtype,
        kv_dtype=chosen.kv_dtype or now.kv_dtype,
        prefix_caching=now.prefix_caching if chosen.prefix_caching is None else chosen.prefix_caching,
        max_num_batched_tokens=chosen.batched_tokens or now.max_num_batched_tokens,
    )
    return changed if changed == _alone(now) else estimated_pool(changed)


def _alone(deployment: Deployment) -> Deployment:
    return replace(deployment, replicas=1, serving=replace(deployment.serving, prefill_replicas=0))


def cautions(scenario: Scenario, deployment: Deployment) -> tuple[Message, ...]:
    """What a deployment may do to the answers, compared with the scenario's own."""
    now, found = scenario.deployment, []
    kv, was = resolve(deployment).kv_dtype, resolve(now).kv_dtype
    if KV_BYTES[kv] < KV_BYTES[was]:
        found.append(msg("KV cache in {dtype}: check the answers on your own tasks first.", dtype=kv))
    if deployment.model != now.model:
        code = deployment.model.storage.code
        found.append(
            msg("Weights in {dtype}: needs a checkpoint in that format, and a check of its answers.", dtype=code)
        )
    return tuple(found)
