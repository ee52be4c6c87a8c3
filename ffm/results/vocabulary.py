"""Why a call has its verdict: the codes that results hold.

All decisions compare codes. `ffm.report.verdict_reasons` says what they mean in words, so that a sentence can be
reworded without changing any result.
"""

from __future__ import annotations

from enum import StrEnum, auto

PRIVATE = "private"
"""In place of a driver function's name: a library waited through the driver's private interface."""


class Because(StrEnum):
    """Why synchronizations or transfers of a call site have their verdict.

    The first are the names of `ffm.model.necessity.reasons.Reason`, with what a partial measurement adds, then follow
    those of `ffm.model.transfers.Repetition`.
    """

    NOTHING_RELIES = auto()
    LATER_COVERS = auto()
    RESULT_USED = auto()
    RESULT_USED_UNSEEN = auto()
    SOURCE_OVERWRITTEN = auto()
    SOURCE_OVERWRITTEN_UNSEEN = auto()
    PRIVATE_CALL = auto()
    ORDERS_STREAMS = auto()
    TIMING = auto()
    UNWATCHED_MEMORY = auto()
    HOST_FUNCTION = auto()
    NOT_WATCHED = auto()
    RELEASED = auto()
    HOST_TIMER = auto()
    DESTROYED = auto()
    UNKNOWN_WAIT = auto()
    MAYBE_TIMER = auto()
    HANDED_OVER = auto()
    SHARED_MEMORY = auto()
    ANSWER = auto()
    PRINTED = auto()
    EVENT_NOT_RECORDED = auto()
    COUNTER_TIMER = auto()
    OTHERS_STAY = auto()
    """Nothing relies on it as long as the waits that were not measured stay."""
    OUTSIDE_PORTION = auto()
    """Also of transfers."""

    NEEDED = auto()
    NO_OP = auto()
    REPEAT = auto()
    REPEAT_UNSEEN = auto()
    NO_OP_FROM_ELSEWHERE = auto()
    REPEAT_FROM_ELSEWHERE = auto()
    COPY = auto()
    PARTIAL = auto()

    DATA_USED = auto()
    """Of Diogenes's findings, as are the others that follow."""
    DATA_NOT_USED = auto()
    EQUAL_HASH = auto()
    NEW_HASH = auto()


FROM_ELSEWHERE = (Because.NO_OP_FROM_ELSEWHERE, Because.REPEAT_FROM_ELSEWHERE)
"""Of uploads that repeat bytes, but perhaps not data."""


class OrdinaryCause(StrEnum):
    """Why a kernel counts as using ordinary memory."""

    USES = auto()
    """Its machine code may use as an address what it is given at a place."""
    NO_CODE = auto()
    """The same, but of its machine code nothing is known."""
    ANYTHING = auto()
    """The driver does not tell which parameters it has, or these are of no known form."""
    GRAPH = auto()
    """It is in a graph."""
