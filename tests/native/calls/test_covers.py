"""What native code decides that a call has waited for, against what `ffm.evidence` says of the recorded operation.

The watch protects memory until it sees a wait that covers the work on it. If it took a wait to cover more than the
verdicts do, it would stop watching too early, and a wait that is needed would look needless.
"""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.driver.catalogue import DriverFunction, load_catalogue
from ffm.driver.generate import include_text
from ffm.driver.vocabulary import Awaits, Effect, Kind
from ffm.evidence.program_order import NOT_READY, operations_of
from ffm.instrument.recording.layout import constant, record_type
from ffm.model.necessity.program import Action, Operations, Scope
from tests.conftest import cuda_include
from tests.examples import examples
from tests.native.layers import includes_of, sources_of

KINDS = (Kind.SYNCHRONIZATION, Kind.QUERY, Kind.TRANSFER, Kind.SET, Kind.FREE, Kind.LAUNCH, Kind.HOST_FUNCTION,
         Kind.MIGRATION, Kind.ORDER, Kind.MODULE)  # fmt: skip
FUNCTIONS = [
    function
    for function in load_catalogue().functions
    if function.kind in KINDS or function.effect is Effect.SHARE_EVENT
]
OF_EVENTS = [
    f
    for f in FUNCTIONS
    if f.awaits is Awaits.EVENT or f.effect in (Effect.RECORD_EVENT, Effect.WAIT_EVENT, Effect.SHARE_EVENT)
]

STREAMS = (0, 1, 2, 0x1000, 0x2000)
"""Default streams by all their names, and two that were created."""

EVENTS = (0x10000, 0x20000, 0x30000)
OPERATION = record_type("ffm_operation")


class Ordered(ctypes.Structure):
    """`ffm_ordered` of waits.h."""

    _fields_ = (("stream", ctypes.c_uint64), ("before", ctypes.c_uint64), ("since", ctypes.c_uint64))


class Cover(ctypes.Structure):
    """`ffm_cover` of waits.h."""

    _fields_ = (
        ("everything", ctypes.c_bool),
        ("context", ctypes.c_uint32),
        ("stream", ctypes.c_uint64),
        ("before", ctypes.c_uint64),
        ("behind_count", ctypes.c_uint32),
        ("behind", Ordered * 16),
    )

    def covers(self, context: int, stream: int, issued: int) -> bool:
        """As `ffm_covers`."""
        if ((self.everything and self.context == context) or self.stream == stream) and issued < self.before:
            return True
        return any(one.stream == stream and issued < one.before for one in self.behind[: self.behind_count])


@dataclass(frozen=True)
class Called:
    """A call of a random program."""

    function: DriverFunction
    stream: int
    event: int
    thread: int
    context: int
    waits: int
    result: int
    to_host: bool
    records: bool
    stack: int


calls = st.builds(
    Called,
    st.sampled_from(FUNCTIONS) | st.sampled_from(OF_EVENTS),
    st.sampled_from(STREAMS),
    st.sampled_from(EVENTS),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 2),
    st.sampled_from([0, 0, 0, NOT_READY]),
    st.booleans(),
    st.sampled_from([False] * 9 + [True]),
    st.integers(0, 1),
)


def recorded(program: list[Called]) -> np.ndarray:
    """Return the program's operations as the collector records them, and the columns that are added on reading."""
    rows = np.zeros(len(program), OPERATION)
    for number, call in enumerate(program):
        function = call.function
        flags = call.context << constant("FFM_OPERATION_CONTEXT_SHIFT")
        flags |= call.to_host * constant("FFM_OPERATION_HOST_DESTINATION")
        flags |= (call.records and function.kind is Kind.LAUNCH) * constant("FFM_OPERATION_RECORDS")
        row = rows[number]
        row["function"], row["flags"], row["waits"], row["result"] = function.index, flags, call.waits, call.result
        row["start"], row["duration"], row["wait"] = 1000 * (number + 1), 500, 100 * call.waits
        row["stream"] = call.stream if function.stream >= 0 else 0
        row["handle"] = call.event if function.handle >= 0 else 0
        row["stack"] = call.stack
    return rows


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("covers")
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    library = folder / "libcovers.so"
    sources = [source for source in sources_of("calls") if source.name != "waits.c"]  # covers.c includes it
    subprocess.run(
        [
            "gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            f"-I{folder}", *includes_of("calls"), "-isystem", str(cuda_include()), "-o", str(library),
            str(Path(__file__).with_name("covers.c")), *map(str, sources), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    loaded = ctypes.CDLL(str(library))
    loaded.after_call.restype = ctypes.c_bool
    loaded.stream_of.restype = ctypes.c_uint64
    return loaded


def native_covers(native: ctypes.CDLL, program: list[Called], rows: np.ndarray) -> np.ndarray:
    """Return, shape (operations, operations), what each one has waited for of those before it."""
    native.begin_program()
    covered = np.zeros((len(rows), len(rows)), bool)
    for number, call in enumerate(program):
        cover = Cover()
        if not native.after_call(rows[number:].ctypes.data_as(ctypes.c_void_p), call.thread, ctypes.byref(cover)):
            continue
        for before in range(number):
            stream = native.stream_of(rows[before:].ctypes.data_as(ctypes.c_void_p), program[before].thread)
            covered[number, before] = cover.covers(program[before].context, stream, int(rows["start"][before]))
    return covered


def operations(program: list[Called], rows: np.ndarray) -> Operations:
    columns = {name: rows[name] for name in rows.dtype.names}
    columns["thread"] = np.array([call.thread for call in program], np.int64)
    columns["process"] = np.zeros(len(rows), np.int64)
    return operations_of(columns)


def python_covers(found: Operations) -> np.ndarray:
    """Return the same from scopes, and from the order that the device keeps by events."""
    rows = np.arange(len(found.scope))
    covered = np.zeros((len(rows), len(rows)), bool)
    behind = {stream: np.zeros(len(rows), bool) for stream in found.stream.tolist()}
    recorded_behind: dict[int, np.ndarray] = {}
    for number, scope in enumerate(found.scope):
        earlier, stream, event = rows < number, int(found.stream[number]), int(found.event[number])
        if scope == Scope.CONTEXT:
            covered[number] = earlier & (found.context == found.context[number])
        elif scope == Scope.STREAM:
            covered[number] = (earlier & (found.stream == stream)) | behind[stream]
        elif scope == Scope.EVENT and event in recorded_behind:
            covered[number] = recorded_behind[event]
        if found.action[number] == Action.RECORD:
            recorded_behind[event] = (earlier & (found.stream == stream)) | behind[stream]
        elif found.action[number] == Action.WAIT_EVENT and event in recorded_behind:
            behind[stream] = behind[stream] | recorded_behind[event]
    return covered


def only_learned(call: Called) -> bool:
    """Whether a call did not wait, but found work to be over: a fact for the watch, but nothing to rely on."""
    function = call.function
    return function.kind is Kind.QUERY or (call.waits == 0 and function.kind is Kind.TRANSFER)


def is_seen_anew(call: Called, program: list[Called], number: int) -> bool:
    """Whether a call waits for an event whose last record, on a stream, was seen, though not all of its records or
    those of others were. Verdicts are more careful then.
    """
    if call.function.awaits is not Awaits.EVENT:
        return False
    return any(
        other.records or other.function.effect in (Effect.SHARE_EVENT, Effect.RECORD_CONTEXT)
        for other in (*program[:number], *program[number + 1 :])
    )


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(calls, min_size=2, max_size=14))
def test_native_code_and_verdicts_agree_on_what_a_call_waits_for(native: ctypes.CDLL, program: list[Called]) -> None:
    rows = recorded(program)
    found = operations(program, rows)
    here, there = native_covers(native, program, rows), python_covers(found)
    for number, call in enumerate(program):
        if not only_learned(call) and not is_seen_anew(call, program, number):
            assert not (here[number] & ~there[number]).any(), f"the watch takes {call} to cover more"
        if call.function.kind not in (Kind.MODULE, Kind.CONTEXT):  # of which the watch is not sure
            assert not (there[number] & ~here[number]).any(), f"the watch takes {call} to cover less"


def called(name: str, **changes: object) -> Called:
    plain = Called(load_catalogue()[name], 0x1000, EVENTS[0], 0, 0, 0, 0, False, False, 0)
    return replace(plain, **changes)


ORDERED = [
    called("cuMemcpyDtoHAsync_v2"),
    called("cuEventRecord"),
    called("cuStreamWaitEvent", stream=0x2000),
    called("cuStreamSynchronize", stream=0x2000),
]
"""The device orders a download before the work of another stream, which is waited for."""


def test_a_wait_covers_what_the_device_orders_before_its_stream(native: ctypes.CDLL) -> None:
    assert native_covers(native, ORDERED, recorded(ORDERED))[3, 0]
    later = [*ORDERED[:3], called("cuMemcpyDtoHAsync_v2"), ORDERED[3]]
    assert native_covers(native, later, recorded(later))[4, [0, 3]].tolist() == [True, False]
    third = [
        *ORDERED[:3],
        called("cuEventRecord", stream=0x2000, event=EVENTS[1]),
        called("cuEventSynchronize", event=EVENTS[1]),
    ]
    assert native_covers(native, third, recorded(third))[4, 0]


@pytest.mark.parametrize(
    ("place", "end"),
    [
        (2, called("cuEventDestroy_v2")),
        (3, called("cuStreamDestroy_v2", event=0x2000)),
        (3, called("cuDevicePrimaryCtxReset_v2")),
    ],
)
def test_what_has_the_handle_of_an_ended_stream_or_event_orders_nothing(
    native: ctypes.CDLL, place: int, end: Called
) -> None:
    program = [*ORDERED[:place], end, *ORDERED[place:]]
    assert not native_covers(native, program, recorded(program))[4, 0]


def test_a_record_during_the_wait_orders_nothing(native: ctypes.CDLL) -> None:
    rows = recorded(ORDERED)
    rows["duration"][1] = rows["start"][2] - rows["start"][1] + 1
    assert not native_covers(native, ORDERED, rows)[3, 0]


def test_a_wait_that_began_before_the_order_covers_nothing_of_it(native: ctypes.CDLL) -> None:
    rows = recorded(ORDERED)
    rows["duration"][2] = rows["start"][3] - rows["start"][2] + 1
    assert not native_covers(native, ORDERED, rows)[3, 0]


@pytest.mark.parametrize("unseen", ["cuGraphLaunch", "cuIpcGetEventHandle"])
def test_no_wait_covers_an_event_that_may_be_recorded_unseen(native: ctypes.CDLL, unseen: str) -> None:
    recorded_once = [called("cuMemcpyDtoHAsync_v2"), called("cuEventRecord"), called("cuEventSynchronize")]
    assert native_covers(native, recorded_once, recorded(recorded_once))[2, 0]
    again = [*recorded_once[:2], called(unseen, records=True), recorded_once[2]]
    assert not native_covers(native, again, recorded(again))[3].any()


@pytest.mark.parametrize("name", ["cuMemcpyHtoDAsync_v2", "cuMemPrefetchAsync"])
def test_an_upload_or_prefetch_that_waited_covers_nothing(native: ctypes.CDLL, name: str) -> None:
    """It may have waited for room that the bytes of another stream took."""
    plain = Called(load_catalogue()["cuMemcpyDtoHAsync_v2"], 0x1000, 0, 0, 0, 0, 0, True, False, 0)
    program = [plain, replace(plain, function=load_catalogue()[name], waits=1, to_host=False)]
    rows = recorded(program)
    assert not native_covers(native, program, rows).any()
    assert not python_covers(operations(program, rows)).any()
