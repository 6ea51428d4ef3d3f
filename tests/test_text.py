"""Every sentence a visitor may read exists in every language, with the same numbers in it."""

from __future__ import annotations

import ast
import io
import re
import string
from collections.abc import Iterator
from functools import cache
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir, extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from calc.errors import UnknownName
from calc.messages import msg
from calc.metrics import METRICS
from calc.units import GIB
from ui import format as show
from ui import glossary, text
from ui.text import t

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("calc", "data", "probe", "ui", "pages")
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2")]
KEYWORDS: dict[str, Any] = {"t": None, "msg": None}
TRANSLATED = [code for code in text.LANGUAGES if code != text.SOURCE_LANGUAGE]


@cache
def spoken() -> dict[str, str]:
    """Every text the code can say, with a place that says it."""
    found: dict[str, str] = {}
    for room in ROOMS:
        for file, line, message, *_ in extract_from_dir(ROOT / room, METHODS, keywords=KEYWORDS):
            found[str(message)] = f"{room}/{file}:{line}"
    for front_door in ("app.py", "cli.py"):
        if (ROOT / front_door).exists():
            for line, message, *_ in extract_from_file("python", ROOT / front_door, keywords=KEYWORDS):
                found[str(message)] = f"{front_door}:{line}"
    return found


def written() -> Iterator[tuple[str, str]]:
    """Every literal handed to ``t`` or ``msg`` as Python itself reads the code, with its place."""
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    for file in (*files, ROOT / "app.py", ROOT / "cli.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="t" | "msg"), args=[ast.Constant(value=str(text)), *_]) if text:
                    yield text, f"{file.name}:{node.lineno}"


def folder(language: str) -> Path:
    return text.LOCALE / language / "LC_MESSAGES"


def catalogue(language: str) -> Catalog:
    return read_po(io.BytesIO((folder(language) / f"{text.DOMAIN}.po").read_bytes()), locale=language)


def translations(language: str) -> dict[str, str]:
    return {str(entry.id): str(entry.string) for entry in catalogue(language) if entry.id}


def sentences(compiled: io.BytesIO) -> dict[str, str]:
    """A compiled catalogue without its header, which carries the time of compiling."""
    compiled.seek(0)
    found: dict[str, str] = GNUTranslations(compiled)._catalog
    return {message: other for message, other in found.items() if message}


def placeholders(sentence: str) -> set[tuple[str, str]]:
    return {(name, spec or "") for _, name, spec, _ in string.Formatter().parse(sentence) if name is not None}


def untranslated(language: str, places: dict[str, str]) -> dict[str, str]:
    known = translations(language)
    return {message: place for message, place in places.items() if not known.get(message)}


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_text_of_the_program_is_translated(language: str) -> None:
    assert untranslated(language, spoken()) == {}


def test_no_text_hides_in_an_f_string_where_the_extraction_does_not_look() -> None:
    said = spoken()
    assert {text: place for text, place in written() if text not in said} == {}


@pytest.mark.parametrize("language", TRANSLATED)
def test_no_translation_is_left_over_from_a_text_that_is_gone(language: str) -> None:
    assert sorted(set(translations(language)) - set(spoken())) == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_no_translation_is_a_guess_of_a_tool(language: str) -> None:
    assert [entry.id for entry in catalogue(language) if entry.id and entry.fuzzy] == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_translation_has_the_same_numbers_in_the_same_units(language: str) -> None:
    differing = {m: other for m, other in translations(language).items() if placeholders(m) != placeholders(other)}
    assert differing == {}


def test_no_per_cent_sign_reads_like_a_placeholder_of_c_to_the_translation_tools() -> None:
    """ "20 % of" would: ``pybabel compile`` asks the other language for the same ``% o``."""
    assert [message for message in spoken() if Message(message).python_format] == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_the_compiled_catalogue_is_the_readable_one(language: str) -> None:
    expected = io.BytesIO()
    write_mo(expected, catalogue(language))
    committed = io.BytesIO((folder(language) / f"{text.DOMAIN}.mo").read_bytes())
    assert sentences(expected) == sentences(committed)


def test_a_message_of_the_calculation_is_told_in_the_language_of_the_block() -> None:
    with text.speaking("zh_CN"):
        assert t(msg("not measured")) == "未测量"
        assert text.current() == "zh_CN"
    assert t(msg("not measured")) == "not measured"


def test_an_untranslated_sentence_stays_english_and_keeps_its_number() -> None:
    with text.speaking("zh_CN"):
        assert t("nobody translated {size:gib}", size=GIB) == "nobody translated 1.0 GiB"


def test_units_that_are_words_speak_the_language_too() -> None:
    with text.speaking("zh_CN"):
        assert t(msg("{load:rate}", load=2.4)) == "2.40 请求/s"
        assert (show.tokens(8192), show.tokens_rate(1500)) == ("8,192 token", "1,500 token/s")
        assert (show.unit("requests/s"), show.unit("GiB")) == ("请求/s", "GiB")
    assert (show.rate(2.4), show.tokens(8192), show.unit("tokens")) == ("2.40 requests/s", "8,192 tokens", "tokens")


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_word_of_a_table_of_words_is_translated(language: str) -> None:
    tables = (glossary.BOUNDS, glossary.CHOICES, glossary.LAYERS, glossary.OUTCOMES, glossary.PROVENANCE)
    words = {word.msgid: "glossary" for table in (*tables, glossary.UNIT_WORDS) for word in table.values()}
    words |= {metric.meaning.msgid: metric.name for metric in METRICS.values()}
    assert untranslated(language, words) == {}


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_translation_uses_full_width_signs_between_chinese_words(language: str) -> None:
    half_width = re.compile(r"[\u4e00-\u9fff]([;?!()]|[,:] )")
    assert [other for other in translations(language).values() if half_width.search(other)] == []


def test_an_empty_text_stays_empty() -> None:
    with text.speaking("zh_CN"):
        assert t("") == ""


def test_an_unknown_language_is_refused_with_the_choice() -> None:
    with pytest.raises(UnknownName, match="en, zh_CN"):
        text.use("fr")
