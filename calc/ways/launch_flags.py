"""What a setting adds to a start command: words, lines of an options file, remarks; and the rules engines share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from calc.deployment import Deployment
from calc.dtypes import PLAIN_BYTES, is_auto
from calc.engine import Engine, Settings
from calc.messages import Message, msg
from calc.model import ModelSpec

Version: TypeAlias = tuple[int, ...]
Yaml: TypeAlias = Mapping[str, "str | Mapping[str, str]"]

DTYPE_NAMES = MappingProxyType({"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"})
"""Plain formats as the engines spell them."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be started."""

    deployment: Deployment
    settings: Settings
    version: Version
    usual: Engine
    """The version's own defaults."""
    checkpoint: ModelSpec | None
    """The model as its checkpoint stores it, where that is known."""
    pool_tokens: int | None
    """Tokens of one rank's pool where a pool was given, for engines that take no bytes."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What one setting adds: words of the command, lines of the options file, remarks."""

    words: tuple[str, ...] = ()
    yaml: Yaml = field(default_factory=dict)
    notes: tuple[Message, ...] = ()


Rule: TypeAlias = Callable[[Asked], Piece]
NOTHING = Piece()


def flag(name: str, value: float | str | None = None) -> Piece:
    """A flag with its value; numbers in at most four significant digits where they are shares."""
    if value is None:
        return Piece(words=(name,))
    return Piece(words=(name, f"{value:.4g}" if isinstance(value, float) else str(value)))


def kv_option(key: str, value: str) -> Piece:
    """A line of TensorRT-LLM's ``kv_cache_config``."""
    return Piece(yaml={"kv_cache_config": {key: value}})


def remark(message: Message) -> Piece:
    """A remark alone."""
    return Piece(notes=(message,))


def joined(*pieces: Piece) -> Piece:
    """Several pieces as one."""
    yaml: dict[str, str | dict[str, str]] = {}
    for piece in pieces:
        for key, value in piece.yaml.items():
            inner = yaml.setdefault(key, {} if isinstance(value, Mapping) else value)
            if isinstance(inner, dict) and isinstance(value, Mapping):
                inner.update(value)
    return Piece(
        words=tuple(word for piece in pieces for word in piece.words),
        yaml=yaml,
        notes=tuple(note for piece in pieces for note in piece.notes),
    )


def lacks(asked: Asked, setting: Message | str) -> Piece:
    """This version cannot be told."""
    engine = asked.deployment.engine
    return remark(
        msg(
            "{engine} {version} has no flag for {setting}: left out, and the estimate does not hold without it.",
            engine=engine.id,
            version=engine.version,
            setting=setting,
        )
    )


def degrees(names: Mapping[str, str]) -> Rule:
    """Degrees of parallelism above 1, by field of the deployment."""

    def rule(asked: Asked) -> Piece:
        given = ((name, getattr(asked.deployment, key)) for key, name in names.items())
        return joined(*(flag(name, degree) for name, degree in given if degree > 1))

    return rule


def has_experts(deployment: Deployment) -> bool:
    """Expert parallelism was asked for, and there are experts."""
    return deployment.ep and deployment.model.moe is not None


def setting(key: str, name: str) -> Rule:
    """A setting in full, whether the user or the version chose it: the estimate rests on it."""
    return lambda asked: flag(name, getattr(asked.settings, key))


def sequences(name: str, *, only_if_asked: bool = False) -> Rule:
    """The limit of running requests; ``only_if_asked`` where the engine derives its own from the pool."""

    def rule(asked: Asked) -> Piece:
        left_open = only_if_asked and asked.deployment.max_num_seqs is None
        return NOTHING if left_open else flag(name, asked.settings.max_num_seqs)

    return rule


def kv_dtype(names: Mapping[str, tuple[str, Version]], write: Callable[[str], Piece]) -> Rule:
    """The cache format, where it is not the one the engine takes by itself."""

    def rule(asked: Asked) -> Piece:
        code = asked.settings.kv_dtype
        if is_auto(asked.deployment.kv_dtype) or code == _auto_kv(asked):
            return NOTHING
        name, since = names.get(code, ("", (0,)))
        if not name:
            return lacks(asked, msg("a KV cache in {dtype}", dtype=code))
        if asked.version < since:
            known = ".".join(map(str, since))
            return lacks(asked, msg("a KV cache in {dtype} (known from {since} on)", dtype=code, since=known))
        return write(name)

    return rule


def _auto_kv(asked: Asked) -> str | None:
    """The cache format the engine takes by itself: that of a plain dtype asked for, else the checkpoint's."""
    wanted = asked.deployment.model.storage.code
    if not is_auto(asked.deployment.weight_dtype) and wanted in PLAIN_BYTES:
        return wanted
    return asked.checkpoint.kv_dtype if asked.checkpoint else None


def weights(*, in_flight: bool) -> Rule:
    """``in_flight``: FP8 can be made from a plain checkpoint while loading."""

    def rule(asked: Asked) -> Piece:
        wanted = asked.deployment.model.storage.code
        stored = asked.checkpoint.storage.code if asked.checkpoint else None
        if is_auto(asked.deployment.weight_dtype) or wanted == stored:
            return NOTHING
        from_plain = stored is None or stored in PLAIN_BYTES
        if wanted in DTYPE_NAMES and from_plain and in_flight:
            return flag("--dtype", DTYPE_NAMES[wanted])
        if wanted == "fp8" and from_plain and in_flight:
            return flag("--quantization", "fp8")
        return remark(
            msg(
                "Weights in {dtype} need a checkpoint stored so: put its path in place of {model}; no flag makes them.",
                dtype=wanted,
                model=asked.deployment.model.name,
            )
        )

    return rule


def block(name: str) -> Rule:
    """The block size, where the user chose one."""

    def rule(asked: Asked) -> Piece:
        size = asked.deployment.block_size_tokens
        return NOTHING if size is None else flag(name, size)

    return rule


def given_pool_as(write: Callable[[int], Piece]) -> Rule:
    """A pool that was given, in tokens."""
    return lambda asked: NOTHING if asked.pool_tokens is None else write(asked.pool_tokens)
