"""Which waits make the text appear that kernels print."""

from __future__ import annotations

import numpy as np

from ffm.model.necessity.printing import Prints, waits_that_show
from ffm.model.necessity.program import NO_HANDOVERS, Operations, Role
from ffm.model.necessity.reasons import Reason
from ffm.model.necessity.rules import needed_synchronizations
from tests.model.necessity.test_necessity import FIRST, LEGACY, SECOND, Row, program, reasons, used

END = np.iinfo(np.int64).max


def showing(operations: Operations, *prints: tuple[int, int, int], silent: tuple[int, ...] = ()) -> list[int]:
    """Return the rows that let text out; `prints` are rows and times, and nothing is written in `silent` rows."""
    writes = operations.judged.copy()
    writes[list(silent)] = False
    found = waits_that_show(
        operations,
        np.flatnonzero(operations.action == 1),
        writes,
        Prints(*(np.array([one[column] for one in prints], np.int64) for column in range(3))),
        NO_HANDOVERS,
    )
    return np.flatnonzero(found).tolist()


def test_nothing_is_shown_where_nothing_is_printed() -> None:
    assert showing(program(("work", FIRST, 0), ("device", LEGACY, 0))) == []


def test_the_first_wait_for_a_kernel_lets_its_text_out() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0), ("work", FIRST, 0),
                       ("stream", FIRST, 0)]  # fmt: skip
    assert showing(program(*rows), (1, 5, 15)) == [1]
    assert showing(program(*rows), (4, 35, 45)) == [4]
    assert showing(program(*rows), (1, 5, 15), (4, 35, 45)) == [1, 4]


def test_text_that_came_early_is_still_what_the_wait_is_there_for() -> None:
    """The instruments' own calls, or another stream's wait, can let it out before the wait of the program does."""
    rows: list[Row] = [("work", FIRST, 0), ("work", SECOND, 0), ("stream", SECOND, 0), ("stream", FIRST, 0)]
    assert showing(program(*rows), (1, 5, 15)) == [2, 3]
    assert showing(program(*rows), (-1, 5, 8)) == [3]


def test_a_wait_in_which_the_driver_writes_nothing_lets_nothing_out() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("device", LEGACY, 0), ("device", LEGACY, 0), ("device", LEGACY, 0)]
    assert showing(program(*rows), (2, 15, 25), silent=(1,)) == [2]


def test_each_thread_that_waits_may_be_the_first() -> None:
    """And of a thread that may wait too early, each wait."""
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 1),
                       ("stream", FIRST, 1)]  # fmt: skip
    assert showing(program(*rows), (1, 5, 15)) == [1, 3, 4]


def test_where_the_driver_writes_unseen_every_kernel_may_print() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0), ("work", SECOND, 0),
                       ("device", LEGACY, 0)]  # fmt: skip
    assert showing(program(*rows), (-1, 0, END)) == [1, 4]


def test_a_wait_that_shows_is_required_whatever_else_relies_on_it() -> None:
    rows = program(("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0))
    shows = np.array([False, True, False])
    used_later = used((0, 500, Role.RESULT))
    assert reasons(needed_synchronizations(rows, used(), shows=shows)) == [Reason.PRINTED, Reason.NOTHING_RELIES]
    assert reasons(needed_synchronizations(rows, used_later, shows=shows))[0] == Reason.PRINTED
