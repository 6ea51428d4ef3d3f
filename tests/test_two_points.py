"""Two measured points of a setup improve its others, and bring them within the aims."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_points import AIMS, LATENCIES, Setup, judge_all, median_error


@pytest.fixture(scope="module")
def judged(cases_dir: Path) -> list[Setup]:
    return judge_all(cases_dir)


@pytest.mark.parametrize("latency", LATENCIES)
def test_the_remaining_points_are_met_within_the_aim(judged: list[Setup], latency: str) -> None:
    assert median_error(judged, latency, "after") <= AIMS[latency]


@pytest.mark.parametrize("latency", LATENCIES)
def test_two_points_improve_the_others(judged: list[Setup], latency: str) -> None:
    assert median_error(judged, latency, "after") < median_error(judged, latency, "before")


def test_no_setup_of_published_points_is_refused(judged: list[Setup]) -> None:
    assert [setup.name for setup in judged if setup.fit is None] == []


def test_two_points_do_not_tell_everything(judged: list[Setup]) -> None:
    assert all(setup.fit and len(setup.fit.not_identified) >= 3 for setup in judged)
