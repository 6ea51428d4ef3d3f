"""The widgets of the scenario: keyed by their field, worded and bounded by the glossary, kept over page switches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from ui import fields, state
from ui import format as show
from ui.glossary import CHOICES, FIELDS
from ui.text import t

LINES_HEIGHT = 90
"""Pixels of a box for some lines."""


def label(key: str) -> str:
    """The field's name with its unit."""
    field = FIELDS[key]
    return f"{t(field.label)} ({show.unit(field.unit)})" if field.unit else t(field.label)


def choice(key: str, options: Sequence[Any], **options_of_widget: Any) -> Any:
    """A select box whose options are codes free of language."""
    worded: Callable[[Any], str] = options_of_widget.pop("format_func", word)
    state.settle(key, options)
    shown = {option: worded(option) for option in options}  # in the language of this run, whoever asks later
    return st.selectbox(
        label(key), options, key=key, format_func=lambda option: shown.get(option, str(option)),
        help=t(FIELDS[key].help), persist_state="session", **options_of_widget,
    )  # fmt: skip


def number(key: str, **options_of_widget: Any) -> Any:
    """A number box, whole or not as the field is; empty where the field may be left to its default."""
    field = FIELDS[key]
    kind = int if key in fields.WHOLE else float
    low, high, step = (None if bound is None else kind(bound) for bound in (field.low, field.high, field.step))
    return st.number_input(
        label(key), low, high, None, step, key=key, help=t(field.help), persist_state="session",
        format="%d" if kind is int else "%g", **options_of_widget,
    )  # fmt: skip


def line(key: str) -> str:
    """A line of text."""
    return st.text_input(label(key), key=key, help=t(FIELDS[key].help), persist_state="session")


def lines(key: str, example: str) -> str:
    """Some lines of text; the example stands there while it is empty."""
    return st.text_area(
        label(key), key=key, help=t(FIELDS[key].help), persist_state="session", height=LINES_HEIGHT, placeholder=example
    )


def share(key: str) -> float:
    """A slider from 0 to 100 %."""
    return st.slider(
        label(key), 0.0, 100.0, None, 1.0, key=key, format="%g", help=t(FIELDS[key].help), persist_state="session"
    )


def toggle(key: str) -> bool:
    """On or off."""
    return st.toggle(label(key), key=key, help=t(FIELDS[key].help), persist_state="session")


def word(code: Any) -> str:
    """An option code in the visitor's language; codes that are names stay as they are."""
    return t(CHOICES[code]) if code in CHOICES else str(code)
