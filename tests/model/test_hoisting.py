"""Which frees and allocations disappear together if memory is kept."""

from __future__ import annotations

import numpy as np

from ffm.model.hoisting import reused_memory


def partners(*rows: tuple[str, int, int], process: list[int] | None = None) -> list[int]:
    """Rows are (`allocate` or `free`, call stack, address)."""
    return reused_memory(
        np.array(process or [0] * len(rows)),
        np.array([stack for _, stack, _ in rows]),
        np.array([address for _, _, address in rows], np.uint64),
        np.array([what == "allocate" for what, _, _ in rows]),
    ).tolist()


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
