"""Readers of load generators, metrics texts and GPU tools, most specific first."""

from __future__ import annotations

from data.formats import metrics_file
from data.formats.reader import Reader

READERS: tuple[Reader, ...] = (
    Reader(title="/metrics (vLLM, SGLang, DCGM)", looks_like=metrics_file.looks_like, read=metrics_file.read),
)
