"""What every load generator is told: one run, and the command that makes it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from calc.messages import Message
from calc.poc.repetition import RepeatedLoad
from calc.ways.launch import in_lines


@dataclass(frozen=True, kw_only=True)
class LoadRun:
    """One run: which prompts, how they arrive, on which server, and how its files are named."""

    name: str
    """Of its result files; no spaces."""
    load: RepeatedLoad
    model: str
    base_url: str
    engine: str
    """``vllm``, ``sglang`` or ``tensorrt-llm``."""
    seed: int
    concurrency: int | None = None
    """Closed loop; ``None`` = open loop at ``rate_per_s``."""
    rate_per_s: float | None = None
    burstiness: float = 1.0
    """Gamma shape 1/cv²; 1 = Poisson."""

    @property
    def rate(self) -> str:
        """As the tools take it: four significant digits."""
        return f"{self.rate_per_s or 0:.4g}"

    @property
    def poisson(self) -> bool:
        """No burstiness has to be set."""
        return self.burstiness == 1


@dataclass(frozen=True, kw_only=True)
class LoadCommand:
    """A command to paste; ``files`` are what it reads, by name."""

    tool: str
    words: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()
    drawn: bool = False
    """Prefixes are drawn with replacement: the expected hit rate is another one."""

    @property
    def command(self) -> str:
        """In one line, quoted for a POSIX shell."""
        return shlex.join(self.words)

    @property
    def lines(self) -> str:
        """The same, each option on a line of its own."""
        return in_lines(self.words)


def flags(pairs: Mapping[str, str | int]) -> tuple[str, ...]:
    """``{"--a": 1}`` → ``("--a", "1")``; an empty value is a switch."""
    return tuple(word for name, value in pairs.items() for word in ((name,) if value == "" else (name, str(value))))
