"""Memory that must be pinned: each page once, for those that use it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.pinning import PAGE, Buffers, buffers_to_pin
from tests.examples import examples


def found(*transfers: tuple[int, int, int, int]) -> list[Buffers]:
    """From process, address, bytes and site of each transfer."""
    process, first, size, site = np.array(transfers, np.int64).reshape(-1, 4).T
    return buffers_to_pin(process, first.astype(np.uint64), size, site)


def test_a_buffer_that_is_sent_again_is_pinned_once() -> None:
    assert found(*[(0, 10 * PAGE, 3 * PAGE, 7)] * 5) == [Buffers((7,), 3 * PAGE)]


def test_whole_pages_are_pinned() -> None:
    assert found((0, 10 * PAGE - 1, 2, 0)) == [Buffers((0,), 2 * PAGE)]


def test_sites_share_what_overlaps() -> None:
    """Of two sites that use one buffer, either pays for it."""
    overlap = [(0, 10 * PAGE, 3 * PAGE, 0), (0, 12 * PAGE, 3 * PAGE, 1), (0, 90 * PAGE, PAGE, 1)]
    assert set(map(str, found(*overlap))) == {str(Buffers((0, 1), 5 * PAGE)), str(Buffers((1,), PAGE))}


def test_each_piece_of_memory_is_pinned_by_a_call_of_its_own() -> None:
    assert found((0, 10 * PAGE, PAGE, 0), (0, 90 * PAGE, PAGE, 0), (0, 90 * PAGE, PAGE, 0)) == [
        Buffers((0,), 2 * PAGE, 2)
    ]


def test_processes_have_memory_of_their_own() -> None:
    assert found((0, 10 * PAGE, PAGE, 0), (1, 10 * PAGE, PAGE, 0)) == [Buffers((0,), 2 * PAGE, 2)]


def test_many_processes_and_the_last_addresses_stay_apart() -> None:
    last = 2**52 - 1
    processes, pages = np.array([0, 5000, 5000]), np.array([0, 0, last], np.uint64)
    (found,) = buffers_to_pin(processes, pages * np.uint64(PAGE), np.full(3, PAGE), np.zeros(3, np.int64))
    assert found == Buffers((0,), 3 * PAGE, 3)


def test_nothing_sent_is_nothing_to_pin() -> None:
    assert found() == []


numbers = st.integers(0, 40 * PAGE)


@given(st.lists(st.tuples(st.integers(0, 2), numbers, st.integers(0, 5 * PAGE), st.integers(0, 3)), max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_each_page_counts_once(transfers: list[tuple[int, int, int, int]]) -> None:
    pages = {
        (process, page)
        for process, first, size, _ in transfers
        for page in range(first // PAGE, (first + max(size, 1) - 1) // PAGE + 1)
    }
    buffers = found(*transfers)
    assert sum(buffer.bytes for buffer in buffers) == PAGE * len(pages)
    assert {site for buffer in buffers for site in buffer.sites} == {site for *_, site in transfers}
