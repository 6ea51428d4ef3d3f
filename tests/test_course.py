"""The course of a changing rate: conserved arrivals, stated rates in their time, and what the page says of it."""

# ruff: noqa: F811 - a fixture taken from a neighbour
from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from test_pages import app, assert_clean, open_page  # noqa: F401

from calc.course import rate_course, share_above
from calc.traffic import Closed, Mmpp, OpenLoop, PerMinute, Recorded


def test_a_rate_per_minute_holds_for_its_minute() -> None:
    course = rate_course(PerMinute(rates_per_s=(2.0, 6.0, 1.0)))
    assert course is not None
    assert (course.edges_s, course.rates_per_s) == ((0, 60, 120, 180), (2, 6, 1))
    assert share_above(course, 1.5) == pytest.approx(2 / 3)
    assert share_above(course, 6.0) == 0


def test_every_arrival_of_a_log_is_counted_once() -> None:
    times = np.sort(np.random.default_rng(3).uniform(100, 700, 1000))
    course = rate_course(Recorded(times_s=tuple(times)))
    assert course is not None
    assert np.dot(course.rates_per_s, np.diff(course.edges_s)) == pytest.approx(1000)
    assert course.edges_s[0] == 0
    assert course.edges_s[-1] == pytest.approx(times[-1] - times[0])


def test_a_log_of_two_arrivals_is_one_step() -> None:
    course = rate_course(Recorded(times_s=(5.0, 7.0)))
    assert course is not None
    assert (course.edges_s, course.rates_per_s) == ((0, 2), (1,))


def test_a_drawn_course_has_the_stated_rates_and_about_the_stated_stays() -> None:
    """36 exponential stays a state: their mean is within a half of the stated one."""
    states = Mmpp(rates_per_s=(4.62, 7.02), stays_s=(117, 72))
    course = rate_course(states)
    assert course is not None
    assert course.drawn
    assert set(course.rates_per_s) == {4.62, 7.02}
    assert course.edges_s[-1] / len(course.rates_per_s) == pytest.approx((117 + 72) / 2, rel=0.5)


@pytest.mark.parametrize("steady", [Closed(concurrency=4), OpenLoop(kind="poisson", rate_per_s=3)])
def test_a_steady_load_has_no_course(steady: Closed | OpenLoop) -> None:
    assert rate_course(steady) is None


@pytest.mark.parametrize(
    "values",
    [
        {"arrivals": "per-minute", "minute_rates": "1, 2, 9"},
        {"arrivals": "mmpp"},
        {"arrivals": "trace", "trace": "0\n0.5\n3\n7\n9"},
    ],
    ids=lambda values: values["arrivals"],
)
def test_the_workload_page_draws_a_changing_rate(app: AppTest, values: dict[str, str]) -> None:
    for key, value in values.items():
        app.session_state[key] = value
    open_page(app, "workload")
    assert_clean(app)
    assert "Arrivals over time" in [title.value for title in app.subheader]
    assert len(app.get("plotly_chart")) == 3


def test_the_workload_page_lists_kinds_of_requests_and_clients(app: AppTest) -> None:
    app.session_state["classes"] = "chat 90% hit=60%; reports 10% prompt=20000 max=4"
    app.session_state["patience"] = 10.0
    app.session_state["retries"] = 2
    open_page(app, "workload")
    assert_clean(app)
    (table,) = [frame.value for frame in app.dataframe if "Kind" in frame.value]
    assert list(table["Kind"]) == ["chat", "reports"]
    assert list(table["Share"]) == ["90 %", "10 %"]
    assert any("tries again up to 2 times" in text.value for text in app.markdown)
