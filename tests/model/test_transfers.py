"""What a transfer of the same bytes to the same place repeats, by what is known of the place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.transfers import REPEATED, Contents, Parts, Repetition, repeated_transfers

FROM_ELSEWHERE = (Repetition.NO_OP_FROM_ELSEWHERE, Repetition.REPEAT_FROM_ELSEWHERE)

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
        source=np.array([128, 128], np.uint64),
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


ELSEWHERE = np.array([128, 256], np.uint64)


@pytest.mark.parametrize(
    ("held", "known", "found"),
    [
        (True, True, Repetition.NO_OP_FROM_ELSEWHERE),
        (False, True, Repetition.REPEAT_FROM_ELSEWHERE),
        (False, False, Repetition.REPEAT_FROM_ELSEWHERE),
    ],
)
def test_equal_bytes_of_an_upload_may_be_other_data_if_they_lie_elsewhere(
    held: bool, known: bool, found: Repetition
) -> None:
    contents = replace(
        twice(),
        source=ELSEWHERE,
        destination_held=np.array([False, held]),
        destination_known=np.array([True, known]),
    )
    assert second(contents) is found


def test_a_download_tells_what_another_place_holds() -> None:
    contents = replace(twice(download=True), source=ELSEWHERE, destination_held=np.array([False, True]))
    assert second(contents) is Repetition.COPY


COPIES = st.lists(
    st.tuples(*(st.integers(0, 2) for _ in range(3)), st.booleans(), st.booleans()), min_size=1, max_size=12
)


@given(COPIES)
def test_where_uploads_come_from_changes_only_whether_they_are_the_same_data(copies: list[tuple[int, ...]]) -> None:
    """Nothing becomes needed or removable, and what comes from one place only is never called other data."""
    content, source, destination, held, known = np.array(copies).T
    rows = np.arange(len(copies))
    contents = Contents(
        time=rows * 10,
        download=np.zeros(len(rows), bool),
        source=source.astype(np.uint64),
        destination=destination.astype(np.uint64),
        shape=np.ones(len(rows), np.int64),
        bytes=np.full(len(rows), 8),
        hash_low=content.astype(np.uint64),
        hash_high=content.astype(np.uint64),
        destination_held=(held & known).astype(bool),
        destination_known=known.astype(bool),
        allocation=destination,
        defined=rows > 0,
        last_write=rows * 10 - 5,
    )
    found = repeated_transfers(contents, NO_PARTS)
    alone = repeated_transfers(replace(contents, source=np.zeros(len(rows), np.uint64)), NO_PARTS)
    other = np.isin(found.kind, FROM_ELSEWHERE)
    assert not np.isin(alone.kind, FROM_ELSEWHERE).any()
    assert (np.isin(found.kind, REPEATED) == np.isin(alone.kind, REPEATED)).all()
    assert (found.kind[~other] == alone.kind[~other]).all()
    assert (found.first == alone.first).all()
