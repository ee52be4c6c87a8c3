"""Which uses of pinned memory a library guards itself: it asks events before it hands out the memory again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ffm.evidence.memory.recycled import recycled_uses
from ffm.evidence.program_order import NOT_READY, operations_of
from ffm.instrument.recording.names import RecordedModule
from ffm.instrument.recording.reader import Recording
from ffm.instrument.recording.stacks import RecordedStack
from ffm.model.necessity.program import Role, Uses
from tests.evidence.recorded_calls import columns_of

RUNTIME, LIBRARY, OTHER, PROGRAM = range(4)
FILES = (
    "/usr/local/cuda/lib64/libcudart.so.12",
    "/usr/lib/python3/dist-packages/torch/lib/libtorch_cuda.so",
    "/usr/lib/python3/dist-packages/torch/lib/libc10_cuda.so",
    "/home/user/train",
)
OUTSIDE = [(PROGRAM, 100)]
TAKE = [(LIBRARY, 20), *OUTSIDE]
"""The call of the function that hands out memory, and what is around it."""
ALLOCATE, ASK, RECORD, COPY, WAIT, WAIT_OF_PROGRAM, RECORD_IN_TAKE, ASK_ELSEWHERE = range(1, 9)
STACKS = {
    ALLOCATE: [(RUNTIME, 1), (LIBRARY, 11), *TAKE],
    ASK: [(RUNTIME, 2), (LIBRARY, 12), (LIBRARY, 13), *TAKE],
    RECORD: [(RUNTIME, 3), (LIBRARY, 30), (PROGRAM, 101)],
    COPY: [(RUNTIME, 4), (LIBRARY, 40), (PROGRAM, 102)],
    WAIT: [(RUNTIME, 5), (LIBRARY, 41), (PROGRAM, 102)],
    WAIT_OF_PROGRAM: [(RUNTIME, 5), (OTHER, 50), (PROGRAM, 103)],
    RECORD_IN_TAKE: [(RUNTIME, 3), (LIBRARY, 14), *TAKE],
    ASK_ELSEWHERE: [(RUNTIME, 2), (OTHER, 12), (OTHER, 13), *OUTSIDE],
}
STREAM, BYTES = 4096, 1024
FIRST, SECOND = 0x10000, 0x20000

Call = dict[str, Any]


def allocate(block: int) -> Call:
    return {"function": "cuMemHostAlloc", "destination": block, "bytes": BYTES, "stack": ALLOCATE}


def send(block: int, **other: Any) -> Call:
    return {
        "function": "cuMemcpyHtoDAsync_v2",
        "source": block,
        "bytes": BYTES,
        "stream": STREAM,
        "stack": COPY,
        **other,
    }


def record(event: int, **other: Any) -> Call:
    return {"function": "cuEventRecord", "handle": event, "stream": STREAM, "stack": RECORD, **other}


def ask(event: int, **other: Any) -> Call:
    return {"function": "cuEventQuery", "handle": event, "stack": ASK, **other}


BY_PROGRAM = {"function": "cuStreamSynchronize", "stream": STREAM, "waits": 1, "stack": WAIT_OF_PROGRAM}
BY_LIBRARY = {**BY_PROGRAM, "stack": WAIT}


def guarded(calls: list[Call], used: int, *, files: tuple[str, ...] = FILES, address: int = FIRST) -> bool:
    """Return whether the use of what a call sent, after all calls, is guarded."""
    columns = columns_of(*({"stack": 0, **call} for call in calls))
    recording = SimpleNamespace(
        operations={name: columns[name] for name in ("thread", "number", "stack")},
        stacks=[RecordedStack("", cast(Any, STACKS.get(number, []))) for number in range(1 + max(STACKS))],
        modules=[RecordedModule(path, "", 0) for path in files],
        executable=files[PROGRAM],
        path=Path(),
    )
    time = np.array([1_000 * len(calls)], np.int64)
    uses = Uses(np.array([used]), time, np.array([Role.SOURCE], np.uint8), np.zeros(1, np.int64))
    found = recycled_uses(
        columns, operations_of(columns), uses, np.array([address], np.uint64), cast(Recording, cast(Any, recording))
    )
    return bool(found[0])


def test_memory_is_handed_out_again_after_its_event() -> None:
    assert guarded([allocate(FIRST), send(FIRST), record(1), BY_PROGRAM, ask(1)], used=1)


@pytest.mark.parametrize(
    "calls",
    [
        [allocate(FIRST), send(FIRST), BY_PROGRAM],
        [allocate(FIRST), send(FIRST), record(1), BY_PROGRAM],
        [allocate(FIRST), send(FIRST), record(1), BY_PROGRAM, ask(1, result=NOT_READY)],
        [allocate(FIRST), send(FIRST), record(1), BY_PROGRAM, ask(1, stack=ASK_ELSEWHERE)],
        [allocate(FIRST), send(FIRST), record(1, stack=RECORD_IN_TAKE), BY_PROGRAM, ask(1)],
        [allocate(FIRST), send(FIRST), record(1, stream=8192), BY_PROGRAM, ask(1)],
    ],
    ids=["no event", "not asked", "not done", "another library asks", "no allocator", "another stream"],
)
def test_what_no_event_is_known_for_is_not_guarded(calls: list[Call]) -> None:
    assert not guarded(calls, used=1)


def test_memory_that_is_kept_is_not_guarded_by_the_event_for_other_memory() -> None:
    turn = [send(FIRST), send(SECOND), record(1), BY_PROGRAM, ask(1)]
    calls = [allocate(FIRST), allocate(SECOND), *turn, *turn]
    assert not guarded(calls, used=2)
    assert not guarded(calls, used=3)


def test_as_many_events_as_uses_are_one_for_each() -> None:
    turn = [send(FIRST), send(SECOND), record(1), record(2), BY_PROGRAM, ask(1), ask(2)]
    calls = [allocate(FIRST), allocate(SECOND), *turn, *turn]
    assert guarded(calls, used=2)
    assert guarded(calls, used=9)
    assert guarded(calls, used=10, address=SECOND)


def test_memory_that_was_sent_twice_before_it_was_given_back_has_one_event() -> None:
    assert guarded([allocate(FIRST), send(FIRST), send(FIRST), record(1), BY_PROGRAM, ask(1)], used=1)


def test_more_events_than_uses_are_for_something_else() -> None:
    assert not guarded([allocate(FIRST), record(1), send(FIRST), record(2), BY_PROGRAM, ask(1), ask(2)], used=2)


def test_a_copy_for_which_the_library_waits_has_no_event() -> None:
    calls = [allocate(FIRST), allocate(SECOND), send(SECOND), BY_LIBRARY]
    assert guarded([*calls, send(FIRST), record(1), BY_PROGRAM, ask(1)], used=4)
    calls[-1] = BY_PROGRAM
    assert not guarded([*calls, send(FIRST), record(1), BY_PROGRAM, ask(1)], used=4)


def test_the_programs_own_pools_and_memory_of_kernels_are_not_judged() -> None:
    calls = [allocate(FIRST), send(FIRST), record(1), BY_PROGRAM, ask(1)]
    assert not guarded(calls, used=1, files=(*FILES[:LIBRARY], "/home/user/libpool.so", *FILES[OTHER:]))
    assert not guarded([allocate(FIRST), send(FIRST, function="cuLaunchKernel"), *calls[2:]], used=1)
