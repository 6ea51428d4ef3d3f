"""Words on the screen: English in the code, other languages from gettext catalogues.

``t("Some text with {n:count} numbers", n=3)`` gives the text in the current language; ``t(message)`` does the same
for a :class:`~calc.messages.Message` that came with a result. The language belongs to the running context, so two
visitors, or a page and the sheet it offers, may speak different ones at the same time.
"""

from __future__ import annotations

import gettext
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from calc.errors import UnknownName
from calc.messages import Message, Translate, msg

DOMAIN = "plimsoll"
LOCALE = Path(__file__).parent / "locale"
SOURCE_LANGUAGE = "en"
LANGUAGES: Mapping[str, str] = MappingProxyType({"en": "English", "zh_CN": "简体中文"})
"""Language code to the name its readers give it."""

_language: ContextVar[str] = ContextVar("language", default=SOURCE_LANGUAGE)


@lru_cache
def translator(language: str) -> Translate:
    """English text to text in ``language``; English itself needs no catalogue."""
    if language not in LANGUAGES:
        raise UnknownName(
            msg(
                "language {language} is not known: use one of {choices}.",
                language=language,
                choices=", ".join(LANGUAGES),
            )
        )
    if language == SOURCE_LANGUAGE:
        return gettext.NullTranslations().gettext
    return gettext.translation(DOMAIN, LOCALE, [language]).gettext


def use(language: str) -> None:
    """Speak ``language`` from here on in this context."""
    translator(language)
    _language.set(language)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Speak ``language`` inside the block only, as the sheet does whatever the screen shows."""
    translator(language)
    before = _language.set(language)
    try:
        yield
    finally:
        _language.reset(before)


def current() -> str:
    """The language code spoken now."""
    return _language.get()


def t(text: str | Message, /, **params: Any) -> str:
    """``text`` in the current language with its numbers put in. A literal ``text`` is extracted for translation."""
    message = Message(text, params) if isinstance(text, str) else text
    return message.text(translator(_language.get())) if message.msgid else ""
