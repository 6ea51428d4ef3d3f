"""The only module that touches session state: widget values in, the one frozen scenario out, and back again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import streamlit as st

from calc.errors import PlimsollError
from calc.messages import Message, msg
from data.case import read_case, write_case
from ui import fields, resources, text
from ui.resources import Asked
from ui.text import t

LANGUAGE_KEY = "lang"
PASTED = "given by a user"
SEEDED, PROBLEMS = "_seeded", "_link_problems"
OWN_PREFIX = "own:"
"""Ids of models that the team added begin with this."""


def use_language() -> str:
    """Speak the visitor's language in this run: the one chosen or linked, else the browser's, else English."""
    chosen = st.session_state.get(LANGUAGE_KEY) or st.query_params.get(LANGUAGE_KEY)
    language = chosen if isinstance(chosen, str) and chosen in text.LANGUAGES else _browser_language()
    text.use(language)
    return language


def _browser_language() -> str:
    return "zh_CN" if (st.context.locale or "").lower().startswith("zh") else text.SOURCE_LANGUAGE


def begin() -> None:
    """First thing in every run: the language, and once per session the values of the link or of the worked example."""
    language = use_language()
    if SEEDED in st.session_state:
        return
    linked, problems = fields.from_link(st.query_params.to_dict())
    for key, value in (defaults() | linked).items():
        st.session_state.setdefault(key, value)
    st.session_state.setdefault(LANGUAGE_KEY, language)
    st.session_state[SEEDED], st.session_state[PROBLEMS] = True, tuple(problems)


def settle(key: str, options: Sequence[Any]) -> None:
    """A choice that a link or file names but that does not exist falls back to the example's, and says so."""
    value = st.session_state.get(key)
    if value in options:
        return
    fallback = defaults().get(key)
    st.session_state[key] = fallback if fallback in options else options[0]
    _tell(msg("{key} has no choice {value}: {used} is used instead.", key=key, value=value, used=st.session_state[key]))


def link_problems() -> tuple[Message, ...]:
    """What of the opened link could not be used, said once."""
    problems: tuple[Message, ...] = st.session_state.pop(PROBLEMS, ())
    return problems


def write_link() -> None:
    """Keep the address bar in step, so that the page can be shared: every value that is not the example's."""
    wanted = fields.to_link(values(), defaults())
    if (language := text.current()) != _browser_language():
        wanted[LANGUAGE_KEY] = language
    for key in (*fields.EMPTY, LANGUAGE_KEY):
        if key in wanted and st.query_params.get(key) != wanted[key]:
            st.query_params[key] = wanted[key]
        elif key not in wanted and key in st.query_params:
            del st.query_params[key]


def fragment(*, run_every: float | None = None) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """``st.fragment`` for pages: it reruns without the shell, so it sets the language and says errors itself."""

    def decorate(body: Callable[[], None]) -> Callable[[], None]:
        @wraps(body)
        def guarded() -> None:
            use_language()
            try:
                body()
            except PlimsollError as error:
                st.error(t(error.message), icon=":material/error:")

        wrapped: Callable[[], None] = st.fragment(guarded, run_every=run_every)
        return wrapped

    return decorate


def callback(body: Callable[..., None]) -> Callable[..., None]:
    """For what a button does: a callback runs outside the page, so its errors are said at the head of the page."""

    @wraps(body)
    def guarded(*asked: Any) -> None:
        try:
            body(*asked)
        except PlimsollError as error:
            _tell(error.message)

    return guarded


def defaults() -> fields.Values:
    """Widget values of the worked example: what a visitor with a bare link sees."""
    return fields.to_values(resources.example())


def values() -> fields.Values:
    """The widget values of this run; a field whose widget was not drawn yet has the example's."""
    return {key: st.session_state.get(key, value) for key, value in defaults().items()}


def current() -> Asked:
    """What the user asks now."""
    now = values()
    return resources.ask(fields.to_case(now, _own_model_cases(now["model"])))


def is_example() -> bool:
    """True while nothing of the worked example was changed."""
    return values() == defaults()


@callback
def load(case: Mapping[str, Any]) -> None:
    """Put a case into the widgets, and say what of it they cannot hold; a case that they cannot hold at all stays out.

    Call it from a callback: widgets take new values only before they are drawn.
    """
    scenario, _ = read_case(case)
    full = fields.filled_in(case, scenario)
    put(**fields.to_values(full, _own_model_id(full["model"])))
    if lost := fields.not_on_screen(full):
        _tell(msg("The screen has no field for {names}: left out.", names=", ".join(lost)))


def _tell(problem: Message) -> None:
    """To be said once, at the head of the page."""
    st.session_state[PROBLEMS] = (*st.session_state.get(PROBLEMS, ()), problem)


def put(**changes: Any) -> None:
    """Set single widget values from a callback."""
    for key, value in changes.items():
        st.session_state[key] = value


def get(key: str, default: Any = None) -> Any:
    """A widget value that is not part of the scenario, such as a page's own switch."""
    return st.session_state.get(key, default)


def canonical(asked: Asked) -> dict[str, Any]:
    """The case of the asked scenario in full, as it is saved and exported."""
    return write_case(asked.scenario)


def add_own_model(name: str, config: Mapping[str, Any]) -> None:
    """Store a config.json model and make it the scenario's model. Call it from a callback."""
    st.session_state["model"] = _own_model_id({"name": name, "config": dict(config)})


def _own_model_cases(model: Any) -> Mapping[str, Any]:
    if not str(model).startswith(OWN_PREFIX):
        return {}
    return {OWN_PREFIX + own.entry_id: {"name": own.name, **own.entry} for own in resources.own_models()}


def _own_model_id(model: Any) -> str | None:
    """The id of a model that is more than a catalogue name; stored if it is new here."""
    if not isinstance(model, Mapping):
        return None
    name = str(model["name"])
    entry = {key: value for key, value in model.items() if key != "name"}
    for own in resources.own_models():
        if (own.name, own.entry) == (name, entry):
            return OWN_PREFIX + own.entry_id
    return OWN_PREFIX + resources.add_own_model(name, entry, source=PASTED).entry_id


def dark() -> bool:
    """True when the visitor looks at the dark theme."""
    return bool(st.context.theme.type == "dark")
