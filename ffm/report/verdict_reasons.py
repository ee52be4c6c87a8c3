"""Why a call has its verdict, in words."""

from __future__ import annotations

from ffm.results.vocabulary import Because

WORDS = {
    Because.NOTHING_RELIES: "nothing that the CPU does afterwards relies on work that this wait is the first to cover",
    Because.EVENT_NOT_RECORDED: "its event was not recorded before, so it waits for nothing; if it should wait, a "
    "record of the event is missing",
    Because.LATER_COVERS: "what it protects is first used after a later wait for the same work, which must then stay",
    Because.RESULT_USED: "the CPU uses a result of the work that it waits for",
    Because.RESULT_USED_UNSEEN: "the CPU used a result after every wait here that was watched; these were not watched",
    Because.SOURCE_OVERWRITTEN: "the CPU overwrites the source of a transfer that it waits for",
    Because.SOURCE_OVERWRITTEN_UNSEEN: "the CPU overwrote the source of a transfer after each wait here that was "
    "watched; these were not",
    Because.PRIVATE_CALL: "a library waits through a private call of the driver, whose results cannot be watched",
    Because.ORDERS_STREAMS: "work on another stream follows, which nothing else orders after the work before it",
    Because.TIMING: "the program reads GPU times of events that it waits for",
    Because.UNWATCHED_MEMORY: "a library's private calls may write managed or mapped memory unseen",
    Because.HOST_FUNCTION: "a host function in the stream may hand results to the CPU",
    Because.NOT_WATCHED: "what it protects could not be watched, or not for as long as another thread might use it",
    Because.RELEASED: "the program frees host memory that the work it waits for writes or reads",
    Because.HOST_TIMER: "it is needed only for timing: the program reads a clock after it, and another time",
    Because.COUNTER_TIMER: "it is needed only for timing: the program reads the processor's counter after it, and "
    "another time",
    Because.HANDED_OVER: "another thread uses a result of the work that it waits for, and may rely on this wait",
    Because.SHARED_MEMORY: "another process shares device memory with this one, and may rely on this wait",
    Because.ANSWER: "the program asks afterwards whether the work is over, and was always told that it is",
    Because.PRINTED: "what kernels print appears when it returns",
    Because.MAYBE_TIMER: "it may be there for timing: a library, or another thread, reads a clock after it, and "
    "another time",
    Because.OUTSIDE_PORTION: "only a portion of the run was measured, and what comes before or after it may rely on "
    "this wait",
    Because.UNKNOWN_WAIT: "it is unknown what this call waits for",
    Because.DESTROYED: "memory or an object that the work may use is destroyed afterwards",
    Because.OTHERS_STAY: "the CPU touches nothing afterwards that this is the first to wait for; the waits that were "
    "not measured must stay",
    Because.NEEDED: "its bytes were not transferred before",
    Because.NO_OP: "the destination already holds exactly these bytes",
    Because.REPEAT: "the same bytes went to the same place before, but it was written or reallocated since: "
    "keep the buffer and its content",
    Because.REPEAT_UNSEEN: "the same bytes went to the same place before; ffm looked at what that place still held in "
    "some of the calls, but not in these: if nothing writes it in between, remove them, otherwise keep the buffer and "
    "its content",
    Because.NO_OP_FROM_ELSEWHERE: "the destination already holds exactly these bytes, but they come from another place "
    "in host memory than those sent there before: they may be other data that were equal in this run",
    Because.REPEAT_FROM_ELSEWHERE: "the same bytes went to the same place before, but from another place in host "
    "memory: they may be other data that were equal in this run",
    Because.COPY: "the same bytes were transferred to or from another place before: a copy on the device, or one "
    "shared buffer, would suffice",
    Because.PARTIAL: "blocks of 64 KiB of it went to the same places before: send only what changed",
    Because.DATA_USED: "the CPU used data that the synchronization protects",
    Because.DATA_NOT_USED: "the CPU did not use data that the synchronization protects",
    Because.EQUAL_HASH: "its content has the 32-bit hash of an earlier transfer; destinations were not compared",
    Because.NEW_HASH: "its content had not been transferred before",
}
"""Each in words, to follow `required, because` or `unnecessary:`."""

COVERED_BY_ITSELF = (
    "what it protects is first used after a later call here, which also waits for it: the last of these calls must stay"
)
"""Instead of `LATER_COVERS`, if the later synchronization is at the same site."""
