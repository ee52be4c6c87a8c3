"""Which frees and allocations disappear together if memory is kept."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as some
from numpy.typing import NDArray

from ffm.model.estimators.hoisting import LEAST_KEPT_BYTES, reused_memory, without_keeping


def kept(
    *rows: tuple[str, int, int], size: list[int] | None = None, process: list[int] | None = None
) -> NDArray[np.int32]:
    """Rows are (`allocate` or `free`, call stack, address); stacks from 10 on allocate another kind of memory."""
    return reused_memory(
        np.array(process or [0] * len(rows)),
        np.array([stack for _, stack, _ in rows]),
        np.array([address for _, _, address in rows], np.uint64),
        np.array(size or [64] * len(rows)),
        np.array([what == "allocate" for what, _, _ in rows]),
        np.array([stack // 10 for _, stack, _ in rows]),
    )


def partners(*rows: tuple[str, int, int], size: list[int] | None = None, process: list[int] | None = None) -> list[int]:
    found: list[int] = without_keeping(kept(*rows, size=size, process=process)).tolist()
    return found


def test_in_a_loop_each_free_serves_the_next_allocation_and_the_last_stays() -> None:
    loop = [("allocate", 1, 100), ("free", 2, 100)] * 3
    assert partners(*loop) == [-1, 2, 1, 4, 3, -1]


def test_memory_of_another_place_does_not_serve() -> None:
    assert partners(("allocate", 1, 100), ("free", 2, 100), ("allocate", 3, 100), ("free", 4, 100)) == [-1] * 4


def test_as_many_frees_stay_as_buffers_live_at_once() -> None:
    turn = [("allocate", 1, 100), ("allocate", 1, 200), ("free", 2, 100), ("free", 2, 200)]
    found = partners(*turn, *turn, *turn)
    assert found[-2:] == [-1, -1]
    assert sum(partner >= 0 for partner in found) == 8


def test_a_buffer_may_be_freed_at_several_places() -> None:
    assert partners(("allocate", 1, 100), ("free", 2, 100), ("allocate", 1, 100), ("free", 3, 100)) == [-1, 2, 1, -1]


def test_processes_do_not_share_memory() -> None:
    rows = [("allocate", 1, 100), ("free", 2, 100), ("allocate", 1, 100), ("free", 2, 100)]
    assert partners(*rows, process=[0, 0, 1, 1]) == [-1] * 4


def test_a_free_of_unknown_memory_serves_nobody() -> None:
    assert partners(("free", 2, 100), ("allocate", 1, 100)) == [-1, -1]


LOOP = [("allocate", 1, 100), ("free", 2, 100)] * 3


def test_memory_that_is_too_small_or_far_too_large_does_not_serve() -> None:
    assert partners(*LOOP, size=[1000, 0, 1001, 0, 1002, 0]) == [-1] * 6
    assert partners(*LOOP, size=[2000, 0, 1000, 0, 500, 0]) == [-1] * 6


def test_memory_a_little_larger_serves_and_stays_as_large_as_it_is() -> None:
    assert partners(*LOOP, size=[1000, 0, 900, 0, 1000, 0]) == [-1, 2, 1, 4, 3, -1]


def test_the_smallest_memory_that_fits_serves() -> None:
    rows = [("allocate", 1, 1), ("allocate", 1, 2), ("free", 2, 2), ("free", 2, 1), ("allocate", 1, 3)]
    assert partners(*rows, size=[1100, 1010, 0, 0, 1000]) == [-1, -1, 4, -1, 2]


def test_memory_without_a_taker_can_be_kept_to_the_end() -> None:
    assert kept(*LOOP, size=[1000, 0, 2000, 0, 4000, 0]).tolist() == [-1, 1, -1, 3, -1, 5]


def test_no_more_is_kept_to_the_end_than_the_process_once_held_and_some_slack() -> None:
    large = LEAST_KEPT_BYTES
    assert kept(*LOOP, size=[large, 0, 2 * large, 0, large // 2, 0]).tolist() == [-1, -1, -1, 3, -1, 5]


def test_each_kind_of_memory_has_room_of_its_own() -> None:
    rows = [("allocate", 1, 100), ("free", 2, 100), ("allocate", 11, 200), ("free", 2, 200)]
    most = 2 * LEAST_KEPT_BYTES
    assert kept(*rows, size=[most, 0, most, 0]).tolist() == [-1, 1, -1, 3]


class Plain:
    """The same for one process, one call after the other."""

    def __init__(self) -> None:
        self.living: dict[int, tuple[tuple[int, int], int]] = {}
        self.waiting: list[tuple[tuple[int, int], int, int]] = []
        self.held: Counter[int] = Counter()
        self.peak: Counter[int] = Counter()

    def allocate(self, kind: int, stack: int, address: int, size: int) -> int | None:
        """Return the free that serves it: the last one of the smallest memory that fits."""
        fitting = [one for one in self.waiting if one[0] == (kind, stack) and size <= one[1] <= size + size / 8]
        taken = min(fitting, key=lambda one: (one[1], -one[2]), default=None)
        if taken is not None:
            self.waiting.remove(taken)
            size = taken[1]
        self.living[address] = (kind, stack), size
        self.held[kind] += size
        self.peak[kind] = max(self.peak[kind], self.held[kind])
        return None if taken is None else taken[2]

    def free(self, address: int, row: int) -> None:
        if address in self.living:
            place, size = self.living.pop(address)
            self.held[place[0]] -= size
            self.waiting.append((place, size, row))

    def kept_to_the_end(self) -> list[int]:
        room = {kind: peak + LEAST_KEPT_BYTES - self.held[kind] for kind, peak in self.peak.items()}
        found = []
        for (kind, _), size, row in sorted(self.waiting, key=lambda one: -one[2]):
            room[kind] -= size
            found += [row] if room[kind] >= 0 else []
        return found


CALL = some.tuples(
    some.sampled_from(["allocate", "free"]),
    some.integers(0, 1),  # process
    some.integers(0, 3),  # stack; half of them allocate another kind of memory
    some.integers(1, 6),  # address
    some.sampled_from([0, 1, 7, 8, 9, 64, 72, 73, LEAST_KEPT_BYTES // 2]),
)


@given(some.lists(CALL, max_size=60))
def test_it_is_as_one_call_after_the_other(calls: list[tuple[str, int, int, int, int]]) -> None:
    processes = [Plain(), Plain()]
    expected = np.full(len(calls), -1)
    for row, (what, process, stack, address, size) in enumerate(calls):
        if what == "allocate":
            served = processes[process].allocate(stack // 2, stack, address, size)
            if served is not None:
                expected[row], expected[served] = served, row
        else:
            processes[process].free(address, row)
    for each in processes:
        kept_rows = each.kept_to_the_end()
        expected[kept_rows] = kept_rows
    whats, owners, stacks, addresses, sizes = (
        (list(column) for column in zip(*calls, strict=True)) if calls else [[]] * 5
    )
    stack = np.array(stacks, np.int64)
    found = reused_memory(
        np.array(owners, np.int64),
        stack,
        np.array(addresses, np.uint64),
        np.array(sizes, np.int64),
        np.array([what == "allocate" for what in whats], bool),
        stack // 2,
    )
    assert found.tolist() == expected.tolist()
