"""Readers of what engines and their own benchmarks write, most specific first."""

from __future__ import annotations

from data.formats import vllm_serve
from data.formats.reader import Reader

READERS: tuple[Reader, ...] = (
    Reader(title="vllm bench serve", looks_like=vllm_serve.looks_like, read=vllm_serve.read),
)
