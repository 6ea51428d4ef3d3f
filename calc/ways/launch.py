"""The command that starts a deployment as it was estimated: flags of its engine and version, safe to paste."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calc.deployment import Deployment
from calc.engine import Engine, resolve
from calc.memory import estimate_memory
from calc.messages import Message, msg
from calc.model import ModelSpec
from calc.ways.launch_flags import Asked, Piece, Version, Yaml, joined
from calc.ways.launch_rules import RULES

OPTIONS_FILE = "extra-llm-api-options.yaml"
"""TensorRT-LLM reads from it what has no flag."""
PLACEHOLDER = "MODEL"
"""Stands where a name cannot be pasted safely."""
SERVER_GPUS = 8
"""GPUs of one server; an engine over more of them needs its own start on each server."""
SGLANG_SERVE_SINCE: Version = (0, 5, 10)
"""From here on SGLang recommends ``sglang serve``; the older ``python -m sglang.launch_server`` still works."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One replica's command; ``files`` are what it reads, by name."""

    words: tuple[str, ...]
    files: Mapping[str, str]
    notes: tuple[Message, ...]

    @property
    def command(self) -> str:
        """In one line, quoted for a POSIX shell."""
        return shlex.join(self.words)

    @property
    def lines(self) -> str:
        """The same, each flag with its value on a line of its own."""
        return in_lines(self.words)


def in_lines(words: Sequence[str]) -> str:
    """A command quoted for a POSIX shell, each flag with its value on a line of its own."""
    broken = (f" \\\n    {word}" if word.startswith("--") else f" {word}" for word in map(shlex.quote, words))
    return "".join(broken).strip()


def launch(deployment: Deployment, usual: Engine | None = None, checkpoint: ModelSpec | None = None) -> Launch:
    """How to start one replica of ``deployment``.

    ``usual``: the defaults of its engine version; ``checkpoint``: the model as its checkpoint stores it. Both are the
    deployment's own where not given.
    """
    asked = Asked(
        deployment=deployment,
        settings=resolve(deployment),
        version=version_of(deployment.engine.version),
        usual=usual or deployment.engine,
        checkpoint=checkpoint,
        pool_tokens=_pool_tokens(deployment),
    )
    name, name_notes = _model_name(deployment.model)
    body = joined(*(rule(asked) for rule in RULES[deployment.engine.id]))
    head, spelling = _head(deployment.engine.id, asked.version, name)
    words, files = (*head, *body.words), {}
    if body.yaml:
        words, files = (*words, "--extra_llm_api_options", OPTIONS_FILE), {OPTIONS_FILE: _yaml(body.yaml)}
    return Launch(words=words, files=files, notes=(*name_notes, *_around(asked), *spelling, *body.notes))


def _pool_tokens(deployment: Deployment) -> int | None:
    if deployment.kv_pool_bytes_per_gpu is None and deployment.kv_tokens is None:
        return None
    return estimate_memory(deployment).kv_tokens // deployment.dp


def version_of(text: str) -> Version:
    """``"v0.11.0rc2"`` as numbers that compare; what is no number counts as the newest."""
    parts = text.strip().lower().removeprefix("v").split("+")[0].split(".")
    digits = ["".join(itertools.takewhile(str.isdigit, part[:6])) for part in parts[:3]]
    return tuple(int(part) for part in digits) if all(digits) else (999,)


def _head(engine: str, version: Version, name: str) -> tuple[tuple[str, ...], tuple[Message, ...]]:
    if engine == "vllm":
        return ("vllm", "serve", name), ()
    if engine == "sglang":
        if version >= SGLANG_SERVE_SINCE:
            note = msg("Older spelling, still accepted: {command}.", command="python -m sglang.launch_server")
            return ("sglang", "serve", "--model-path", name), (note,)
        return ("python", "-m", "sglang.launch_server", "--model-path", name), ()
    note = msg(
        "Newer versions also know {fraction} as {newer}, and {options} as {config}.",
        fraction="--kv_cache_free_gpu_memory_fraction",
        newer="--free_gpu_memory_fraction",
        options="--extra_llm_api_options",
        config="--config",
    )
    return ("trtllm-serve", name, "--backend", "pytorch"), (note,)


def _model_name(model: ModelSpec) -> tuple[str, tuple[Message, ...]]:
    """The name as a word that no shell and no parser takes for anything else."""
    name = model.name
    if not name.strip() or not name.isprintable():
        note = msg("The model's name holds signs that are not safe to paste: put the checkpoint's path for {word}.",
                   word=PLACEHOLDER)  # fmt: skip
        return PLACEHOLDER, (note,)
    if model.config_json:
        note = msg("{model} was given as a config: put the path of its checkpoint in its place.", model=name)
        return _no_flag(name), (note,)
    return _no_flag(name), ()


def _no_flag(name: str) -> str:
    return f"./{name}" if name.startswith("-") else name


def _around(asked: Asked) -> tuple[Message, ...]:
    deployment, notes = asked.deployment, []
    if deployment.replicas > 1:
        notes.append(
            msg(
                "One command for each of the {replicas:count} replicas, each on {each:count} GPUs of its own, "
                "with a load balancer before them.",
                replicas=deployment.replicas,
                each=deployment.gpus_per_replica,
            )
        )
    if deployment.gpus_per_replica > SERVER_GPUS:
        notes.append(
            msg(
                "{each:count} GPUs are more than one server has: how the servers find each other is not in this line.",
                each=deployment.gpus_per_replica,
            )
        )
    if deployment.ep and deployment.model.moe is None:
        notes.append(msg("The model has no experts: expert parallelism is left out."))
    longest = deployment.model.max_position_tokens
    if asked.settings.max_model_len_tokens > longest:
        notes.append(msg("The length is beyond the {limit:tok} of the model: engines refuse it by default.",
                         limit=longest))  # fmt: skip
    return tuple(notes)


def _yaml(tree: Yaml) -> str:
    lines = []
    for key, value in tree.items():
        if isinstance(value, str):
            lines.append(f"{key}: {value}")
        else:
            lines += [f"{key}:", *(f"  {inner}: {text}" for inner, text in value.items())]
    return "\n".join(lines) + "\n"


__all__ = ["OPTIONS_FILE", "Launch", "Piece", "launch", "version_of"]
