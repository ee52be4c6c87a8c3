"""Which frees and allocations disappear together if memory is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.hoisting import LEAST_KEPT_BYTES, reused_memory, without_keeping


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
