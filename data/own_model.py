"""What people paste of a model: a config.json, the Hub's answer about a repository, and the bytes of its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from calc.model import ModelSpec
from data.case import MAX_WEIGHT_BYTES
from data.case_fields import Fields, as_number, is_writable, plain_json
from data.own_text import one_line

MAX_CONFIG_BYTES = 2_000_000
"""A Hub config.json is a few kilobytes."""
MAX_INDEX_BYTES = 20_000_000
"""The weight map of the largest published checkpoint is about 10 MB."""
BYTES_OF_DTYPE: Mapping[str, float] = {
    "F64": 8, "I64": 8, "F32": 4, "I32": 4, "U32": 4, "BF16": 2, "F16": 2, "I16": 2, "U16": 2,
    "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Bytes of one element by its safetensors dtype name (safetensors format description)."""
SIZES = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "text_config", "llm_config", "language_config")
"""One of these is in every config.json; the Hub's summary of a config has none."""


@dataclass(frozen=True, kw_only=True)
class Pasted:
    """A model as pasted. ``name`` is empty where the text names none."""

    name: str
    config: Mapping[str, Any]
    weights_bytes: int | None = None
    """Declared: bytes of all tensors, where the text states them."""

    @property
    def entry(self) -> dict[str, Any]:
        """As the store keeps it and a case writes it, without the name."""
        declared = {} if self.weights_bytes is None else {"weight_bytes": self.weights_bytes}
        return {"config": dict(self.config), **declared}

    def spec(self) -> ModelSpec:
        """What is read of it; an unknown architecture is an error with the reason."""
        return ModelSpec.from_config(self.config, self.name, weights_bytes_declared=self.weights_bytes)


def read_model(content: bytes, *, name: str = "", index: bytes = b"") -> Pasted:
    """A config.json, or a JSON object that holds one under ``config``; ``index`` states the bytes of the weights."""
    if len(content) > MAX_CONFIG_BYTES:
        raise UnreadableFile(
            msg("expected a config.json of a few kilobytes, got more than 2 MB: upload the right file.")
        )
    given = _object(content)
    config = given["config"] if isinstance(given.get("config"), dict) else given
    if config is not given and not any(key in config for key in SIZES):
        raise UnreadableFile(
            msg(
                "expected the whole config.json, got a summary without sizes: open config.json among the "
                "repository's files and paste that."
            )
        )
    named = (name, given.get("id"), given.get("modelId"), given.get("name"), config.get("_name_or_path"))
    weights_bytes = read_weight_bytes(index) if index.strip() else _stated(given)
    return Pasted(
        name=one_line(next((text for text in (*named, config.get("model_type")) if text), "own model"), "name"),
        config=plain_json(config),
        weights_bytes=weights_bytes,
    )


def _object(content: bytes) -> dict[str, Any]:
    try:
        given = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(
            msg("expected the JSON of a config.json, got text that is not JSON: paste the whole file.")
        ) from error
    if not isinstance(given, dict) or not is_writable(json.dumps(given, ensure_ascii=False)):
        raise UnreadableFile(msg("expected one JSON object with the model's fields: paste the whole config.json."))
    return given


def read_weight_bytes(content: bytes) -> int:
    """Bytes of all tensors from ``model.safetensors.index.json``, from the Hub's answer, or a plain number of bytes."""
    unreadable = msg(
        "expected model.safetensors.index.json with metadata.total_size, or a number of bytes: paste the whole file."
    )
    if len(content) > MAX_INDEX_BYTES:
        raise UnreadableFile(unreadable)
    try:
        given = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(unreadable) from error
    stated = _stated(given) if isinstance(given, dict) else given
    if stated is None or isinstance(stated, str | list):
        raise UnreadableFile(unreadable)
    return _whole_bytes(stated)


def _stated(given: Mapping[str, Any]) -> int | None:
    """Bytes that a text states by itself; ``None`` where it states none, or a dtype whose width is not known."""
    metadata, files = given.get("metadata"), given.get("safetensors")
    if isinstance(metadata, dict) and metadata.get("total_size") is not None:
        return _whole_bytes(metadata["total_size"])
    if given.get("weight_bytes") is not None:
        return _whole_bytes(given["weight_bytes"])
    counts = files.get("parameters") if isinstance(files, dict) else None
    if not isinstance(counts, dict) or not counts or not all(dtype in BYTES_OF_DTYPE for dtype in counts):
        return None
    return _whole_bytes(
        sum(as_number(count, "safetensors.parameters") * BYTES_OF_DTYPE[dtype] for dtype, count in counts.items())
    )


def _whole_bytes(value: Any) -> int:
    """Some writers quote ``total_size``."""
    number = float(value) if isinstance(value, str) and value.strip().isdecimal() else as_number(value, "total_size")
    return round(Fields({"weight_bytes": number}).positive("weight_bytes", MAX_WEIGHT_BYTES) or 0)
