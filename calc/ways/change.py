"""What differs between two deployments, as settings in words and as flags of the engine's command."""

from __future__ import annotations

from collections.abc import Iterable

from calc.deployment import Deployment
from calc.engine import resolve
from calc.messages import Message, msg
from calc.ways.launch import launch

DEGREES: tuple[tuple[str, str | Message], ...] = (
    ("gpu_count", msg("GPUs")),
    ("tp", "TP"),
    ("pp", "PP"),
    ("dp", "DP"),
    ("replicas", msg("Replicas")),
)
SETTINGS: tuple[tuple[str, str | Message], ...] = (
    ("memory_fraction", msg("memory fraction")),
    ("max_model_len_tokens", msg("max length")),
    ("max_num_batched_tokens", msg("batched tokens")),
    ("max_num_seqs", msg("sequences")),
    ("kv_dtype", "KV"),
)
"""Field of the deployment, and of its settings in full → its name; told only where the user's own entry changes."""


def change_of(before: Deployment, after: Deployment) -> Message:
    """Setting by setting, from which value to which."""
    parts = _parts(before, after)
    if not parts:
        return msg("As it is")
    whole = parts[0]
    for part in parts[1:]:
        whole = msg("{one} · {other}", one=whole, other=part)
    return whole


def _parts(before: Deployment, after: Deployment) -> list[Message]:
    was, now = resolve(before), resolve(after)
    parts = []
    if before.gpu != after.gpu:
        parts.append(_from_to(msg("GPU"), before.gpu.name, after.gpu.name))
    parts += [
        _from_to(name, getattr(before, key), getattr(after, key))
        for key, name in DEGREES
        if getattr(before, key) != getattr(after, key)
    ]
    parts += [
        _from_to(name, getattr(was, key), getattr(now, key))
        for key, name in SETTINGS
        if getattr(before, key) != getattr(after, key)
    ]
    if before.ep != after.ep:
        parts.append(msg("EP on") if after.ep else msg("EP off"))
    if before.model.storage.code != after.model.storage.code:
        parts.append(_from_to(msg("weights"), before.model.storage.code, after.model.storage.code))
    return parts


def _from_to(setting: str | Message, was: float | str, now: float | str) -> Message:
    if isinstance(was, str) or isinstance(now, str):
        return msg("{setting} {was} → {now}", setting=setting, was=was, now=now)
    return msg("{setting} {was:,.6g} → {now:,.6g}", setting=setting, was=was, now=now)


def changed_flags(before: Deployment, after: Deployment) -> tuple[str, ...]:
    """Flags of the command after that the command before does not have so."""
    had = set(_flags(launch(before).words))
    return tuple(" ".join(flag) for flag in _flags(launch(after).words) if flag not in had)


def _flags(words: Iterable[str]) -> list[tuple[str, ...]]:
    """Words of a command as flags with their values."""
    flags: list[tuple[str, ...]] = []
    for word in words:
        if word.startswith("--"):
            flags.append((word,))
        elif flags:
            flags[-1] = (*flags[-1], word)
    return flags
