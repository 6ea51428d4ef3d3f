"""The prefill that the GPUs of a run cannot exceed, where model, GPU and their number are known."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from calc.checks.prefill import prefill_limit_tokens_per_s
from calc.errors import PlimsollError
from calc.hardware import Gpu
from data import catalogue
from data.engine_flags import flag_hints
from data.records import BenchmarkRun, RunDeclaration

NO_OWN: Mapping[str, Gpu] = {}
"""Without GPUs of the team's own."""


def prefill_limit(
    run: BenchmarkRun, declaration: RunDeclaration | None = None, own_gpus: Mapping[str, Gpu] = NO_OWN
) -> float | None:
    """Prompt tokens/s of the fastest GPU the name may mean; ``None`` when anything about it is not known.

    Weights quantised while loading are in no config, so nothing is said of them.
    """
    if run.model is None or run.gpu is None or not run.gpu_count:
        return None
    if declaration is not None and flag_hints(declaration.engine_flags).quantised:
        return None
    own = own_gpus.get(run.gpu)
    return _of_own(run.model, own, run.gpu_count) if own else _of_catalogue(run.model, run.gpu, run.gpu_count)


@functools.lru_cache(maxsize=512)
def _of_catalogue(model: str, gpu: str, gpu_count: int) -> float | None:
    limits = [_of_own(model, candidate, gpu_count) for candidate in catalogue.gpus_named(gpu)]
    return None if None in limits else max((limit for limit in limits if limit is not None), default=None)


def _of_own(model: str, gpu: Gpu, gpu_count: int) -> float | None:
    entry = catalogue.model_named(model)
    if entry is None:
        return None
    try:
        return prefill_limit_tokens_per_s(entry.spec(), gpu, gpu_count)
    except PlimsollError:  # a config that needs a choice of the user's says nothing here
        return None
