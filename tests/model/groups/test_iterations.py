"""Where a thread's iterations begin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.groups.iterations import iterations_from, recurring_starts


def sites(*pieces: str) -> np.ndarray:
    """A letter for each site."""
    return np.array([ord(letter) for letter in "".join(pieces)], np.int32)


def told(*pieces: str, waits: str = "w") -> list[str]:
    """The iterations that are found, as letters."""
    site = sites(*pieces)
    waiting = np.isin(site, [ord(letter) for letter in waits])
    found = iterations_from(recurring_starts(site, waiting), site)
    return ["".join(map(chr, site[begin:end])) for begin, end in zip(found.begin, found.end, strict=True)]


def test_the_sequence_that_recurs_is_an_iteration_without_warm_up_and_end() -> None:
    assert told("init", *["kw"] * 6, "end") == ["kw"] * 4
    assert told("init", "kxw", "kyw", *["kw"] * 5) == ["kw"] * 5


def test_how_often_an_inner_loop_runs_does_not_matter() -> None:
    assert told("i", "abbbw", "abw", "abbw", "abbbbw") == ["abw", "abbw", "abbbbw"]


def test_an_inner_loop_without_a_wait_is_no_iteration() -> None:
    assert told(*["abcbcbcbcbcbcbcw"] * 4) == ["abcbcbcbcbcbcbcw"] * 3


def test_what_happens_now_and_then_does_not_hide_the_iterations() -> None:
    assert told(*["kw", "kw", "kw", "kw", "kwp"] * 4, "z")[:5] == ["kw", "kw", "kw", "kwp", "kw"]


@pytest.mark.parametrize("text", ["", "a", "abcd", "aab"])
def test_nothing_recurs(text: str) -> None:
    assert told(text) == []


def test_given_rows_begin_iterations() -> None:
    site = sites("xx", "abw", "abw", "acw", "abw", "end")
    found = iterations_from(np.array([2, 5, 8, 11]), site)
    assert (found.begin.tolist(), found.end.tolist(), found.left_out) == ([5, 8], [8, 11], 2)
    assert len(iterations_from(np.zeros(0, np.int64), site)) == 0


@given(st.lists(st.sampled_from("abcw"), max_size=60), st.data())
def test_iterations_are_in_order_and_do_not_overlap(letters: list[str], data: st.DataObject) -> None:
    site = sites(*letters)
    starts = recurring_starts(site, site == ord("w"))
    if data.draw(st.booleans()) and letters:
        starts = np.array(sorted(data.draw(st.sets(st.integers(0, len(letters) - 1)))), np.int64)
    found = iterations_from(starts, site)
    assert len(found) + found.left_out == len(starts)
    assert (found.begin < found.end).all()
    assert (found.begin[1:] >= found.end[:-1]).all()
    assert (found.end <= len(site)).all()
