"""The carry estimator: worked examples, a reference simulated second by second, and laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model import kernels
from ffm.model.compiled import compiled
from ffm.model.estimators.carry import PASSES_WORTH_COMPILING, carry, carry_by_group
from ffm.model.timeline import Kind
from ffm.results.estimates import Estimates
from tests.model import reference
from tests.model.timelines import DUPLICATE, MISPLACED, UNNECESSARY, Row, row_lists, timeline

SYNC, TRANSFER, FREE, LAUNCH = Kind.SYNCHRONIZATION, Kind.TRANSFER, Kind.FREE, Kind.LAUNCH


def all_fixed(rows: list[Row]) -> float:
    return carry(timeline(rows), np.ones(len(rows), np.bool_))


def nanoseconds(seconds: list[int]) -> NDArray[np.int64]:
    return np.array(seconds, np.int64) * 1_000_000_000


def has_misplaced(rows: list[Row], selected: list[bool]) -> bool:
    return any(chosen and row.problem & MISPLACED for row, chosen in zip(rows, selected, strict=True))


def first_fixed(rows: list[Row]) -> float:
    return carry(timeline(rows), np.arange(len(rows)) == 0)


def test_removing_a_wait_saves_all_of_it_where_enough_work_follows() -> None:
    """Figure 4.4, the example with a large benefit: the second wait does not grow."""
    rows = [Row(SYNC, wait=5, gap=4, problem=UNNECESSARY), Row(LAUNCH, own=1, gap=3), Row(SYNC, wait=2)]
    assert first_fixed(rows) == 5


def test_the_next_wait_grows_by_what_work_cannot_absorb() -> None:
    """Figure 4.4, the example with a limited benefit."""
    rows = [Row(SYNC, wait=5, gap=1, problem=UNNECESSARY), Row(LAUNCH, own=1), Row(SYNC, wait=2, gap=9)]
    assert first_fixed(rows) == 2


def test_launch_part_of_the_next_synchronizing_call_absorbs_too() -> None:
    rows = [Row(SYNC, wait=5, gap=1, problem=UNNECESSARY), Row(TRANSFER, own=2, wait=3, gap=9)]
    assert first_fixed(rows) == 3


def test_unrealized_savings_are_carried_through_removed_synchronizations() -> None:
    """Section 5.2: alone, the first saves one second; in a sequence the rest finds work after the second."""
    rows = [
        Row(SYNC, wait=5, gap=1, problem=UNNECESSARY),
        Row(SYNC, wait=2, gap=10, problem=UNNECESSARY),
        Row(SYNC, wait=4, gap=3),
    ]
    assert first_fixed(rows) == 1
    assert carry(timeline(rows), np.array([False, True, False])) == 2
    assert all_fixed(rows) == 7


def test_a_staying_synchronization_takes_up_what_is_carried() -> None:
    rows = [
        Row(SYNC, wait=5, gap=1, problem=UNNECESSARY),
        Row(SYNC, wait=0, gap=10),
        Row(SYNC, wait=1, gap=10, problem=UNNECESSARY),
    ]
    assert all_fixed(rows) == 2


def test_an_explicit_synchronization_that_had_nothing_to_wait_for_still_stays_one() -> None:
    assert first_fixed([Row(SYNC, wait=3, problem=UNNECESSARY), Row(SYNC, gap=9)]) == 0


def test_a_transfer_that_never_waited_is_work() -> None:
    rows = [Row(SYNC, wait=3, problem=UNNECESSARY), Row(TRANSFER, own=1, gap=1), Row(SYNC)]
    assert first_fixed(rows) == 2


def test_last_synchronization_of_a_thread_saves_up_to_the_end_of_the_run() -> None:
    assert all_fixed([Row(SYNC, wait=5, gap=2, problem=UNNECESSARY)]) == 2


def test_nothing_is_carried_to_another_thread() -> None:
    rows = [Row(SYNC, wait=5, problem=UNNECESSARY), Row(LAUNCH, own=9, gap=9, thread=1)]
    assert all_fixed(rows) == 0


def test_free_adds_the_time_of_the_call() -> None:
    rows = [Row(FREE, own=3, wait=5, gap=1, problem=UNNECESSARY), Row(SYNC, wait=1)]
    assert all_fixed(rows) == 3 + 1


def test_own_time_of_a_removed_call_does_not_absorb_a_wait_as_well() -> None:
    rows = [
        Row(SYNC, wait=5, problem=UNNECESSARY),
        Row(FREE, own=4, problem=UNNECESSARY),
        Row(SYNC),
    ]
    assert all_fixed(rows) == 4


def test_own_time_of_a_staying_free_comes_after_its_wait() -> None:
    assert first_fixed([Row(SYNC, wait=5, problem=UNNECESSARY), Row(FREE, own=4, wait=1), Row(SYNC)]) == 0


@pytest.mark.parametrize(("first_use", "saving"), [(2, 2), (4, 4), (9, 4)])
def test_misplaced_saves_time_to_first_use_but_never_more_than_the_wait(first_use: int, saving: int) -> None:
    rows = [Row(SYNC, wait=4, gap=20, problem=MISPLACED, first_use=first_use)]
    assert all_fixed(rows) == saving


def test_what_is_carried_into_a_moved_synchronization_is_its_wait() -> None:
    rows = [
        Row(SYNC, wait=4, gap=1, problem=UNNECESSARY),
        Row(SYNC, wait=2, gap=9, problem=MISPLACED, first_use=4),
    ]
    assert all_fixed(rows) == 1 + 4


def test_time_to_first_use_is_not_used_twice() -> None:
    rows = [
        Row(SYNC, wait=6, gap=1, problem=MISPLACED, first_use=4),
        Row(SYNC, wait=0, gap=3, problem=UNNECESSARY),
        Row(TRANSFER, own=2, problem=DUPLICATE),
    ]
    assert all_fixed(rows) == 4 + 2


def test_duplicate_transfer_saves_its_launch_and_keeps_a_needed_wait() -> None:
    rows = [Row(TRANSFER, own=2, wait=3, gap=9, problem=DUPLICATE)]
    assert all_fixed(rows) == 2


def test_duplicate_transfer_without_need_to_wait_saves_both() -> None:
    rows = [Row(TRANSFER, own=2, wait=3, gap=9, problem=DUPLICATE | UNNECESSARY)]
    assert all_fixed(rows) == 5


def test_the_copy_of_a_transfer_goes_without_work_to_absorb_it() -> None:
    """Of a wait of 5, 2 were the copy; the gap of 1 absorbs one of the other 3."""
    rows = [Row(TRANSFER, own=1, wait=5, gap=1, problem=DUPLICATE | UNNECESSARY), Row(SYNC)]
    assert carry(timeline(rows), np.ones(2, np.bool_), nanoseconds([2])) == 1 + 2 + 1


def test_the_copy_goes_also_where_the_wait_must_stay() -> None:
    rows = [Row(TRANSFER, own=1, wait=5, gap=1, problem=DUPLICATE)]
    assert carry(timeline(rows), np.ones(1, np.bool_), nanoseconds([2])) == 1 + 2
    assert carry(timeline(rows), np.ones(1, np.bool_), nanoseconds([9])) == 1 + 5


def test_rows_without_a_problem_change_nothing() -> None:
    assert all_fixed([Row(SYNC, own=2, wait=3, gap=9), Row(FREE, own=2, wait=3, gap=9)]) == 0


def test_empty_timeline_saves_nothing() -> None:
    assert all_fixed([]) == 0


def test_selection_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="one boolean for each of 1 rows"):
        carry(timeline([Row()]), np.ones(2, np.bool_))
    with pytest.raises(ValueError, match="one boolean"):
        carry(timeline([Row()]), np.ones(1, np.int64))  # type: ignore[arg-type]


@st.composite
def selections(draw: st.DrawFn, *, misplaced: bool = True) -> tuple[list[Row], list[bool]]:
    rows = draw(row_lists(misplaced=misplaced))
    return rows, draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))


@given(selections())
def test_equals_the_reference(case: tuple[list[Row], list[bool]]) -> None:
    rows, selected = case
    assert carry(timeline(rows), np.array(selected, np.bool_)) == pytest.approx(reference.carry(rows, selected))


copy_times_of_sites = st.lists(st.integers(0, 4), min_size=4, max_size=4)


@given(selections(), copy_times_of_sites)
def test_equals_the_reference_where_copies_take_time(case: tuple[list[Row], list[bool]], copy_time: list[int]) -> None:
    rows, selected = case
    saved = carry(timeline(rows), np.array(selected, np.bool_), nanoseconds(copy_time))
    assert saved == pytest.approx(reference.carry(rows, selected, copy_time))
    assert saved >= carry(timeline(rows), np.array(selected, np.bool_)) - 1e-9 or has_misplaced(rows, selected)


@given(row_lists(), st.lists(st.integers(-1, 2), min_size=4, max_size=4), copy_times_of_sites)
def test_many_groups_in_one_pass_equal_each_group_by_itself(
    rows: list[Row], group_of: list[int], copy_time: list[int]
) -> None:
    table = timeline(rows)
    together = carry_by_group(table, table.site, np.array(group_of, np.int32), 3, nanoseconds(copy_time))
    alone = [reference.carry(rows, [group_of[row.site] == group for row in rows], copy_time) for group in range(3)]
    assert together == pytest.approx(alone)


@given(selections(), copy_times_of_sites)
def test_saves_at_most_the_waits_and_own_times_and_the_run(
    case: tuple[list[Row], list[bool]], copy_time: list[int]
) -> None:
    rows, selected = case
    saved = carry(timeline(rows), np.array(selected, np.bool_), nanoseconds(copy_time))
    limit = 0
    for row, chosen in zip(rows, selected, strict=True):
        if chosen and row.problem:
            limit += row.wait
        if chosen and (row.problem & DUPLICATE or (row.problem and row.kind == FREE)):
            limit += row.own
    assert -1e-9 <= saved <= limit + 1e-9
    assert saved <= sum(row.own + row.wait + row.gap for row in rows) + 1e-9


@given(selections(misplaced=False), copy_times_of_sites, st.data())
def test_a_larger_set_never_saves_less(
    case: tuple[list[Row], list[bool]], copy_time: list[int], data: st.DataObject
) -> None:
    rows, selected = case
    more = [chosen or data.draw(st.booleans()) for chosen in selected]
    table = timeline(rows)
    less_saved = carry(table, np.array(selected, np.bool_), nanoseconds(copy_time))
    assert carry(table, np.array(more, np.bool_), nanoseconds(copy_time)) >= less_saved - 1e-9


@given(selections())
def test_scales_with_time(case: tuple[list[Row], list[bool]]) -> None:
    """The assumption behind an imported row, which is the sum of equal executions."""
    rows, selected = case
    chosen = np.array(selected, np.bool_)
    once = timeline(rows)
    thrice = type(once)(
        once.thread, once.start, once.duration * 3, once.wait * 3, once.gap * 3,
        once.site, once.kind, once.problem, once.first_use * 3, once.occurrences * 3,
    )  # fmt: skip
    assert carry(thrice, chosen) == pytest.approx(3 * carry(once, chosen))


def test_compiled_and_plain_kernels_agree() -> None:
    generator = np.random.default_rng(1)
    rows = [
        Row(
            kind=Kind(int(generator.integers(0, 7))),
            own=int(generator.integers(0, 5)),
            wait=int(generator.integers(0, 5)),
            gap=int(generator.integers(0, 5)),
            problem=UNNECESSARY * int(generator.integers(0, 2))
            | MISPLACED * int(generator.integers(0, 2))
            | DUPLICATE * int(generator.integers(0, 2)),
            first_use=int(generator.integers(0, 9)),
            site=int(generator.integers(0, 9)),
            thread=index // 500,
        )
        for index in range(2000)
    ]
    table = timeline(rows)
    columns = kernels.Rows(*(getattr(table, name) for name in kernels.Rows._fields))
    arguments = columns, np.arange(9) * 500_000_000, table.site, np.array([0, 1, -1, 2, 2, 3, -1, 4, 0], np.int32), 5
    assert compiled(kernels.carry_groups)(*arguments).tolist() == kernels.carry_groups(*arguments).tolist()


def test_passes_over_a_small_table_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates of many groups make so many that compiling pays: in plain Python, those of 2,000 threads take 10 s."""
    table = timeline([Row(wait=2, gap=1, problem=UNNECESSARY)] * 10)
    visits = []

    def run(kernel: Callable[..., Any], rows: int, *arguments: Any) -> Any:
        visits.append(rows)
        return kernel(*arguments)

    monkeypatch.setattr("ffm.model.estimators.carry.run", run)
    estimates = Estimates(table, None, np.zeros(1, np.int64), 100.0, None)
    saved = {estimates.of_rows(table.problem != 0).carry_s for _ in range(5 * PASSES_WORTH_COMPILING)}
    assert saved == {10.0}
    assert (visits[0], visits[-1]) == (len(table), 5 * len(table))
