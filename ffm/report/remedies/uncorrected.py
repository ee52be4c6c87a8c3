"""Why a problem is not corrected automatically, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ffm.remedy.reasons import (
    ComparingCostsAsMuch,
    DoesNotPay,
    LateCostsAsMuch,
    ManagedSet,
    NeededForMore,
    OtherAllocation,
    OtherDestination,
    OtherFunction,
    PartlyNeeded,
    Reason,
    TooLarge,
    Unmatched,
    UnseenAllocation,
    WaitsReliedOn,
    WaitsTooEarly,
)
from ffm.report.numbers import size
from ffm.report.verdict_reasons import WORDS
from ffm.results.documents.analysis import Analysis

NOTICEABLE_S = 0.0001
"""Fewer seconds than these are not shown as a number."""

_FIXED: dict[type[Reason], str] = {
    ManagedSet: "once it returns, the program may use all managed memory, which kernels may still be writing. If it "
    "returned early, all of that memory would have to be closed until the kernels finish, and a kernel that waits for "
    "another thread to write there would wait forever",
    LateCostsAsMuch: "delivering the data later would cost as much as it saves",
    ComparingCostsAsMuch: "comparing the bytes with what the device holds would cost as much as it saves",
    UnseenAllocation: "the allocation of the memory that it frees was not observed",
    OtherDestination: "it sends to device memory that is not from cudaMalloc or cudaMallocAsync, such as a variable "
    "of the device",
    WaitsTooEarly: "it is needed, but waits too early: moving it requires a change of the source",
    WaitsReliedOn: "some of its calls waited, and the program may rely on that wait",
}


def why_not(reason: Reason) -> str:
    """Return a reason in words, to stand behind a colon and before a full stop."""
    match reason:
        case NeededForMore(needed=needed, of=of, because=because):
            return f"{needed:,} of {of:,} occurrences are needed: {WORDS[because]}"
        case OtherAllocation(calls=calls):
            return f"it frees memory from {' and '.join(calls)}; ffm keeps only memory from cudaMalloc"
        case Unmatched(occurrences=occurrences, of=of):
            return f"{occurrences:,} of {of:,} occurrences could not be matched between the runs"
        case PartlyNeeded(needed=needed, of=of):
            return f"{needed:,} of {of:,} occurrences are needed; only waits of downloads and frees can be moved"
        case OtherFunction(function=function):
            return (
                "ffm corrects cudaMemcpy, cudaFree, explicit synchronizations and repeated asynchronous uploads, not "
                f"{function}"
            )
        case TooLarge(bytes=each, memory_bytes=memory):
            return (
                f"an upload takes {size(each)}, and corrections would hold two of them: more than the "
                f"{size(memory)} that they may take (--memory)"
            )
        case DoesNotPay():
            return _does_not_pay(reason)
    return _FIXED[type(reason)]


def by_hand(document: Analysis, options: Sequence[str]) -> str:
    """Return what changing the source would save where no correction is expected to pay, and how to correct the program
    all the same: `options` are those of `apply-remedy` that it takes if they are named.
    """
    saved_s = 0.0 if document.everything is None else document.everything.expected_s
    advice = (
        f"Fixing everything in the source, where correcting costs nothing, should save {saved_s:.3f} of "
        f"{document.wall_s:.3f} s: `ffm remedies` says what to change."
    )
    if not options:
        return advice
    return (
        f"{advice} A longer run may make up for that cost: measure one. Or name a fix, which is then applied anyway: "
        f"{' or '.join(f'--{option}' for option in options)}."
    )


def _does_not_pay(reason: DoesNotPay) -> str:
    kind = "it and those like it" if reason.together else "it"
    if not reason.certain:
        most = "at most " if reason.best and reason.saved_s >= NOTICEABLE_S else ""
        return f"correcting {kind} would save {most}{_seconds(reason.saved_s)} and cost {_seconds(reason.cost_s)}"
    least = "may save as little as" if reason.saved_s > 0 else "may save"
    if reason.entering:
        least = "may save only about"
    found = f"correcting {kind} {least} {_seconds(reason.saved_s)} and costs {_seconds(reason.cost_s)}, and "
    if reason.entering:
        return f"{found}what it costs to correct a program at all cannot be taken back while it runs"
    return f"{found}it is called too seldom to find out which while the program runs"


def _seconds(seconds: float) -> str:
    if seconds <= 0:
        return "nothing"
    return f"{seconds:.4f} s" if seconds >= NOTICEABLE_S else f"less than {NOTICEABLE_S} s"
