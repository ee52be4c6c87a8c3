"""What calls wait for, and what they do to the order of work, from their names and recorded arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.evidence.program_order import access_uses, operations_of, timing_uses
from ffm.instrument.recording.layout import constant, record_type
from ffm.model.necessity.program import Action, Operations, Role, Scope
from tests.evidence.recorded_calls import columns_of


def order_of(*calls: dict[str, Any]) -> Operations:
    """Describe such calls."""
    return operations_of(columns_of(*calls))


def test_each_wait_covers_what_it_names() -> None:
    found = order_of(
        {"function": "cuEventRecord", "handle": 9, "stream": 4096},
        {"function": "cuCtxSynchronize"},
        {"function": "cuStreamSynchronize", "stream": 4096},
        {"function": "cuEventSynchronize", "handle": 9},
    )
    assert found.scope.tolist() == [Scope.NONE, Scope.CONTEXT, Scope.STREAM, Scope.EVENT]
    assert found.action.tolist() == [Action.RECORD, Action.NOTHING, Action.NOTHING, Action.NOTHING]


def test_what_only_enqueues_work_waits_for_none_that_anything_could_rely_on() -> None:
    kinds = (Kind.LAUNCH, Kind.HOST_FUNCTION, Kind.SET, Kind.TRANSFER)
    functions = [one for kind in kinds for one in load_catalogue().of_kind(kind)]
    found = order_of(*({"function": function.name, "waits": 1} for function in functions))
    enqueue = [function.kind in kinds[:2] or function.asynchronous for function in functions]
    assert (found.judged == ~np.array(enqueue)).all()
    assert ((found.scope == Scope.NONE) == enqueue).all()
    # What reaches host memory may wait for the copy, or for room for its bytes.
    flags = constant("FFM_OPERATION_HOST_SOURCE")
    uploads = order_of({"function": "cuMemcpyHtoDAsync_v2", "waits": 1, "flags": flags})
    assert uploads.scope.tolist() == [Scope.STAGING] and uploads.judged.all()


@pytest.mark.parametrize("recorded", ["cuCtxRecordEvent", "cuGreenCtxRecordEvent"])
def test_an_event_that_a_whole_context_recorded_covers_more_than_its_stream(recorded: str) -> None:
    found = order_of(
        {"function": "cuEventRecord", "handle": 9, "stream": 4096},
        {"function": "cuEventSynchronize", "handle": 9},
        {"function": recorded, "handle": 9},
        {"function": "cuEventSynchronize", "handle": 9},
    )
    assert [Scope(scope) for scope in found.scope.tolist()] == [Scope.NONE, Scope.EVENT, Scope.NONE, Scope.UNKNOWN]
    assert found.action[2] == Action.NOTHING


CREATED = {"function": "cuEventCreate", "destination": 9}
WAITED_FOR = {"function": "cuEventSynchronize", "handle": 9}
RECORDED = {"function": "cuEventRecord", "handle": 9, "stream": 4096}


@pytest.mark.parametrize("later", [[], [RECORDED]])
def test_a_wait_for_an_event_before_its_first_record_waits_for_nothing(later: list[dict[str, Any]]) -> None:
    found = order_of(CREATED, WAITED_FOR, *later)
    assert found.scope[1] == Scope.UNRECORDED and found.judged[1]


@pytest.mark.parametrize(
    "calls",
    [
        [WAITED_FOR, CREATED],  # its creation was not seen
        [CREATED, WAITED_FOR, RECORDED | {"thread": 1}],  # in another run, it may come first
        [CREATED, {"function": "cuLaunchKernelEx", "stream": 4096}, WAITED_FOR],  # an attribute may name the event
        [CREATED, {"function": "cuIpcGetEventHandle", "handle": 9}, WAITED_FOR],
        [CREATED, {"function": "cuCtxRecordEvent", "handle": 9}, WAITED_FOR],
        [CREATED, WAITED_FOR | {"result": 1}],
    ],
)
def test_what_an_event_covers_that_may_have_been_recorded_is_unknown(calls: list[dict[str, Any]]) -> None:
    found = order_of(*calls)
    assert [Scope(scope) for scope in found.scope[found.judged].tolist()] == [Scope.UNKNOWN]


def test_an_event_recorded_before_a_wait_is_no_unrecorded_one_afterwards() -> None:
    found = order_of(CREATED, WAITED_FOR, RECORDED, WAITED_FOR)
    assert [found.scope[1], found.scope[3]] == [Scope.UNRECORDED, Scope.EVENT]


def test_work_that_the_cpu_can_hold_back_is_told_from_other_work() -> None:
    found = order_of(
        {"function": "cuLaunchKernel", "stream": 4096},
        {"function": "cuStreamWaitValue32", "stream": 4096},
        {"function": "cuStreamWriteValue32", "stream": 4096},
        {"function": "cuLaunchHostFunc", "stream": 4096},
        {"function": "cuGraphLaunch", "stream": 4096},
        {"function": "cuGraphLaunch", "stream": 4096, "flags": constant("FFM_OPERATION_HOLDS")},
    )
    work, held = Action.WORK, Action.HOLD
    assert found.action.tolist() == [work, held, work, held, work, held]


def test_the_time_between_two_events_uses_the_last_record_of_each_before_the_query() -> None:
    record = {"function": "cuEventRecord", "stream": 4096}
    asked = {"function": "cuEventElapsedTime", "handle": 8, "source": 9}
    found = timing_uses(
        columns_of(
            record | {"handle": 8},
            record | {"handle": 9},
            record | {"handle": 8},
            record | {"handle": 9, "result": 1},  # fails
            record | {"handle": 7},
            asked,
            record | {"handle": 8, "start": 6_500},
            asked | {"start": 6_500},  # not yet recorded again
            asked | {"handle": 5},  # never recorded
            asked | {"result": 600},
        )
    )
    assert list(zip(found.operation.tolist(), found.time.tolist(), strict=True)) == [
        (2, 5_000),
        (1, 5_000),
        (2, 6_500),
        (1, 6_500),
        (1, 8_000),
    ]


def test_what_cannot_be_watched_any_longer_counts_as_used_then_or_at_any_time() -> None:
    accesses = np.zeros(3, record_type("ffm_access"))
    accesses["kind"] = [constant("FFM_ACCESS_READ"), *2 * [constant("FFM_ACCESS_UNWATCHED")]]
    accesses["flags"] = [0, 0, constant("FFM_ACCESS_PRESUMED")]
    downloads = columns_of({"function": "cuMemcpyDtoH_v2", "flags": constant("FFM_OPERATION_HOST_DESTINATION")})
    found = access_uses(downloads, accesses, np.zeros(3, np.int64), {})
    assert found.role.tolist() == [Role.RESULT, Role.UNWATCHED, Role.GIVEN_UP]
