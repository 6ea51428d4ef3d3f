"""One line of a recording: a scrape, a gap with its reason, or what somebody did; and what the recording is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from calc.messages import Message, msg
from data.records import MetricsSnapshot


class Kind(StrEnum):
    """What a line of a recording is."""

    SCRAPE = "scrape"
    GAP = "gap"
    """From here on there was no answer, until the next scrape."""
    PAUSED = "paused"
    RESUMED = "resumed"
    STOPPED = "stopped"


class Trouble(StrEnum):
    """Why there is no scrape."""

    UNREACHABLE = "unreachable"
    SLOW = "slow"
    STATUS = "status"
    REDIRECT = "redirect"
    NOT_METRICS = "not-metrics"
    TOO_LARGE = "too-large"
    NOT_ALLOWED = "not-allowed"
    BAD_ADDRESS = "bad-address"
    OUT_OF_ORDER = "out-of-order"
    ENDED = "ended"


_SENTENCES: Mapping[Trouble, Message] = MappingProxyType(
    {
        Trouble.UNREACHABLE: msg(
            "{engine} does not answer ({detail}): see whether it runs and whether plimsoll.toml has its address right."
        ),
        Trouble.SLOW: msg("{engine} did not answer within {detail} s: it is overloaded or behind a slow network."),
        Trouble.STATUS: msg(
            "{engine} answered with HTTP status {detail} instead of metrics: correct its address in plimsoll.toml."
        ),
        Trouble.REDIRECT: msg(
            "{engine} sends its visitors on to another address ({detail}), which is not followed: "
            "write the final address into plimsoll.toml."
        ),
        Trouble.NOT_METRICS: msg(
            "{engine} answered, but not with metrics of vLLM, SGLang, TensorRT-LLM or the DCGM exporter: "
            "its address in plimsoll.toml must be that of /metrics."
        ),
        Trouble.TOO_LARGE: msg(
            "{engine} sent more than {detail} MB: give the address of one engine, not of a whole fleet."
        ),
        Trouble.NOT_ALLOWED: msg("{engine} is not among the engines of plimsoll.toml: only these are ever asked."),
        Trouble.BAD_ADDRESS: msg(
            "the address of {engine} in plimsoll.toml must begin with http:// or https:// and name a host."
        ),
        Trouble.OUT_OF_ORDER: msg("the clock of this machine went back: a scrape of {engine} was left out."),
        Trouble.ENDED: msg("the recording of {engine} ended without being stopped, most likely with the server."),
    }
)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why there is no scrape, with the one fact that differs."""

    trouble: Trouble
    detail: str = ""

    def sentence(self, engine: str) -> Message:
        """What happened and what to do."""
        return Message(_SENTENCES[self.trouble].msgid, {"engine": engine, "detail": self.detail})


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a recording."""

    at_s: float
    """Unix time by the clock of the machine that recorded."""
    kind: Kind
    snapshot: MetricsSnapshot | None = None
    """Of a scrape."""
    problem: Problem | None = None
    """Of a gap; of a scrape when one of several addresses did not answer."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What was recorded, without its lines."""

    recording_id: str
    engine: str
    """Name under which the operator allowed the address."""
    interval_s: float
    started_at_s: float
    note: str = ""
    """Such as where a file came from."""
    made_up: bool = False
    """A simulated example: nothing in it was measured."""
