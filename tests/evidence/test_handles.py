"""Which streams and events handles name: default streams, contexts, processes, and handles that are used again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.evidence.device_work import device_work
from ffm.evidence.handles import CONTEXT_SHIFT, NON_BLOCKING, events_of, streams_of
from ffm.evidence.program_order import operations_of
from ffm.model.device import DeviceWork
from ffm.model.necessity.program import StreamKind
from tests.evidence.recorded_calls import columns_of

A, B = 0x7000, 0x8000
MAKE_STREAM = {"function": "cuStreamCreate", "destination": A}
MAKE_EVENT = {"function": "cuEventCreate", "destination": A}
LAUNCH = {"function": "cuLaunchKernel", "stream": A}
RECORD = {"function": "cuEventRecord", "handle": A, "stream": B}
WAIT_ALL = {"function": "cuCtxSynchronize", "waits": 1, "wait": 10}
SECOND_CONTEXT = 1 << CONTEXT_SHIFT


def streams(*calls: dict[str, Any]) -> list[int]:
    return streams_of(columns_of(*calls))[0].tolist()


def events(*calls: dict[str, Any]) -> list[int]:
    columns = columns_of(*calls)
    return events_of(columns, columns["handle"] != 0).tolist()


def work_of(*calls: dict[str, Any]) -> DeviceWork:
    columns = columns_of(*calls)
    count = len(columns["start"])
    return device_work(columns, columns["thread"].astype(np.int32), np.full(count, -1))


def test_a_handle_names_another_stream_once_it_is_created_again() -> None:
    _, before, _, after, again = streams(MAKE_STREAM, LAUNCH, MAKE_STREAM, LAUNCH, LAUNCH)
    assert before != after == again


def test_a_handle_names_another_event_once_it_is_created_again() -> None:
    wait = {"function": "cuEventSynchronize", "handle": A}
    assert events(MAKE_EVENT, RECORD, wait, MAKE_EVENT, RECORD, wait) == [-1, 0, 0, -1, 1, 1]


def test_a_failed_creation_makes_nothing() -> None:
    _, before, _, after = streams(MAKE_STREAM, LAUNCH, {**MAKE_STREAM, "result": 2}, LAUNCH)
    assert before == after


def test_creating_an_event_does_not_renew_the_stream_with_the_same_handle() -> None:
    _, before, _, after = streams(MAKE_STREAM, LAUNCH, MAKE_EVENT, LAUNCH)
    assert before == after


def test_processes_share_no_stream_and_no_event() -> None:
    other = {"process": 1}
    first, second = streams(LAUNCH, {**LAUNCH, **other})
    assert first != second
    assert events(RECORD, {**RECORD, **other}) == [0, 1]
    before, _, after = streams(LAUNCH, {**MAKE_STREAM, **other}, LAUNCH)
    assert before == after


def test_default_streams_belong_to_a_context_and_others_do_not() -> None:
    default, elsewhere = {"function": "cuLaunchKernel"}, {"flags": SECOND_CONTEXT}
    first, second, named, same = streams(default, {**default, **elsewhere}, LAUNCH, {**LAUNCH, **elsewhere})
    assert first != second
    assert named == same
    own = {"function": "cuLaunchKernel", "stream": 2}
    assert len(set(streams(default, own, {**own, "thread": 1}, {**own, **elsewhere}))) == 4


@pytest.mark.parametrize(("flags", "kind"), [(0, StreamKind.BLOCKING), (NON_BLOCKING, StreamKind.INDEPENDENT)])
def test_a_stream_is_what_it_was_created_as_last(flags: int, kind: StreamKind) -> None:
    other = NON_BLOCKING - flags
    number, table = streams_of(
        columns_of({**MAKE_STREAM, "source": other}, LAUNCH, {**MAKE_STREAM, "source": flags}, LAUNCH)
    )
    assert table.kind[number[3]] == kind != table.kind[number[1]]


def test_the_kind_of_a_stream_whose_creation_was_not_seen_is_unknown() -> None:
    number, table = streams_of(columns_of(LAUNCH, {"function": "cuLaunchKernel"}))
    assert [StreamKind(table.kind[stream]) for stream in number] == [StreamKind.INDEPENDENT, StreamKind.LEGACY]


def test_work_on_a_stream_created_again_need_not_wait_for_work_of_the_one_before() -> None:
    """`cuStreamDestroy` returns at once; the work that is left goes on."""
    work = work_of(MAKE_STREAM, LAUNCH, MAKE_STREAM, LAUNCH)
    assert work.stream[1] != work.stream[3]
    assert work.streams == 2


@pytest.mark.parametrize(
    "wait",
    [WAIT_ALL, {"function": "cuStreamSynchronize", "stream": A, "waits": 1, "wait": 10}],
    ids=["for everything", "for the stream"],
)
def test_streams_that_follow_each_other_after_a_wait_are_one_in_the_model(wait: dict[str, Any]) -> None:
    """A program that creates a stream in each iteration would need passes over all of them at each wait."""
    assert work_of(*[MAKE_STREAM, LAUNCH, wait] * 20).streams == 1


def test_a_wait_for_another_stream_does_not_end_the_work_of_this_one() -> None:
    elsewhere = {"function": "cuStreamSynchronize", "stream": B, "waits": 1, "wait": 10}
    work = work_of(MAKE_STREAM, LAUNCH, elsewhere, MAKE_STREAM, LAUNCH)
    assert work.stream[1] != work.stream[4]


def test_the_model_has_one_legacy_stream_in_each_process() -> None:
    default = {"function": "cuLaunchKernel"}
    work = work_of(default, {**default, "flags": SECOND_CONTEXT}, {**default, "stream": 2}, LAUNCH)
    assert work.stream[0] == work.stream[1] == work.legacy[0]
    assert len(set(work.stream.tolist())) == 3


CALLS = st.lists(
    st.builds(
        dict,
        function=st.sampled_from(
            ["cuStreamCreate", "cuEventCreate", "cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent"]
        ),
        stream=st.sampled_from([0, 1, 2, A, B]),
        handle=st.sampled_from([A, B]),
        destination=st.sampled_from([A, B]),
        flags=st.sampled_from([0, SECOND_CONTEXT]),
        thread=st.integers(0, 1),
        result=st.sampled_from([0, 0, 0, 2]),
    ),
    min_size=1,
    max_size=12,
)


@given(CALLS)
def test_identity_follows_each_call_in_turn(calls: list[dict[str, Any]]) -> None:
    made: dict[tuple[str, int], int] = {}
    expected_streams: list[object] = []
    expected_events: list[object] = []
    for call in calls:
        if call["function"] in ("cuStreamCreate", "cuEventCreate") and call["result"] == 0:
            key = (call["function"], call["destination"])
            made[key] = made.get(key, 0) + 1
        stream, context = call["stream"], call["flags"]
        if stream in (0, 1):
            expected_streams.append(("legacy", context))
        elif stream == 2:
            expected_streams.append(("own", call["thread"], context))
        else:
            expected_streams.append((stream, made.get(("cuStreamCreate", stream), 0)))
        expected_events.append((call["handle"], made.get(("cuEventCreate", call["handle"]), 0)))
    assert same_partition(streams(*calls), expected_streams)
    assert same_partition(events(*calls), expected_events)
    order = operations_of(columns_of(*calls))
    assert order.stream.tolist() == streams(*calls)


def same_partition(numbers: list[int], names: list[object]) -> bool:
    """Return whether two lists say the same of which places are equal."""
    return len(set(zip(numbers, names, strict=True))) == len(set(numbers)) == len(set(names))
