"""Which portions of a run a user can choose to measure."""

from __future__ import annotations

import math

import pytest

from ffm.instrument.session.portion import (
    WHOLE,
    Calls,
    Iterations,
    PortionError,
    Window,
    read_portion,
    read_window,
)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("60..90", Window(60, 90)),
        ("0.5..1.25", Window(0.5, 1.25)),
        ("60..90s", Window(60, 90)),
        ("60..", Window(60, math.inf)),
        ("100..200 calls", Calls(100, 200)),
        ("100.. calls", Calls(100, WHOLE)),
    ],
)
def test_windows_are_seconds_or_calls(text: str, window: Window | Calls) -> None:
    assert read_window(text) == window


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not START..END"),
        ("60", "is not START..END"),
        ("-1..3", "is not START..END"),
        ("1..2..3", "is not START..END"),
        ("nan..3", "is not START..END"),
        ("5..5", "is empty"),
        ("9..3", "is reversed"),
        ("1..9999999", "beyond what a run can last"),
    ],
)
def test_what_is_no_window_is_refused(text: str, says: str) -> None:
    with pytest.raises(PortionError, match=says):
        read_window(text)


@pytest.mark.parametrize("sample", ["1/0", "1/3", "2/10", "1/-5", "10", "1/99999999999999", ""])
def test_what_is_no_sample_is_refused(sample: str) -> None:
    with pytest.raises(PortionError, match="1/N"):
        read_portion(None, None, sample)


def test_iterations_have_a_name_or_any() -> None:
    assert read_portion(None, "train", None) == Iterations("train", 1)
    assert read_portion(None, None, "1/10") == Iterations("", 10)
    assert read_portion(None, None, None) is None
    with pytest.raises(PortionError, match="empty"):
        read_portion(None, " ", None)


def test_a_window_and_iterations_exclude_each_other() -> None:
    with pytest.raises(PortionError, match="not both"):
        read_portion("1..2", "train", None)
