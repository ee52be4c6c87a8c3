"""Whatever memory work uses: without the waits said to be spare, what was in order stays so if it shares memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from ffm.model.compiled import PLAIN_ROWS
from ffm.model.necessity.program import (
    Action,
    Handovers,
    Operations,
    Scope,
    Side,
    StreamKind,
    Streams,
    UsedMemory,
    Uses,
)
from ffm.model.necessity.reasons import Reason
from ffm.model.necessity.rules import needed_synchronizations
from tests.examples import examples

MEMORIES = 2
LEGACY, BLOCKING, FIRST, SECOND = range(4)
KINDS = [StreamKind.LEGACY, StreamKind.BLOCKING, StreamKind.INDEPENDENT, StreamKind.INDEPENDENT]
ALL = range(len(KINDS))
SCOPES = {"device": Scope.CONTEXT, "stream": Scope.STREAM, "event": Scope.EVENT}
ACTIONS = {"work": Action.WORK, "record": Action.RECORD, "order": Action.WAIT_EVENT}
NO_USES = Uses(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64))


@dataclass(frozen=True)
class Step:
    """What is done on a stream, and which memory it reads and writes if it is work; None for any memory."""

    what: str
    stream: int
    reads: frozenset[int] | None = frozenset()
    writes: frozenset[int] = frozenset()


memories = st.frozensets(st.integers(0, MEMORIES - 1), max_size=1)
streams = st.sampled_from([SECOND, FIRST, SECOND, BLOCKING, LEGACY])
steps = st.one_of(
    *[st.builds(Step, st.just("work"), streams, memories, memories)] * 3,
    st.builds(Step, st.just("work"), streams, st.none()),
    *[st.builds(Step, st.just("stream"), streams)] * 2,
    st.builds(Step, st.sampled_from(["record", "order", "event", "device"]), streams),
)


def operations_of(rows: list[Step], threads: list[int] | None = None) -> Operations:
    """The steps, of one thread or as `threads` says, and what they use."""
    each = [[*((one, True) for one in row.writes), *((one, False) for one in row.reads or ())] for row in rows]
    pairs = [pair for row in each for pair in row]
    memory = UsedMemory(
        np.cumsum([0, *map(len, each)]),
        np.array([one for one, _ in pairs], np.int64),
        np.array([writes for _, writes in pairs], np.bool_),
        np.zeros(len(pairs), np.uint8),
        np.array([row.what == "work" and row.reads is None for row in rows]),
    )
    what = [row.what for row in rows]
    start = 10 * np.arange(len(rows), dtype=np.int64)
    return Operations(
        start=start,
        end=start + 5,
        thread=np.array(threads or [0] * len(rows), np.int64),
        scope=np.array([SCOPES.get(name, Scope.NONE) for name in what], np.uint8),
        judged=np.array([name in SCOPES for name in what], np.bool_),
        stream=np.array([row.stream for row in rows], np.int64),
        context=np.zeros(len(rows), np.int64),
        event=np.array([0 if name in ("record", "order", "event") else -1 for name in what], np.int64),
        action=np.array([ACTIONS.get(name, Action.NOTHING) for name in what], np.uint8),
        streams=Streams(np.array(KINDS, np.uint8), np.zeros(len(KINDS), np.int64), used=memory),
    )


def share(one: Step, other: Step) -> bool:
    """Whether it matters which work comes first."""
    if one.reads is None or other.reads is None:
        return True
    return bool(one.writes & (other.writes | other.reads) or other.writes & one.reads)


def in_order(rows: list[Step], waits: set[int]) -> set[tuple[int, int]]:
    """Which work certainly comes after which, if the program makes only some of its waits. Takes the definition."""
    before: list[set[int]] = [set() for _ in rows]  # what each work, or record, comes after
    on: dict[int, list[int]] = {stream: [] for stream in ALL}
    after: dict[int, set[int]] = {stream: set() for stream in ALL}  # what a stream waits for by events
    over: set[int] = set()
    recorded: set[int] = set()

    def reached(streams: list[int]) -> set[int]:
        return {done for stream in streams for row in on[stream] for done in (row, *before[row])} | set().union(
            *(after[stream] for stream in streams)
        )

    blocking = [stream for stream in ALL if KINDS[stream] is StreamKind.BLOCKING]
    legacy = [stream for stream in ALL if KINDS[stream] is StreamKind.LEGACY]
    for place, row in enumerate(rows):
        ordered = {
            StreamKind.LEGACY: [row.stream, *blocking],
            StreamKind.BLOCKING: [row.stream, *legacy],
            StreamKind.INDEPENDENT: [row.stream],
        }[KINDS[row.stream]]
        if row.what in ("work", "record", "order"):
            known = reached(ordered) | over
            if row.what == "order":
                after[row.stream] |= recorded
            before[place] = known | (recorded if row.what == "order" else set())
            on[row.stream].append(place)
            if row.what == "record":
                recorded = set(before[place])
        elif place in waits:
            scope = {"stream": ordered if row.stream in legacy else [row.stream], "device": list(ALL), "event": []}
            over |= recorded if row.what == "event" else reached(scope[row.what])
    work = {place for place, row in enumerate(rows) if row.what == "work"}
    return {(one, other) for other in work for one in before[other] & work}


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Steps around a wait for work of the first stream."""
    awaited = [Step("work", FIRST, draw(memories), draw(memories)), Step("stream", FIRST)]
    return [*draw(st.lists(steps, max_size=4)), *awaited, *draw(st.lists(steps, min_size=1, max_size=5))]


@given(programs())
@settings(max_examples=examples(600), deadline=None)
def test_what_shares_memory_stays_in_order_without_spare_waits(rows: list[Step]) -> None:
    found = needed_synchronizations(operations_of(rows), NO_USES)
    waits = {place for place, row in enumerate(rows) if row.what in ("stream", "event", "device")}
    spare = {place for place in waits if found.reason[place] in (Reason.NOTHING_RELIES, Reason.LATER_COVERS)}
    lost = in_order(rows, waits) - in_order(rows, waits - spare)
    note(f"spare: {sorted(spare)}, lost: {sorted(lost)}")
    assert not {pair for pair in lost if share(rows[pair[0]], rows[pair[1]])}


SHARED, OTHER, NONE = frozenset({0}), frozenset({1}), frozenset[int]()


@pytest.mark.parametrize(
    ("awaited", "later", "needed"),
    [
        ((NONE, SHARED), (SHARED, NONE), True),
        ((SHARED, NONE), (NONE, SHARED), True),
        ((NONE, SHARED), (NONE, SHARED), True),
        ((NONE, SHARED), (None, NONE), True),
        ((None, NONE), (OTHER, NONE), True),
        ((SHARED, NONE), (SHARED, NONE), False),
        ((NONE, SHARED), (NONE, OTHER), False),
    ],
)
def test_a_wait_is_needed_for_work_that_shares_memory_however_late_it_comes(
    awaited: tuple[frozenset[int] | None, frozenset[int]],
    later: tuple[frozenset[int] | None, frozenset[int]],
    needed: bool,
) -> None:
    rows = [Step("work", FIRST, *awaited), Step("stream", FIRST), Step("work", SECOND), Step("work", SECOND, *later)]
    found = needed_synchronizations(operations_of(rows), NO_USES)
    assert Reason(found.reason[1]) is (Reason.ORDERS_STREAMS if needed else Reason.NOTHING_RELIES)


def test_a_wait_is_needed_for_work_behind_an_event_of_work_that_shares_nothing() -> None:
    """The wait orders the second stream's work, an event the third stream's behind that."""
    rows = [
        Step("work", FIRST, writes=SHARED),
        Step("stream", FIRST),
        Step("work", SECOND, writes=OTHER),
        Step("record", SECOND),
        Step("order", BLOCKING),
        Step("work", BLOCKING, reads=SHARED),
    ]
    assert Reason(needed_synchronizations(operations_of(rows), NO_USES).reason[1]) is Reason.ORDERS_STREAMS


@pytest.mark.parametrize(
    ("marks", "looks", "needed"),
    [
        (Side.BOTH, Side.BOTH, True),
        (Side.MARKS, Side.LOOKS, True),
        (Side.MARKS, Side.MARKS, False),
        (Side.LOOKS, Side.LOOKS, False),
        (Side.LOOKS, Side.BOTH, False),
        (Side.BOTH, Side.MARKS, False),
    ],
)
@pytest.mark.parametrize("threads", [[0, 0, 0], [0, 0, 1]])
def test_later_work_has_memory_in_common_that_it_looks_at_and_earlier_work_marks(
    marks: Side, looks: Side, needed: bool, threads: list[int]
) -> None:
    rows = [Step("work", FIRST, writes=SHARED), Step("stream", FIRST), Step("work", SECOND, writes=SHARED)]
    operations = operations_of(rows, threads)
    used = operations.streams.used
    assert used is not None
    used.side[:] = marks, looks
    found = needed_synchronizations(operations, NO_USES, handovers=Handovers(*map(np.array, ([1], [18], [[16, 0]]))))
    assert Reason(found.reason[1]) is (Reason.ORDERS_STREAMS if needed else Reason.NOTHING_RELIES)


ALTERNATING = [
    Step("work", FIRST, writes=SHARED),
    Step("stream", FIRST),
    Step("work", SECOND, writes=SHARED),
    Step("stream", SECOND),
    Step("work", FIRST, writes=OTHER),
]
TAKING_TURNS = [0, 0, 1, 1, 0]


def test_a_wait_between_threads_is_needed_if_their_work_may_come_in_another_order() -> None:
    """In another run, the first thread's work with the memory comes after the second thread's wait."""
    found = needed_synchronizations(operations_of(ALTERNATING, TAKING_TURNS), NO_USES)
    assert Reason(found.reason[3]) is Reason.ORDERS_STREAMS


def test_a_wait_between_threads_is_spare_if_work_that_shares_memory_comes_in_one_order() -> None:
    handed = Handovers(np.array([1]), np.array([18]), np.array([[16, 0]]))
    operations = operations_of(ALTERNATING, TAKING_TURNS)
    found = needed_synchronizations(operations, NO_USES, handovers=handed)
    assert Reason(found.reason[1]) is Reason.ORDERS_STREAMS
    assert Reason(found.reason[3]) is Reason.NOTHING_RELIES


@pytest.mark.parametrize(("later", "needed"), [(SHARED, True), (OTHER, False)])
def test_a_wait_between_streams_of_one_thread_is_needed_only_for_what_they_share(
    later: frozenset[int], needed: bool
) -> None:
    rows = [
        Step("work", FIRST, writes=SHARED),
        Step("stream", FIRST),
        Step("work", SECOND, writes=OTHER),
        Step("work", BLOCKING, writes=frozenset({2})),
        Step("work", SECOND, reads=later),
        Step("work", FIRST, reads=OTHER),
    ]
    found = needed_synchronizations(operations_of(rows, [0, 0, 0, 1, 0, 0]), NO_USES)
    assert Reason(found.reason[1]) is (Reason.ORDERS_STREAMS if needed else Reason.NOTHING_RELIES)


def test_a_wait_of_another_thread_is_asked_for_again_after_work_that_does_not_need_it() -> None:
    rows = [
        Step("work", FIRST, writes=SHARED),
        Step("stream", FIRST),
        Step("work", SECOND, writes=OTHER),
        Step("work", SECOND, reads=SHARED),
    ]
    handed = Handovers(np.array([1]), np.array([18]), np.array([[16, 0]]))
    found = needed_synchronizations(operations_of(rows, [0, 0, 1, 1]), NO_USES, handovers=handed)
    assert Reason(found.reason[1]) is Reason.ORDERS_STREAMS


def test_a_long_run_gets_the_same_answers_from_compiled_passes() -> None:
    turn = [
        Step("work", FIRST, writes=SHARED),
        Step("stream", FIRST),
        Step("work", SECOND, writes=OTHER),
        Step("stream", SECOND),
    ]
    found = needed_synchronizations(operations_of([*turn * (PLAIN_ROWS // 4), Step("work", SECOND, SHARED)]), NO_USES)
    assert np.flatnonzero(found.reason == Reason.ORDERS_STREAMS).tolist() == [PLAIN_ROWS - 3]


def test_a_long_run_of_threads_gets_the_same_answers_from_compiled_passes() -> None:
    turns = PLAIN_ROWS // len(ALTERNATING) + 1
    operations = operations_of(ALTERNATING * turns, TAKING_TURNS * turns)
    reason = needed_synchronizations(operations, NO_USES).reason
    assert (reason[operations.judged] == Reason.ORDERS_STREAMS).all()
