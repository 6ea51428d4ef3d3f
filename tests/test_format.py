"""The same number is written in the same way everywhere, and a missing one is said to be missing."""

from __future__ import annotations

import pytest

from calc.messages import msg
from calc.units import GIB, KIB, MIB
from ui import format as show
from ui.text import speaking, t


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (show.gib(80 * GIB), "80.0 GiB"),
        (show.gib(1234.56 * GIB), "1,234.6 GiB"),
        (show.mib(512 * KIB), "0.5 MiB"),
        (show.mib(1536 * MIB), "1,536 MiB"),
        (show.kib(128 * KIB), "128 KiB"),
        (show.ms(0.0234), "23.4 ms"),
        (show.ms(1.2345), "1,234 ms"),
        (show.seconds(12.345), "12.35 s"),
        (show.percent(0.9), "90 %"),
        (show.percent(0.1234), "12.3 %"),
        (show.percent(1.0), "100 %"),
        (show.tokens(131072), "131,072 tokens"),
        (show.count(1234.4), "1,234"),
        (show.decimal(12.345), "12.3"),
        (show.decimal(1234.5), "1,234"),
        (show.rate(8), "8.00 requests/s"),
        (show.tokens_rate(1234.6), "1,235 tokens/s"),
        (show.gbps(3.35e12), "3,350.0 GB/s"),
        (show.tflops(989e12), "989 TFLOP/s"),
        (show.money(2.5, "USD"), "2.50 USD"),
        (show.money(0.08345, "EUR"), "0.0834 EUR"),
        (show.money(12345.6, "CNY"), "12,346 CNY"),
        (show.money(0, "USD"), "0.00 USD"),
    ],
)
def test_numbers_are_written_with_their_unit_and_three_digits(text: str, expected: str) -> None:
    assert expected == text


@pytest.mark.parametrize("write", [*show.UNITS.values(), lambda none: show.money(none, "USD")])
def test_a_missing_figure_is_never_a_zero(write: show.Formatter) -> None:
    assert write(None) == "not measured"


def test_a_missing_figure_is_said_to_be_missing_in_chinese_too() -> None:
    with speaking("zh_CN"):
        assert show.gib(None) == "未测量"


def test_a_table_and_a_sentence_write_the_same_number_alike() -> None:
    sentence = t(msg("{a:gib} {b:ms} {c:pct} {d:rate}", a=5.67 * GIB, b=0.1499, c=0.0567, d=3.14159))
    assert sentence == " ".join([show.gib(5.67 * GIB), show.ms(0.1499), show.percent(0.0567), show.rate(3.14159)])


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.5, "share", "50 %"),
        (GIB, "bytes", "1.0 GiB"),
        (3, "watts", "3 watts"),
        (1.5, "", "1.5"),
        ("fp8", "", "fp8"),
        (True, "", "yes"),
        (False, "", "no"),
        (None, "s", "not measured"),
    ],
)
def test_any_figure_of_the_evidence_is_written_by_its_unit(value: float | None, unit: str, expected: str) -> None:
    assert show.quantity(value, unit) == expected
