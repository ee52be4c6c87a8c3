"""How much of what sites download the CPU touches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.transfers.downloads import download_uses, unread_downloads, watched_to_their_end
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.reader import Recording
from ffm.results.documents.site import DownloadUse

SITES = 4


@given(
    st.lists(st.integers(0, SITES - 1), max_size=12),
    st.lists(st.tuples(st.integers(0, SITES - 1), st.integers(0, 64), st.integers(0, 64)), max_size=12),
)
def test_each_site_sums_its_own_downloads(calls: list[int], followed: list[tuple[int, int, int]]) -> None:
    """Stage 2 made `calls`; stage 3 followed downloads of 64 bytes that were touched from one byte to another."""
    columns = {
        "stack": np.array(calls, np.int64),
        "function": np.full(len(calls), load_catalogue()["cuMemcpyDtoH_v2"].index),
        "flags": np.full(len(calls), constant("FFM_OPERATION_HOST_DESTINATION")),
    }
    spans = [(site, min(one, other), max(one, other)) for site, one, other in followed]
    table = {
        "stack": np.array([site for site, _, _ in spans], np.int64),
        "bytes": np.full(len(spans), 64, np.int64),
        "touched": np.array([last - first for _, first, last in spans], np.int64),
        "first": np.array([first for _, first, _ in spans], np.int64),
        "last": np.array([last for _, _, last in spans], np.int64),
    }
    found = download_uses(columns, table, "pages")
    assert found.keys() == set(calls)
    for site, use in found.items():
        own = [(first, last) for other, first, last in spans if other == site]
        touched = [(first, last) for first, last in own if last > first]
        assert use == DownloadUse(
            occurrences=len(own),
            of=max(calls.count(site), len(own)),
            watch="pages",
            bytes=64 * len(own),
            touched_bytes=sum(last - first for first, last in touched),
            first=min((first for first, _ in touched), default=0),
            last=max((last for _, last in touched), default=0),
            untouched=len(own) - len(touched),
        )


@pytest.mark.parametrize(
    ("extents", "accesses", "finished", "unread"),
    [
        ([("INTACT", 64)], [], 0, True),
        ([("INTACT", 40), ("INTACT", 24)], [], 0, True),
        ([("INTACT", 64), ("FOLLOWED", 64)], ["RELEASED"], 0, True),
        ([("INTACT", 40)], [], 0, False),
        ([("FOLLOWED", 64)], [], 0, False),
        ([("INTACT", 64), ("FOLLOWED", 64), ("TOUCHED", 1)], [], 0, False),
        ([("INTACT", 64), ("LOST", 64)], [], 0, False),
        ([("INTACT", 64)], ["READ"], 0, False),
        ([("INTACT", 64)], ["UNWATCHED"], 0, False),
        ([("INTACT", 64)], [], 1, False),
    ],
)
def test_a_download_is_unread_only_if_any_touch_of_all_of_it_would_have_been_recorded(
    extents: list[tuple[str, int]], accesses: list[str], finished: int, unread: bool
) -> None:
    columns = {"thread": np.zeros(2, np.int32), "number": np.arange(2), "start": np.arange(2), "bytes": np.full(2, 64)}
    rows = np.zeros(len(extents), record_type("ffm_extent"))
    rows["operation"] = 1
    rows["kind"] = [constant(f"FFM_EXTENT_{kind}") for kind, _ in extents]
    rows["bytes"] = [size for _, size in extents]
    touches = np.zeros(len(accesses), record_type("ffm_access"))
    touches["operation"] = 1
    touches["kind"] = [constant(f"FFM_ACCESS_{kind}") for kind in accesses]
    recording = cast(Recording, SimpleNamespace(extents=rows, finished=finished, stretches=[], resumptions=[]))
    assert unread_downloads(columns, recording, touches).tolist() == [False, unread]


def test_a_download_that_the_next_one_overwrote_before_any_wait_was_watched_to_its_end() -> None:
    columns = {"thread": np.zeros(4, np.int32), "number": np.arange(4), "bytes": np.full(4, 64)}
    rows = np.zeros(3, record_type("ffm_extent"))
    rows["operation"], rows["bytes"] = [1, 2, 2], [64, 64, 16]
    rows["kind"] = [constant(f"FFM_EXTENT_{kind}") for kind in ("INTACT", "FOLLOWED", "TOUCHED")]
    recording = cast(Recording, SimpleNamespace(extents=rows))
    found, used = watched_to_their_end(columns, recording, np.array([False, True, False, False]))
    assert found.tolist() == [1, 2]
    assert (used["bytes"].tolist(), used["touched"].tolist()) == ([64, 64], [0, 16])
