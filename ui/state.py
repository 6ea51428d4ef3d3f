"""The only module that touches session state: widget values in, the one frozen scenario out, and back again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import wraps
from typing import Any

import streamlit as st

from calc.errors import PlimsollError, StoreError
from calc.evidence import Evidence
from calc.messages import Message, msg
from calc.startup.match import choose_log
from calc.workload import Prices
from data.case import read_case, read_gpu, write_case
from data.case_fields import Fields
from data.case_measured import measured_text
from data.case_prices import read_prices
from data.own_hardware import OWN_PRICE, gpu_case, gpu_of, price_of, prices_of
from data.own_text import one_line
from data.run_evidence import of_model
from data.store import OwnEntry
from ui import fields, pricing, resources, text
from ui.resources import Asked
from ui.text import t

LANGUAGE_KEY = "lang"
PASTED = "given by a user"
SEEDED, PROBLEMS, MEASURED, SERVED = "_seeded", "_link_problems", "_measured", "_measured_model"
OWN_PREFIX = "own:"
"""Ids of models and GPUs that the team added begin with this."""
PRICE_TYPED, LOADED_PRICE = "_price_typed", "_price_loaded"


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
    for key, value in (defaults() | linked | _first_price(linked)).items():
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
    attach_log()
    wanted = fields.to_link(values(), defaults())
    if (language := text.current()) != _browser_language():
        wanted[LANGUAGE_KEY] = language
    written = st.query_params.to_dict()
    for key in {*wanted, *written} & {*fields.EMPTY, LANGUAGE_KEY}:
        if key not in wanted:
            del st.query_params[key]
        elif written.get(key) != wanted[key]:
            st.query_params[key] = wanted[key]


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
    return dict(resources.example_values())


def values() -> fields.Values:
    """The widget values of this run; a field whose widget was not drawn yet has the example's."""
    known = st.session_state.to_dict()
    return {key: known.get(key, value) for key, value in resources.example_values().items()}


def current() -> Asked:
    """What the user asks now, with the figures of the real system that were handed over in this session."""
    now = values()
    asked = resources.ask(fields.to_case(now, _own_cases(now), _price_facts(now)))
    measured = of_model(handed_over(), st.session_state.get(SERVED, (None, ())), asked.scenario)
    return replace(asked, measured=measured) if measured else asked


def handed_over() -> tuple[Evidence, ...]:
    """Measured figures that decisions of this session rest on."""
    measured: tuple[Evidence, ...] = st.session_state.get(MEASURED, ())
    return measured


def attach_log() -> None:
    """Let the scenario carry the start-up log that stands for it, of the link's or file's own and the stored ones."""
    now, stored = values(), resources.measured_starts()
    if not stored:
        return
    try:
        deployment = current().scenario.deployment
    except PlimsollError:  # said by the page; a scenario that cannot be has no log
        return
    chosen = choose_log(deployment.measured_memory, stored, deployment)
    put(measured=measured_text(chosen) if chosen else now["measured"])


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
    put(**fields.to_values(full, _own_model_id(full["model"]), _own_gpu_id(full["gpu"])))
    put(**{LOADED_PRICE: scenario.prices, PRICE_TYPED: scenario.prices.source == ""})
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


def take_linked(key: str, codes: Collection[str]) -> None:
    """A page's own switch begins as the address says, if it says a code the page knows."""
    linked = st.query_params.get(key)
    if linked is not None and linked in codes and key not in st.session_state:
        st.session_state[key] = linked


def write_linked(key: str, code: str, usual: str) -> None:
    """Keep the address in step with a page's own switch; the usual choice is not written."""
    if code != usual:
        st.query_params[key] = code
    elif key in st.query_params:
        del st.query_params[key]


def canonical(asked: Asked) -> dict[str, Any]:
    """The case of the asked scenario in full, as it is saved and exported."""
    return write_case(asked.scenario)


def add_own_model(name: str, entry: Mapping[str, Any], *, source: str = PASTED, checked_on: str = "") -> OwnEntry:
    """Store a model and make it the scenario's model. Call it from a callback."""
    own = resources.add_own_model(name, entry, source=source, checked_on=checked_on or today().isoformat())
    put(model=OWN_PREFIX + own.entry_id)
    return own


def own_options(kind: str, chosen: Any) -> dict[str, str]:
    """Codes and names of the team's own rows of a kind, an older version only while it is chosen."""
    rows = resources.own_versions(kind)
    newest = {row.name: row for row in reversed(rows)}
    options = {OWN_PREFIX + row.entry_id: row.name for row in newest.values()}
    older = {OWN_PREFIX + row.entry_id: f"{row.name} (v{row.version})" for row in rows}
    return {**({chosen: older[chosen]} if chosen in older and chosen not in options else {}), **options}


def _own_cases(now: Mapping[str, Any]) -> Mapping[str, Any]:
    """Case form of the chosen own rows, older versions included."""
    cases: dict[str, Any] = {}
    if str(now["model"]).startswith(OWN_PREFIX):
        rows = resources.own_versions("own_model")
        cases |= {OWN_PREFIX + row.entry_id: {"name": row.name, **row.entry} for row in rows}
    if str(now["gpu"]).startswith(OWN_PREFIX):
        cases |= {OWN_PREFIX + row.entry_id: gpu_case(row) for row in resources.own_versions("own_gpu")}
    return cases


def _own_model_id(model: Any) -> str | None:
    """The id of a model that is more than a catalogue name; stored if it is new here."""
    if not isinstance(model, Mapping):
        return None
    name = one_line(model["name"], "name")
    entry = {key: value for key, value in model.items() if key != "name"}
    for own in resources.own_versions("own_model"):
        if (own.name, own.entry) == (name, entry):
            return OWN_PREFIX + own.entry_id
    return OWN_PREFIX + resources.add_own_model(name, entry, source=PASTED).entry_id


def _own_gpu_id(gpu: Any) -> str | None:
    """The id of a GPU written out in a case; stored if it is new here."""
    if not isinstance(gpu, Mapping) or fields.is_typed(gpu):
        return None
    gpu = {**gpu, "name": one_line(gpu["name"], "name")}
    wanted = read_gpu(Fields(gpu, "gpu"))
    for own in resources.own_versions("own_gpu"):
        if gpu_of(own) == wanted:
            return OWN_PREFIX + own.entry_id
    entry = {key: value for key, value in gpu.items() if key not in {"name", "source", "checked_on"}}
    told = {"source": str(gpu.get("source") or PASTED), "checked_on": str(gpu.get("checked_on") or "")}
    return OWN_PREFIX + resources.add_own_gpu(str(gpu["name"]), entry, **told).entry_id


def price_name(code: Any) -> str:
    """What the prices of a GPU of the picker are kept under."""
    names = {OWN_PREFIX + row.entry_id: row.name for row in resources.own_versions("own_gpu")}
    return OWN_PRICE + names.get(code, code) if code in names or code == "own" else str(code)


def _start_price(code: Any) -> dict[str, Any]:
    """The price a GPU begins with: the newest stored one, else the example's on the example's GPU, else none."""
    rows = prices_of(resources.own_prices(), price_name(code))
    if rows:
        return _price_values(price_of(rows[0]))
    usual = defaults()
    return {key: usual[key] for key in ("price", "currency")} if code == usual["gpu"] else {"price": None}


def price_facts() -> dict[str, str]:
    """Where the scenario's price is from, as far as it is known."""
    return _price_facts(values())


def _price_facts(now: Mapping[str, Any]) -> dict[str, str]:
    stored = [price_of(row) for row in prices_of(resources.own_prices(), price_name(now["gpu"]))]
    loaded = st.session_state.get(LOADED_PRICE)
    example = {key: value for key, value in defaults().items() if key in {"gpu", "price", "currency"}}
    assumed = [Prices(gpu_hour=example["price"], currency=example["currency"], source=pricing.ASSUMED)]
    known = [*stored, *([loaded] if loaded else []), *(assumed if now["gpu"] == example["gpu"] else [])]
    return pricing.facts(now["price"], now["currency"], known)


def current_prices() -> Prices:
    """The price in the fields, with where it is from."""
    now = values()
    return read_prices(Fields({"gpu_hour": now["price"], "currency": now["currency"], **price_facts()}, "prices"))


def price_typed() -> None:
    """The visitor's own figure stays when another GPU is chosen; an emptied field does not count."""
    put(**{PRICE_TYPED: st.session_state.get("price") is not None})


def fill_price() -> None:
    """After another GPU was chosen: its own price, else none; never the price of the GPU before."""
    if not st.session_state.get(PRICE_TYPED):
        put(**_start_price(st.session_state.get("gpu")))


def use_gpu(code: str) -> None:
    """Make a GPU the scenario's, with its price. Call it from a callback."""
    put(gpu=code)
    fill_price()


def use_price(price: Prices) -> None:
    """Put a stored price into the scenario. Call it from a callback."""
    put(**_price_values(price), **{PRICE_TYPED: False})


def _price_values(price: Prices) -> dict[str, Any]:
    return {"price": price.gpu_hour, "currency": price.currency}


def _first_price(linked: Mapping[str, Any]) -> dict[str, Any]:
    """The price of a session's first run, and whether somebody typed it: a link may name one."""
    try:
        start = _start_price(linked.get("gpu", defaults()["gpu"]))
    except StoreError:  # said by the page, which needs the store too
        return {}
    price = linked.get("price")
    return {PRICE_TYPED: price not in (None, start["price"])} | ({} if "price" in linked else start)


def today() -> date:
    """The day by UTC."""
    return datetime.now(UTC).date()


def dark() -> bool:
    """True when the visitor looks at the dark theme."""
    return bool(st.context.theme.type == "dark")
