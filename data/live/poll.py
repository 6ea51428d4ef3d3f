"""Asking an engine for its metrics: only addresses that the operator allowed, once, bounded in time and size.

A visitor chooses a name; the address behind it comes from the configuration alone. Redirects are not followed and no
proxy of the environment is used, so that nothing but the named host is ever asked.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from calc.errors import PlimsollError
from calc.units import MEGA
from data.live.connection import Deadline, opener
from data.live.entry import Problem, Trouble
from data.records import MetricsSnapshot
from data.sources.prometheus import is_metrics_text, scrape_all

TIMEOUT_S = 5.0
"""For the whole answer, from connecting to its last byte."""
MAX_ANSWER_BYTES = 20 * MEGA
"""A large fleet's exporter sends about 2 MB."""
MAX_ADDRESSES = 16
"""Most addresses read together under one name."""
_CHUNK_BYTES = 65_536
_REDIRECTS = range(300, 400)
_DETAIL_CHARACTERS = 120


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The text of one address, or why there is none."""

    text: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One look at an engine: a snapshot, a problem, or both where one of several addresses did not answer."""

    snapshot: MetricsSnapshot | None = None
    problem: Problem | None = None


def read_engine(name: str, engines: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> Reading:
    """Ask the allowed engine ``name``. Several addresses under one name (separated by blanks) count as one engine:

    the first must answer, the others (further replicas, a GPU exporter) may be missing, which is said.
    """
    if name not in engines:
        return Reading(problem=Problem(trouble=Trouble.NOT_ALLOWED))
    addresses = engines[name].split()[:MAX_ADDRESSES]
    answers = [fetch(address, timeout_s=timeout_s) for address in addresses or [""]]
    if answers[0].problem is not None:
        return Reading(problem=answers[0].problem)
    texts = [answer.text for answer in answers if answer.problem is None]
    missing = next((answer.problem for answer in answers if answer.problem is not None), None)
    try:
        return Reading(snapshot=scrape_all(texts, name).snapshot, problem=missing)
    except PlimsollError:
        return Reading(problem=Problem(trouble=Trouble.NOT_METRICS))


def fetch(address: str, *, timeout_s: float = TIMEOUT_S, limit_bytes: int = MAX_ANSWER_BYTES) -> Answer:
    """The text behind one allowed address, or what is wrong with it."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        return _none(Trouble.BAD_ADDRESS)
    request = urllib.request.Request(address, headers={"Accept": "text/plain", "User-Agent": "plimsoll"})
    with Deadline(timeout_s) as deadline:
        answer = _ask(request, deadline, limit_bytes)
    return _none(Trouble.SLOW, f"{timeout_s:g}") if deadline.passed else answer


def _ask(request: urllib.request.Request, deadline: Deadline, limit_bytes: int) -> Answer:
    try:
        with opener(deadline).open(request, timeout=deadline.seconds) as response:
            return _read(response, limit_bytes)
    except urllib.error.HTTPError as error:
        with error:
            return _refused(error)
    except TimeoutError:
        return _none(Trouble.SLOW, f"{deadline.seconds:g}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return _failed(error, deadline)


def _read(response: http.client.HTTPResponse, limit_bytes: int) -> Answer:
    content = bytearray()
    while chunk := response.read1(_CHUNK_BYTES):
        content += chunk
        if len(content) > limit_bytes:
            return _none(Trouble.TOO_LARGE, f"{limit_bytes / MEGA:.0f}")
    if response.length:  # cut off before the length it promised, by the other side or by the time limit
        raise http.client.IncompleteRead(b"", response.length)
    text = content.decode("utf-8", errors="replace")
    return Answer(text=text) if is_metrics_text(text) else _none(Trouble.NOT_METRICS)


def _refused(error: urllib.error.HTTPError) -> Answer:
    if error.code in _REDIRECTS:
        return _none(Trouble.REDIRECT, str(error.headers.get("Location", "")))
    return _none(Trouble.STATUS, str(error.code))


def _failed(error: Exception, deadline: Deadline) -> Answer:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return _none(Trouble.SLOW, f"{deadline.seconds:g}")
    return _none(Trouble.UNREACHABLE, str(getattr(reason, "strerror", None) or type(reason).__name__))


def _none(trouble: Trouble, detail: str = "") -> Answer:
    return Answer(problem=Problem(trouble=trouble, detail=detail[:_DETAIL_CHARACTERS]))
