"""What a transfer of the same bytes to the same place repeats, by what is known of the place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ffm.model.transfers import Contents, Parts, Repetition, repeated_transfers

NO_PARTS = Parts(
    content=np.zeros(0, np.int64),
    destination=np.zeros(0, np.uint64),
    bytes=np.zeros(0, np.int64),
    hash_low=np.zeros(0, np.uint64),
    hash_high=np.zeros(0, np.uint64),
)


def twice(*, download: bool = False) -> Contents:
    """Return two copies of the same bytes to one place, the first of which was seen to be needed."""
    return Contents(
        time=np.array([10, 20]),
        download=np.array([download, download]),
        destination=np.array([64, 64], np.uint64),
        shape=np.array([1, 1]),
        bytes=np.array([8, 8]),
        hash_low=np.array([3, 3], np.uint64),
        hash_high=np.array([4, 4], np.uint64),
        destination_held=np.array([False, False]),
        destination_known=np.array([True, True]),
        allocation=np.array([0, 0]),
        defined=np.array([False, True]),
        last_write=np.array([0, 0 if download else 10]),
    )


def second(contents: Contents) -> Repetition:
    return Repetition(repeated_transfers(contents, NO_PARTS).kind[1])


@pytest.mark.parametrize("download", [False, True])
def test_a_place_that_was_looked_at_tells(download: bool) -> None:
    contents = twice(download=download)
    assert second(contents) is Repetition.REPEAT
    assert second(replace(contents, destination_held=np.array([False, True]))) is Repetition.NO_OP


@pytest.mark.parametrize("download", [False, True])
def test_a_place_that_was_not_looked_at_may_hold_the_bytes(download: bool) -> None:
    contents = replace(twice(download=download), destination_known=np.array([True, False]))
    assert second(contents) is Repetition.REPEAT_UNSEEN


def test_a_place_that_was_written_or_allocated_again_need_not_be_looked_at() -> None:
    unseen = replace(twice(), destination_known=np.array([True, False]))
    assert second(replace(unseen, last_write=np.array([0, 15]))) is Repetition.REPEAT
    assert second(replace(unseen, allocation=np.array([0, 1]))) is Repetition.REPEAT
