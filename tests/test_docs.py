"""The documents say what is there: the file list is the tree, the commands run, the settings exist."""

from __future__ import annotations

import re
import struct
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

import cli

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ROOMS = ("calc", "data", "probe", "ui", "pages")
PAGE_LINES = 60
"""Lines of one printed page."""
PNG_HEAD = b"\x89PNG\r\n\x1a\n"
MAX_PICTURE_BYTES = 1_000_000
MIN_PICTURE_PIXELS = 1000
"""Width below which the words in a picture of the whole page cannot be read."""


def listed() -> set[str]:
    """Entries of the README's file list: ``name  remark``, folders end in a slash."""
    block = README.split("## Files", 1)[1].split("```")[1]
    return {line.split()[0] for line in block.splitlines() if line.strip()}


def tree() -> set[str]:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if path.name != "__init__.py"]
    return {str(path.relative_to(ROOT)) for path in [*files, *ROOT.glob("*.py")]}


def test_every_listed_file_and_folder_exists() -> None:
    assert not [entry for entry in listed() if not (ROOT / entry).exists()]


def test_every_file_is_listed_itself_or_by_its_folder() -> None:
    folders = tuple(entry for entry in listed() if entry.endswith("/") and entry.rstrip("/") not in ROOMS)
    assert not sorted(file for file in tree() if file not in listed() and not file.startswith(folders))


def commands(document: Path) -> list[str]:
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:sh)?\n(.*?)```", text, re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", text)
    return [line.strip() for block in blocks for line in block.splitlines()] + inline


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_a_document_names_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {match[1] for command in commands(document) if (match := re.match(r"make ([a-z]+)", command))}
    assert named <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_verb_a_document_names_exists(document: Path) -> None:
    verbs = {
        m[1] for command in commands(document) for m in re.finditer(r"(?:plimsoll|cli\.py) ([a-z][a-z-]+)", command)
    }
    assert verbs <= set(cli.main.commands)


def test_every_verb_is_in_the_readme() -> None:
    assert not [verb for verb in cli.main.commands if f"`{verb}`" not in README]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_a_document_points_to_exists(document: Path) -> None:
    links = links_of(document)
    # A picture is taken of the finished dashboard, so it may come after the words around it.
    assert not [link for link in links if not link.endswith(".png") and not (document.parent / link).exists()]


def links_of(document: Path) -> list[str]:
    return re.findall(r"\]\((?!https?:|#)([^)]+)\)", document.read_text(encoding="utf-8"))


def test_every_picture_that_is_there_is_sharp_small_and_described() -> None:
    for document in DOCUMENTS:
        for words, link in re.findall(r"!\[([^\]]*)\]\(([^)]+\.png)\)", document.read_text(encoding="utf-8")):
            assert len(words.split()) >= 3, f"{link} needs a description for those who cannot see it"
            picture = document.parent / link
            if picture.exists():
                head = picture.read_bytes()[:24]
                assert head.startswith(PNG_HEAD)
                assert struct.unpack(">I", head[16:20])[0] >= MIN_PICTURE_PIXELS
                assert picture.stat().st_size <= MAX_PICTURE_BYTES


def test_the_accuracy_the_readme_cites_is_the_measured_one() -> None:
    cited = README.split("**How close.**", 1)[1].split("**Limits.**")[0]
    measured = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    figures = set(re.findall(r"\d+(?:\.\d+)? %", cited))
    assert figures
    assert not {figure for figure in figures if not re.search(rf"(?<![\d.]){re.escape(figure)}", measured)}
    version = re.search(r"model version (\S+?)[,;]", cited)
    assert version
    assert f"model version {version[1]}" in measured


def test_every_environment_variable_in_the_documents_is_read_somewhere() -> None:
    named = {name for path in DOCUMENTS for name in re.findall(r"PLIMSOLL_[A-Z]+", path.read_text(encoding="utf-8"))}
    places = [ROOT / "tests" / "conftest.py", *(p for room in ROOMS for p in (ROOT / room).rglob("*.py"))]
    read = {name for path in places for name in re.findall(r"PLIMSOLL_[A-Z]+", path.read_text(encoding="utf-8"))}
    assert named <= read


def test_contributing_is_one_page() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= PAGE_LINES


def test_the_readme_states_the_oldest_python_that_works() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')}" in README


def test_the_documents_are_plain() -> None:
    loud = re.compile(
        r"\b(powerful|seamless\w*|cutting-edge|blazing\w*|revolutionary|effortless\w*|world-class|robust)\b", re.I
    )
    assert not [path.name for path in DOCUMENTS if loud.search(path.read_text(encoding="utf-8"))]
