"""The house stands as drawn: import directions, sizes, lock files, and nothing of one machine or one author's desk."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOMS = ("calc", "data", "probe", "ui", "pages")
CODE = sorted([*ROOT.glob("*.py"), *(path for room in (*ROOMS, "tests") for path in (ROOT / room).rglob("*.py"))])
PRODUCT = [path for path in CODE if "tests" not in path.parts]
LOCKS = ("requirements.txt", "requirements-dev.txt")
PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==[0-9][A-Za-z0-9.+!]*( ;.*)?$")
OUR_OWN = {*ROOMS, "app", "cli", *(path.stem for path in (ROOT / "tests").glob("*.py"))}
DISTRIBUTION = {
    "pynvml": "nvidia-ml-py",
    "fontTools": "fonttools",
    "importlinter": "import-linter",
    "babel": "Babel",
    "starlette": "streamlit",
    "markupsafe": "jinja2",
    "yaml": "pyyaml",
}
"""Import name → the requirement that brings it, where the two differ: Streamlit brings Starlette, Jinja2 MarkupSafe."""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_imports_go_one_way() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS


def test_every_file_is_short_enough_to_read_at_once() -> None:
    """Tests may be longer: a table of cases is read where it is needed."""
    lines = {_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in PRODUCT}
    assert not {name: count for name, count in lines.items() if count > (90 if name.startswith("pages") else 350)}


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{_name(path)}:{function.lineno} {function.name}"
        for path in CODE
        for function in _functions(path)
        if (function.end_lineno or 0) - function.lineno >= 60
    ]
    assert not long


def test_no_file_is_named_after_nothing() -> None:
    assert not [_name(path) for path in CODE if path.stem in {"utils", "util", "helpers", "common", "misc"}]


def test_every_sentence_for_a_user_is_a_literal() -> None:
    """A sentence put together at run time cannot be translated."""
    loose = [
        f"{_name(path)}:{call.lineno}"
        for path in PRODUCT
        for call in ast.walk(_tree(path))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "msg"
        if not (call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str))
    ]
    assert not loose


def test_heavy_packages_are_imported_only_inside_functions() -> None:
    heavy = {"torch", "pynvml"}
    at_once = [_name(path) for path in PRODUCT for name in _imported(_tree(path).body) if name in heavy]
    assert not at_once


def _imported(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _third_party(paths: list[Path]) -> dict[str, str]:
    """Requirement → one file that imports it."""
    found = {}
    for path in paths:
        for name in _imported([node for node in ast.walk(_tree(path)) if isinstance(node, ast.stmt)]):
            if name not in OUR_OWN and name not in sys.stdlib_module_names:
                found[DISTRIBUTION.get(name, name)] = _name(path)
    return found


def _required(extra: str = "") -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {re.split(r"[<>=! ;\[]", line)[0] for line in lines}


def test_every_imported_package_is_declared() -> None:
    undeclared = {k: v for k, v in _third_party(PRODUCT).items() if k not in _required() | _required("probe")}
    assert not undeclared
    tests = [path for path in CODE if "tests" in path.parts]
    allowed = _required() | _required("probe") | _required("dev")
    assert not {k: v for k, v in _third_party(tests).items() if k not in allowed}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_holds_pinned_versions_and_no_address(lock: str) -> None:
    lines = [
        line for line in (ROOT / lock).read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")
    ]
    assert not [line for line in lines if not PINNED.match(line)]
    assert "torch" not in {line.partition("==")[0] for line in lines}


def _pins(lock: str) -> dict[str, str]:
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    return {name: version for name, _, version in (line.partition("==") for line in lines if PINNED.match(line))}


def test_both_lock_files_agree_and_cover_what_is_declared() -> None:
    run, dev = _pins("requirements.txt"), _pins("requirements-dev.txt")
    assert run.items() <= dev.items()
    assert {name.lower() for name in _required()} <= set(run)
    assert {name.lower() for name in _required("dev")} <= set(dev)


TEXTS = [
    path
    for pattern in (
        "*.py",
        "*.md",
        "*.toml",
        "*.txt",
        "*.cfg",
        "*.sql",
        "*.json",
        "*.csv",
        "*.html",
        "*.typ",
        "Makefile",
        "run",
    )
    for path in ROOT.rglob(pattern)
    if not {".venv", "var", "node_modules", "build", "dist"} & set(path.relative_to(ROOT).parts)
    and not any(part.startswith(".") and part not in {".ci", ".streamlit"} for part in path.relative_to(ROOT).parts)
    and not any(part.endswith(".egg-info") for part in path.parts)
]


def test_no_text_names_a_path_of_one_machine() -> None:
    machine = re.compile(r"(?<![\w.])/(?:work|home|root|Users|opt|tmp)/")
    named = [
        _name(path)
        for path in TEXTS
        if path.name != "test_house.py" and machine.search(path.read_text("utf-8", "replace"))
    ]
    assert not named


def test_the_dashboard_calls_no_other_host() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["browser"]["gatherUsageStats"] is False
    assert config["browser"]["serverAddress"] == "localhost"
    callers = {"requests", "httpx", "urllib3", "aiohttp"}
    assert not [_name(path) for path in PRODUCT for name in _imported(_tree(path).body) if name in callers]
