"""Engine arguments of a case beyond its usual settings: speculation, cache manager, limits, and what is only kept."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from calc.deployment import Deployment
from calc.errors import InputError
from calc.messages import Message, msg
from calc.model import ModelSpec
from data.case_fields import Fields, plain_json

MAX_SPEC_TOKENS = 64
"""Most speculated tokens per step accepted; engines use 1 to 16."""
MTP = "mtp"
"""Ending of the methods that draft with the checkpoint's own extra layer (``deepseek_mtp``, ``qwen3_next_mtp`` …)."""
WITHOUT_MODEL = ("ngram", "suffix", "[ngram]", "ngram_gpu")
"""Methods that draft from the text itself and keep no cache."""
KEPT = ("limit_mm_per_prompt", "extra_engine_args")
"""Arguments that are kept with the case, and change nothing counted here."""
MAX_KEPT_CHARACTERS = 10_000
"""Of all kept arguments as JSON."""


class EngineArgs(TypedDict):
    """As :class:`calc.deployment.Deployment` takes them."""

    spec_method: str | None
    spec_tokens: int
    hybrid_kv: bool | None
    other_args: str


def read_engine_args(fields: Fields) -> tuple[EngineArgs, tuple[Message, ...]]:
    """Speculation, hybrid cache manager, and arguments kept as they came."""
    method, tokens = _speculation(fields.child("speculative_config"))
    off = fields.flag("disable_hybrid_kv_cache_manager")
    kept = {key: plain_json(fields.raw(key)) for key in KEPT if fields.raw(key) is not None}
    other = json.dumps(kept, sort_keys=True) if kept else ""
    if len(other) > MAX_KEPT_CHARACTERS:
        raise InputError(
            msg(
                "engine arguments must be at most {limit:count} characters long, got {number:count}: shorten them.",
                limit=MAX_KEPT_CHARACTERS,
                number=len(other),
            )
        )
    return {
        "spec_method": method,
        "spec_tokens": tokens,
        "hybrid_kv": None if off is None else not off,
        "other_args": other,
    }, _notes(method)


def _speculation(block: Fields | None) -> tuple[str | None, int]:
    if block is None:
        return None, 0
    method = block.text("method") or block.text("model")
    if not method:
        raise InputError(msg("speculative_config names no method: add one, such as mtp or ngram."))
    block.raw("model")
    tokens = block.count("num_speculative_tokens", MAX_SPEC_TOKENS)
    if tokens is None:
        raise InputError(msg("speculative_config.num_speculative_tokens is missing: add how many tokens are drafted."))
    return method, tokens


def _notes(method: str | None) -> tuple[Message, ...]:
    if method is None or method in WITHOUT_MODEL or method.endswith(MTP):
        return ()
    return (
        msg(
            "Speculation with {method} runs a draft model: its weights and its cache are not counted, ask its card.",
            method=method,
        ),
    )


def with_drafts(model: ModelSpec, method: str | None) -> ModelSpec:
    """The model with the draft layer that multi-token prediction adds."""
    return model.with_draft_layers(1) if method is not None and method.endswith(MTP) else model


def write_engine_args(deployment: Deployment) -> dict[str, Any]:
    """What :func:`read_engine_args` reads back the same; settings left to the engine stay out."""
    written: dict[str, Any] = json.loads(deployment.other_args) if deployment.other_args else {}
    if deployment.spec_method is not None:
        written["speculative_config"] = {
            "method": deployment.spec_method,
            "num_speculative_tokens": deployment.spec_tokens,
        }
    if deployment.hybrid_kv is not None:
        written["disable_hybrid_kv_cache_manager"] = not deployment.hybrid_kv
    return written
