"""``POST /api/runs`` on a real server: off by default, closed without the token, bounded; a file twice is one."""

from __future__ import annotations

import io
import json
import os
import urllib.error
import urllib.request
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from browser import ROOT, serving

from data.store import Store

TOKEN = "s3cret-of-ci"
SAMPLES = ROOT / "data" / "samples"
RESULT = (SAMPLES / "sample-vllm-serve.json").read_bytes()


def ask(url: str, body: Any, token: str = TOKEN, **headers: str) -> tuple[int, dict[str, Any]]:
    """Status and answer."""
    given = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{url}/api/runs", body, {**given, **headers}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def raw(url: str, name: str, body: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    return ask(url, body, **{"X-Filename": name, "Content-Type": "application/octet-stream", **headers})


def form(url: str, files: Mapping[str, bytes], **fields: str) -> tuple[int, dict[str, Any]]:
    """As ``curl -F`` sends it."""
    mark = uuid.uuid4().hex
    out = io.BytesIO()
    for name, value in fields.items():
        out.write(f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode())
    for name, content in files.items():
        head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        out.write(head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + content + b"\r\n")
    out.write(f"--{mark}--\r\n".encode())
    return ask(url, out.getvalue(), **{"Content-Type": f"multipart/form-data; boundary={mark}"})


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Folder of a store, and the configuration its server reads."""
    folder = tmp_path_factory.mktemp("api")
    config = folder / "plimsoll.toml"
    config.write_text("", encoding="utf-8")
    os.environ["PLIMSOLL_CONFIG"] = str(config)
    yield folder / "store.duckdb", config
    del os.environ["PLIMSOLL_CONFIG"]


def test_a_job_with_the_token_stores_files_and_nobody_else_does(desk: tuple[Path, Path]) -> None:
    path, config = desk
    with serving(path) as (url, _):
        assert raw(url, "a.json", RESULT)[0] == 404, "off until the operator sets a token"
        config.write_text(f'[api]\ntoken = "{TOKEN}"\nmax_mb = 1\n', encoding="utf-8")
        closed(url)
        bounded(url)
        sentences(url)
        stored(url)
    with Store(path) as store:
        by_whom = {entry.actor for entry in store.trail()}
        (declared,) = {run.declaration.declared_by for run in store.runs() if run.declaration}
    assert by_whom == {"api token"}
    assert declared == "nightly"


def closed(url: str) -> None:
    for wrong in ("", "guess", TOKEN + "x", TOKEN[:-1]):
        status, body = ask(url, RESULT, token=wrong, **{"X-Filename": "a.json"})
        assert (status, "token" in body["error"]) == (401, True)


def bounded(url: str) -> None:
    large = bytes(3 * 2**20)
    assert raw(url, "a.json", large)[0] == 413
    pieces = iter([large[: 2**20]] * 3)
    status, body = ask(url, pieces, **{"X-Filename": "a.json", "Transfer-Encoding": "chunked"})
    assert (status, "MiB" in body["error"]) == (413, True), "whatever length was announced"
    assert form(url, {"a.json": large})[0] == 413


def sentences(url: str) -> None:
    assert "X-Filename" in raw(url, "", RESULT)[1]["error"]
    assert raw(url, "a.json", b"")[0] == 400
    assert raw(url, "a.txt", b"hello there")[0] == 415
    assert form(url, {})[0] == 400
    assert form(url, {"a.json": RESULT}, declaration="{")[0] == 400
    assert form(url, {"a.json": RESULT}, declaration='{"gpu": "no such"}')[0] == 400
    broken = ask(url, b"--x\r\nrubbish", **{"Content-Type": "multipart/form-data; boundary=x"})
    assert (broken[0], "curl -F" in broken[1]["error"] or "file" in broken[1]["error"]) == (400, True)


def stored(url: str) -> None:
    status, first = raw(url, "a%20b.json", RESULT)
    (file,) = first["files"]
    assert (status, file["file"], file["kind"], file["already_there"]) == (200, "a b.json", "file", False)
    told = '{"gpu": "h100-sxm", "gpu_count": 1, "strategy": "prefix", "declared_by": "nightly"}'
    status, again = form(url, {"other.json": RESULT}, declaration=told)
    assert (status, again["files"][0]["id"], again["files"][0]["already_there"]) == (200, file["id"], True)

    log = b"TIMESTAMP,ContextTokens,GeneratedTokens\n" + b"".join(
        f"2023-11-16 18:17:0{second}.5000000,10,20\n".encode() for second in range(9)
    )
    many = {
        "log.csv": log,
        "start.log": (SAMPLES / "sample-startup-vllm.log").read_bytes(),
        "metrics.txt": (SAMPLES / "sample-metrics.txt").read_bytes(),
        "notes.md": b"# nothing\n",
    }
    status, mixed = form(url, {"night.zip": zipped(many)})
    assert status == 200
    kinds = {line["file"].rpartition("/")[2]: line.get("kind") for line in mixed["files"]}
    assert kinds == {"log.csv": "request_log", "start.log": "startup_log", "metrics.txt": "file", "notes.md": None}
