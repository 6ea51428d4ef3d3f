"""``POST /api/runs``: a CI job hands in what it measured. Off unless the operator sets a token.

    curl -H "Authorization: Bearer $TOKEN" -F file=@result.json -F declaration='{"gpu": "h100-sxm"}' …/api/runs
    curl -H "Authorization: Bearer $TOKEN" -H "X-Filename: result.json" --data-binary @result.json …/api/runs

Files are read and stored as on the Benchmarks page and by `ingest`. The answer is JSON with one entry a file.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message as AsgiMessage

from calc.errors import InputError, PlimsollError, StoreError, UnreadableFile
from calc.messages import Message, msg
from calc.units import MIB
from data.bundle_answer import FoundFile, outline
from data.case_declaration import BY, read_declaration
from data.formats.bundle import read_files
from data.formats.bundle_files import files_of, given
from data.intake import Declared, take_item
from data.settings import Settings, read_settings
from data.store import Store

ACTOR = "api token"
"""Who did it, in the trail."""
MAX_FILES = 100
"""Files of one request; a folder with more is better packed as ZIP."""
MAX_FIELD_BYTES = MIB
DRAINED_BYTES = 8 * MIB
EXAMPLE = '{"gpu": "h100-sxm"}'
AT_ONCE = asyncio.Semaphore(2)
"""Uploads taken in at the same time: each may hold a whole file in memory."""


class _TooLarge(Exception):
    """More bytes came than a request may have."""


@dataclass(frozen=True, kw_only=True)
class _Sent:
    """What a request carries."""

    files: Sequence[tuple[str, bytes]]
    declaration: str | None


async def answer(request: Request, store: Callable[[], Store], stored: Callable[[], None]) -> JSONResponse:
    """The whole answer to one request; ``stored`` is called when something was added."""
    body_parts = _Counted(request)
    try:
        settings = await run_in_threadpool(read_settings)
        refusal = _refusal(request, settings)
        if refusal is None:
            async with AT_ONCE:
                sent = await _received(request, body_parts.within(settings.api_max_bytes))
                status, body = await run_in_threadpool(_taken, store(), sent)
            stored()
            return JSONResponse(body, status)
    except _TooLarge:
        refusal = _too_large(settings)
    except StoreError as error:
        refusal = _said(500, error.message)
    except PlimsollError as error:
        refusal = _said(400, error.message)
    if request.headers.get("expect", "").lower() != "100-continue":
        await body_parts.drain()
    return refusal


def _refusal(request: Request, settings: Settings) -> JSONResponse | None:
    """What can be said before any of the body is read; None = go on."""
    if settings.api_token is None:
        return _said(404, msg("uploads are off here: the operator sets a token in the configuration."))
    if not _may(request, settings.api_token):
        wanted = msg("a token was expected: send it as Authorization: Bearer …")
        return _said(401, wanted, {"WWW-Authenticate": "Bearer"})
    return _too_large(settings) if _announced(request) > settings.api_max_bytes else None


def _too_large(settings: Settings) -> JSONResponse:
    most = settings.api_max_bytes // MIB
    return _said(413, msg("at most {most:count} MiB are taken at once: send fewer files, or packed ones.", most=most))


def _said(status: int, sentence: Message, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": str(sentence)}, status, headers)


def _may(request: Request, token: str) -> bool:
    """Compared in a time that does not depend on how much of it is right."""
    kind, _, given_token = request.headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given_token.strip().encode(), token.encode())


def _announced(request: Request) -> int:
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


class _Counted:
    """Hands on the body, and refuses to go on beyond a limit, whatever length was announced."""

    def __init__(self, request: Request) -> None:
        self._receive, self._left, self._ended = request.receive, 0, False

    def within(self, limit: int) -> _Counted:
        """From here on so many bytes may come."""
        self._left = limit
        return self

    async def __call__(self) -> AsgiMessage:
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _TooLarge
        return message

    async def drain(self) -> None:
        """Throw away a little of what still comes: a client cut off while it sends never sees the answer.

        One that asks before it sends (curl does, above a megabyte) need not be waited for.
        """
        self._left = DRAINED_BYTES
        while not self._ended:
            try:
                await self()
            except _TooLarge:
                return


async def _received(request: Request, body_parts: _Counted) -> _Sent:
    """Files and declaration."""
    counted = Request(request.scope, body_parts)
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        return await _form(counted)
    name = unquote(request.headers.get("x-filename", "")).strip()
    if not name:
        raise InputError(msg("a file name was expected: send it as X-Filename, or the file as multipart/form-data."))
    content = await counted.body()
    if not content:
        raise InputError(msg("a file was expected, the body is empty: send its bytes."))
    return _Sent(files=[(name, content)], declaration=request.headers.get("x-declaration"))


async def _form(request: Request) -> _Sent:
    files: list[tuple[str, bytes]] = []
    declaration = None
    try:
        async with request.form(max_files=MAX_FILES, max_fields=MAX_FILES, max_part_size=MAX_FIELD_BYTES) as form:
            for key, value in form.multi_items():
                if isinstance(value, UploadFile):
                    files.append((value.filename or "file", await value.read()))
                elif key == "declaration":
                    declaration = value
    except (HTTPException, MultiPartException) as error:
        reason = error.detail if isinstance(error, HTTPException) else error.message
        raise InputError(msg("the form cannot be read ({reason}): send it as curl -F does.", reason=reason)) from error
    if not files:
        raise InputError(msg("a file was expected in the form: send it as file=@result.json."))
    return _Sent(files=files, declaration=declaration)


def _taken(store: Store, sent: _Sent) -> tuple[int, dict[str, Any]]:
    """Status and body: 200 when anything is stored, 415 when nothing could be read."""
    declared = _declared(store, sent.declaration)
    lines = []
    with store.database.acting(ACTOR):
        for item in read_files(files_of(given(content, name) for name, content in sent.files)):
            line: dict[str, Any] = {"file": item.path}
            found = FoundFile(shown=item.path, root="", item=item)
            try:
                lines.append(line | take_item(store, item, declared) | outline(found))
            except UnreadableFile as error:
                lines.append(line | {"error": str(error)})
    refused = [line["error"] for line in lines if "error" in line]
    if lines and len(refused) == len(lines):
        return 415, {"error": refused[0], "files": lines}
    return 200, {"files": lines}


def _declared(store: Store, text: str | None) -> Declared | None:
    if not text:
        return None
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            msg("the declaration is not JSON: send an object such as {example}.", example=EXAMPLE)
        ) from error
    if not isinstance(told, dict):
        raise InputError(msg("the declaration must be an object such as {example}.", example=EXAMPLE))
    facts, by = read_declaration({BY: ACTOR, **told}, [row.name for row in store.own_gpus()])
    return Declared(facts=facts, by=by)
