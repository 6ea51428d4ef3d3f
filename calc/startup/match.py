"""Whether a measured start stands for a deployment, and how it was started.

A start matches when model, weight and KV format, GPU, TP, PP, DP, EP, engine with its minor version, memory fraction,
batched tokens and sequences are those of the deployment: each of them changes what fills the GPU. The maximum length
may differ, since it only changes how the pool is counted. Model, GPU or version that a log does not name do not speak
against it; :func:`is_named` tells whether it names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from calc.deployment import Deployment
from calc.dtypes import is_auto, kv_code
from calc.engine import FractionOf, Settings, resolve
from calc.errors import InputError
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.startup.measured import MeasuredMemory

HALF = ("bf16", "fp16")
SAME_FRACTION = 0.001
"""Fractions closer than this are the same: engines log two to four digits."""
SAME_DERIVED_FRACTION = 0.03
"""A fraction the engine derives from the GPU's memory, against the same rule applied here."""
SAME_MEMORY_SHARE = 0.02
"""Drivers show one GPU type's memory with up to 1.5 % difference (ECC, firmware)."""


def is_comparable(log: MeasuredMemory, deployment: Deployment) -> bool:
    """Whether the deployment's estimate says anything about the log: one engine, and one model where it names any."""
    same_model = not log.model or short_name(log.model) == short_name(deployment.model.name)
    return same_model and log.engine == deployment.engine.id


def differences(log: MeasuredMemory, deployment: Deployment, settings: Settings) -> Iterator[Message]:
    """What keeps the log from standing for this deployment; nothing = it matches."""
    if log.model and short_name(log.model) != short_name(deployment.model.name):
        yield msg("model {there}", there=log.model)
    if log.engine != deployment.engine.id:
        yield msg("engine {there}", there=log.engine)
    elif log.engine_version and minor(log.engine_version) != minor(deployment.engine.version):
        yield msg("engine version {there}", there=log.engine_version)
    if not _same_gpu(log, deployment):
        yield msg("GPU")
    for name in ("tp", "pp", "dp", "ep"):
        if getattr(log, name) != getattr(deployment, name):
            yield msg("{setting} {there}", setting=name.upper(), there=getattr(log, name))
    yield from _other_settings(log, deployment, settings)


def _other_settings(log: MeasuredMemory, deployment: Deployment, settings: Settings) -> Iterator[Message]:
    started = _started_settings(log, deployment)
    if (log.spec_method or None) != deployment.spec_method:
        yield msg("speculative decoding {there}", there=log.spec_method or msg("off"))
    if (log.weight_dtype or None) != deployment.weight_dtype:
        yield msg("weight dtype {there}", there=log.weight_dtype or "auto")
    if not _same_kv_dtype(log, deployment, settings):
        yield msg("KV dtype {there}", there=log.kv_dtype or "auto")
    if not _same_fraction(deployment, started, settings):
        yield msg("memory fraction {there:pct}", there=started.memory_fraction)
    derived = deployment.engine.fraction_of is not FractionOf.TOTAL
    if started.max_num_batched_tokens != settings.max_num_batched_tokens and not (
        derived and deployment.max_num_batched_tokens is None
    ):
        yield msg("{there:count} batched tokens", there=started.max_num_batched_tokens)
    if started.max_num_seqs != settings.max_num_seqs and not (derived and deployment.max_num_seqs is None):
        yield msg("{there:count} sequences at most", there=started.max_num_seqs)


def _started_settings(log: MeasuredMemory, deployment: Deployment) -> Settings:
    """The log's settings, each left open ones filled in as this engine version does on this GPU."""
    return resolve(
        replace(
            deployment,
            memory_fraction=log.memory_fraction,
            max_num_batched_tokens=log.max_num_batched_tokens,
            max_num_seqs=log.max_num_seqs,
        )
    )


def _same_kv_dtype(log: MeasuredMemory, deployment: Deployment, settings: Settings) -> bool:
    """Left to the checkpoint on both sides, or formats of the same code; 16-bit formats take the same room."""
    if is_auto(log.kv_dtype):
        plain = deployment.model.storage.plain_bytes_per_parameter
        return is_auto(deployment.kv_dtype) or settings.kv_bytes_per_element == plain
    code = _kv_code(log.kv_dtype)
    return code == settings.kv_dtype or (code in HALF and settings.kv_dtype in HALF)


def _kv_code(text: str | None) -> str | None:
    """The code of a cache format an engine names; ``None`` for one that is not known here."""
    try:
        return None if is_auto(text) else kv_code(str(text))
    except InputError:
        return None


def _same_fraction(deployment: Deployment, started: Settings, settings: Settings) -> bool:
    derived = deployment.engine.fraction_of is not FractionOf.TOTAL and deployment.memory_fraction is None
    near = SAME_DERIVED_FRACTION if derived else SAME_FRACTION
    return abs(started.memory_fraction - settings.memory_fraction) <= near


def _same_gpu(log: MeasuredMemory, deployment: Deployment) -> bool:
    gpu = deployment.gpu
    near = log.gpu_memory_bytes is None or same_memory(log.gpu_memory_bytes, gpu.memory_bytes)
    return near and log.gpu in (None, gpu.id, gpu.name)


def same_memory(one_bytes: float, other_bytes: float) -> bool:
    """True when two figures can be the memory of one GPU type."""
    return abs(one_bytes - other_bytes) <= SAME_MEMORY_SHARE * other_bytes


def short_name(model: str) -> str:
    """A model's name without owner or folder, in lower case."""
    return model.rstrip("/").rpartition("/")[2].lower()


def minor(version: str) -> tuple[str, str]:
    """Major and minor of a version: what a start-up log of one release says holds for its patches."""
    parts = [*version.lower().removeprefix("v").split("+")[0].split("."), "0", "0"]
    return parts[0], parts[1]


def differs_in_settings_only(log: MeasuredMemory, deployment: Deployment) -> bool:
    """True when the estimate can be asked what it says of the log's start: version, GPU and formats are the same."""
    return (
        minor(log.engine_version or deployment.engine.version) == minor(deployment.engine.version)
        and _same_gpu(log, deployment)
        and (log.weight_dtype or None) == deployment.weight_dtype
        and (log.spec_method or None) == deployment.spec_method
    )


def is_similar(log: MeasuredMemory, deployment: Deployment) -> bool:
    """Same model and engine: worth telling even where something else differs."""
    same_model = not log.model or short_name(log.model) == short_name(deployment.model.name)
    return same_model and log.engine == deployment.engine.id


def is_named(log: MeasuredMemory) -> bool:
    """True when model, version and GPU of the start are known: only such a start is taken without being asked for."""
    return bool(log.model and log.engine_version and (log.gpu or log.gpu_memory_bytes))


def matches(log: MeasuredMemory, deployment: Deployment) -> bool:
    """True when the log stands for this deployment."""
    return next(differences(log, deployment, resolve(deployment)), None) is None


def choose_log(
    carried: MeasuredMemory | None, stored: Sequence[MeasuredMemory], deployment: Deployment
) -> MeasuredMemory | None:
    """The log a deployment should carry: one that matches, else a similar one, which is worth a note."""
    named = [log for log in stored if is_named(log)]
    own = [] if carried is None else [carried]
    for test in (matches, is_similar):
        found = next((log for log in (*own, *named) if test(log, deployment)), None)
        if found is not None:
            return found
    return carried


def started_as(log: MeasuredMemory, deployment: Deployment) -> Deployment:
    """The deployment with the log's own settings, to be estimated beside it."""
    return replace(
        deployment,
        gpu=logged_gpu(log, deployment),
        tp=log.tp,
        pp=log.pp,
        dp=log.dp,
        ep=log.ep,
        spec_method=log.spec_method,
        memory_fraction=log.memory_fraction,
        max_model_len_tokens=log.max_model_len_tokens or deployment.max_model_len_tokens,
        max_num_batched_tokens=log.max_num_batched_tokens,
        max_num_seqs=log.max_num_seqs,
        kv_dtype=_kv_code(log.kv_dtype),
        kv_pool_bytes_per_gpu=None,
        kv_tokens=None,
        measured_memory=None,
    )


def listed(messages: Sequence[Message]) -> Message:
    """Several short messages as one."""
    return reduce(lambda one, other: msg("{one}, {other}", one=one, other=other), messages)


def logged_gpu(log: MeasuredMemory, deployment: Deployment) -> Gpu:
    """The GPU with the memory the log shows, where it can be that GPU's."""
    if log.gpu_memory_bytes is None or not same_memory(log.gpu_memory_bytes, deployment.gpu.memory_bytes):
        return deployment.gpu
    return replace(deployment.gpu, memory_bytes=log.gpu_memory_bytes, memory_is_declared=False)
