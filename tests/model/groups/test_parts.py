"""The best parts of a sequence: seconds against places to change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.groups.parts import Part, best_parts, count_places, promise


def additive(seconds: list[float]) -> np.ndarray:
    """The promise of lines that save by themselves."""
    nothing = np.zeros(len(seconds))
    return promise(np.array(seconds), nothing, nothing)


def places_of(names: str) -> np.ndarray:
    return count_places([frozenset(name) for name in names])


def best(seconds: list[float], names: str, wanted: int) -> list[Part]:
    return best_parts(additive(seconds), places_of(names), lambda start, end: sum(seconds[start : end + 1]), wanted)


def test_a_wait_is_promised_as_far_as_work_absorbs_it() -> None:
    promised = promise(np.array([1.0, 0.0]), np.array([4.0, 0.0]), np.array([1.0, 2.0]))
    assert promised.tolist() == [[2.0, 4.0], [-np.inf, 0.0]]


def test_places_are_counted_once() -> None:
    assert places_of("aba").tolist() == [[1, 2, 2], [0, 1, 2], [0, 0, 1]]


def test_more_places_must_save_more() -> None:
    found = best([1.0, 5.0, 0.0, 4.0], "abcd", 9)
    assert [(part.start, part.end, part.places, part.seconds) for part in found] == [
        (1, 1, 1, 5.0),
        (0, 1, 2, 6.0),
        (1, 3, 3, 9.0),
        (0, 3, 4, 10.0),
    ]


def test_of_too_many_those_stay_that_say_most() -> None:
    found = best([1.0, 50.0, 0.0, 40.0], "abcd", 2)
    assert [(part.start, part.end) for part in found] == [(1, 1), (0, 3)]


def test_one_place_that_mends_all_beats_the_rest() -> None:
    assert [(part.start, part.end) for part in best([2.0, 3.0, 1.0], "aaa", 5)] == [(0, 2)]


def test_nothing_to_save_gives_no_part() -> None:
    assert best([0.0, 0.0], "ab", 3) == []


def test_at_least_one_part_must_be_wanted() -> None:
    with pytest.raises(ValueError, match="at least one"):
        best([1.0], "a", 0)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=7), st.data())
def test_no_part_is_better_than_the_front(seconds: list[int], data: st.DataObject) -> None:
    """Compared with all parts of short sequences, each of which is a candidate or saves no more."""
    names = "".join(data.draw(st.sampled_from("abcd")) for _ in seconds)
    front = best([float(value) for value in seconds], names, 99)
    places = places_of(names)
    for start in range(len(seconds)):
        for end in range(start, len(seconds)):
            value = sum(seconds[start : end + 1])
            assert value == 0 or any(part.places <= places[start, end] and part.seconds >= value for part in front), (
                start,
                end,
            )
    assert [part.places for part in front] == sorted({part.places for part in front})


def test_long_sequences_are_estimated_only_here_and_there() -> None:
    asked: list[tuple[int, int]] = []
    lines = 400

    def estimate(start: int, end: int) -> float:
        asked.append((start, end))
        return float(end - start + 1)

    names = [frozenset([line]) for line in range(lines)]
    found = best_parts(additive([1.0] * lines), count_places(names), estimate, 5)
    assert len(asked) < 100
    assert len(found) == 5 and found[-1].seconds == lines
