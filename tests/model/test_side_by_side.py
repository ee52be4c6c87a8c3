"""Independent passes over a long run."""

from __future__ import annotations

import os
import threading
from functools import partial

import pytest

from ffm.model.compiled import PLAIN_ROWS
from ffm.model.side_by_side import side_by_side

LONG = PLAIN_ROWS + 1


@pytest.mark.parametrize("rows", [10, LONG])
def test_results_come_in_the_order_of_the_passes(rows: int) -> None:
    assert side_by_side([partial(pow, number, 2) for number in range(5)], rows) == [0, 1, 4, 9, 16]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_passes_over_a_long_run_go_on_at_once() -> None:
    met = threading.Barrier(2)
    assert sorted(side_by_side([partial(met.wait, 20)] * 2, LONG)) == [0, 1]


def test_what_goes_wrong_in_a_pass_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        side_by_side([lambda: 1 / 1, lambda: 1 / 0], LONG)
