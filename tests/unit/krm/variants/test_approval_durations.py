"""Durations as Go programs read them. Source: ``variants.md`` 6.2 and 6.3; https://pkg.go.dev/time#ParseDuration."""

import datetime as dt

import pytest

from krm.variants.durations import InvalidDuration, read_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("-0s", 0),
        ("90s", 90),
        ("1h30m", 5400),
        ("+1.5h", 5400),
        ("100ms", 0.1),
        ("1us", 0.000001),
        ("1µs", 0.000001),
        ("2500000h", 9e9),
    ],
)
def test_durations(written: str, seconds: float) -> None:
    assert read_duration(written) == dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written", ["", "5", "1d", "-1s", "1h-", "h", "١s", "1 h", None, 5, True, [], "9" * 40 + "h", "9999999h"]
)
def test_what_is_none(written: object) -> None:
    with pytest.raises(InvalidDuration, match="such as 90s"):
        read_duration(written)
