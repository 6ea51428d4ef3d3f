"""One source, several compiled kernels: what a load does not use is left out of the machine code that runs it.

Functions are registered as they are defined and stay plain Python. A kernel is a copy of all of them over one shared
set of names in which the flags (:data:`calc.simulator.layout.MANAGED` and the like) are constants, so that the
compiler drops every branch of a feature that is off.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, cast

from numba import njit

FAST: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
"""Nothing is allocated inside, so counting references is left out (half the time); no denominator can be 0."""

Function = TypeVar("Function", bound=Callable[..., object])

LATER = tuple(f"calc.simulator.fleet_{name}" for name in ("events", "handover", "routing", "steps", "watch"))
"""Modules that only the kernel of several replicas calls: whether they are imported changes no other fingerprint."""

_parts: dict[str, tuple[FunctionType, dict[str, Any]]] = {}


def inlined(function: Function) -> Function:
    """A small function of the hot path, compiled into its callers."""
    return _register(function, {"inline": "always"})


def compiled(function: Function) -> Function:
    """A longer or rarer function."""
    return _register(function, {})


def _register(function: Function, options: dict[str, Any]) -> Function:
    part = cast("FunctionType", function)
    _parts[part.__name__] = (part, options)
    return function


def specialise(main: FunctionType, flags: Mapping[str, int], *, jit: bool = True) -> Callable[..., None]:
    """``main`` with everything it calls, under these flags; only ``main``, holding all, is cached on disk.

    Copies carry the flags in their names: two kernels in one process must not share a symbol.
    """
    names: dict[str, Any] = {}
    for part, _ in _parts.values():
        names.update(part.__globals__)
    names.update(flags, __name__=main.__module__)
    suffix = "_".join(name.lower() for name, value in flags.items() if value is True)
    for name, (part, options) in _parts.items():
        copy = _copy(part, names, suffix)
        names[name] = njit(**options, **FAST)(copy) if jit else copy
    whole = _copy(main, names, suffix)
    return cast("Callable[..., None]", njit(cache=True, nogil=True, **FAST)(whole) if jit else whole)


def _copy(function: FunctionType, names: dict[str, Any], suffix: str) -> FunctionType:
    copy = FunctionType(function.__code__, names, function.__name__, None, function.__closure__)
    copy.__qualname__ = f"{function.__name__}_{suffix}"
    return copy


def fingerprint(flags: Mapping[str, int], *, whole: bool = False) -> int:
    """Of all registered source and its constants: numba looks for changes only in the file of the cached function."""
    seen: list[object] = [sorted(flags.items())]
    for name, (part, _) in sorted(_parts.items()):
        if part.__module__ in LATER and not whole:
            continue
        code = part.__code__
        constants = sorted((key, part.__globals__.get(key)) for key in code.co_names)
        numbers = [(key, value) for key, value in constants if isinstance(value, int | float)]
        seen.append(
            (
                name,
                code.co_names,
                code.co_code,
                [one for one in code.co_consts if isinstance(one, int | float)],
                numbers,
            )
        )
    return zlib.crc32(repr(seen).encode())
