"""Which synchronizations a program needs (dissertation 4.3.1; docs/architecture.md#synchronizations).

A synchronization is needed if something relied on it: the CPU touched what the awaited work had written, or overwrote
what that work still read; other work was ordered by it; the program asked for times. What cannot be decided counts as
needed, with the reason.

A thread that touches what it has waited for relies on its own last wait that covers it, or on an earlier one that must
stay in any case; other waits for the same work are unnecessary as long as that one stays. A thread that has not waited
for it relies on the waits of others. On which of them is known only by what orders threads however they are scheduled.
Otherwise it may be any: a thread that comes after one of another thread's waits comes after the first that covers the
work, so the first one of each thread is needed, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.codes import is_one_of
from ffm.model.compiled import run
from ffm.model.necessity import state
from ffm.model.necessity.program import (
    NO_CLOCKS,
    NO_HANDOVERS,
    Action,
    Clocks,
    Comparison,
    Handovers,
    Operations,
    Role,
    Scope,
    Uses,
)
from ffm.model.necessity.reasons import Reason, is_required
from ffm.model.necessity.sweep import Sweep
from ffm.model.necessity.sweep_kernels import keepers

_REASON_OF_ROLE = {
    Role.UNWATCHED: Reason.NOT_WATCHED,
    Role.GIVEN_UP: Reason.NOT_WATCHED,
    Role.HOST_FUNCTION: Reason.HOST_FUNCTION,
    Role.RESULT: Reason.RESULT_USED,
    Role.RESULT_UNSEEN: Reason.RESULT_USED_UNSEEN,
    Role.SOURCE: Reason.SOURCE_OVERWRITTEN,
    Role.SOURCE_UNSEEN: Reason.SOURCE_OVERWRITTEN_UNSEEN,
    Role.OWN_SOURCE: Reason.SOURCE_OVERWRITTEN,
    Role.RELEASED: Reason.RELEASED,
    Role.TIMING: Reason.TIMING,
    Role.ANSWER: Reason.ANSWER,
}
"""The first that applies counts: what may come at any time may come before all that was seen."""

_REASON_OF_NEED = {
    state.NEED_ORDER: Reason.ORDERS_STREAMS,
    state.NEED_RELEASE: Reason.DESTROYED,
    state.NEED_TIMER: Reason.HOST_TIMER,
    state.NEED_MAYBE_TIMER: Reason.MAYBE_TIMER,
}


@dataclass(frozen=True, slots=True)
class Necessity:
    """The verdicts. Columns of length n."""

    reason: NDArray[np.uint8]
    """A value of `Reason`."""
    keep: NDArray[np.int64]
    """For `Reason.LATER_COVERS`, the row of the synchronization that must stay; otherwise -1."""
    credited: NDArray[np.int64]
    """Shape (c, 2): a row of the uses, and the row of a synchronization that it relies on."""


def needed_synchronizations(
    operations: Operations,
    uses: Uses,
    clocks: Clocks = NO_CLOCKS,
    handovers: Handovers = NO_HANDOVERS,
    *,
    unwatched_memory: bool = False,
    shows: NDArray[np.bool_] | None = None,
) -> Necessity:
    """Decide for each operation that waits whether the program relies on it.

    `unwatched_memory` means that private calls may write memory unseen that the CPU reads; `shows`, of length n, which
    of them let out what kernels print. O((n log n + m) k), with k streams.
    """
    reason = _reasons_at_first(operations, unwatched_memory, shows)
    own = uses.role == Role.OWN_SOURCE
    sweep = Sweep(operations, uses, clocks, handovers)

    found, covers = sweep.needs_of_uses(is_required(reason))
    handed = found[:, state.USE] == state.NEED_HANDOVER
    needs = found[~handed]
    use = needs[:, state.USE]
    always = use >= len(uses.time)
    role = sweep.roles(uses, use)
    for value, why in _REASON_OF_ROLE.items():
        if value is not Role.OWN_SOURCE:
            _require(reason, needs[role == value, state.RELIED_ON], why)
    shared = needs[role == Role.SHARED, state.RELIED_ON]
    credited = [np.column_stack([use, needs[:, state.RELIED_ON]])[~always & (role != Role.OWN_SOURCE)]]
    # A synchronous transfer's own wait protects its source, unless a later wait stays for a reason of its own.
    later = needs[~always & (role == Role.OWN_SOURCE)]
    stays = later[is_required(reason)[later[:, state.RELIED_ON]]]
    alone = np.setdiff1d(np.flatnonzero(own & (uses.time >= 0)), stays[:, state.USE])
    _require(reason, uses.operation[alone], Reason.SOURCE_OVERWRITTEN)
    credited += [stays[:, [state.USE, state.RELIED_ON]], np.column_stack([alone, uses.operation[alone]])]
    _require(reason, found[handed, state.RELIED_ON], Reason.HANDED_OVER)
    kept = needs[(role != Role.OWN_SOURCE) | is_required(reason)[needs[:, state.RELIED_ON]]]

    # Doubts come last, and timing after them: what else relies on a wait is not "only timing".
    asked = [state.OF_ORDER] if len(operations.streams.kind) > 1 or (operations.action == Action.RELEASE).any() else []
    for needs_of in [*asked, *([state.OF_CLOCKS] if len(clocks.time) else [])]:
        if needs_of == state.OF_CLOCKS:
            _require(reason, shared, Reason.SHARED_MEMORY)
        del covers  # those of this pass take their place
        more, covers = sweep.run(is_required(reason), needs_of)
        _require_for(reason, more, clocks)
        kept = np.concatenate([kept, more])
    _require(reason, shared, Reason.SHARED_MEMORY)

    keep = np.full(len(reason), -1, np.int64)
    if len(kept):
        kept = kept[np.argsort(operations.end[kept[:, state.RELIED_ON]], kind="stable")]
        keep = run(
            keepers, len(reason), kept, covers, operations.end, operations.thread,
            is_required(reason) | ~operations.judged, sweep.threads, sweep.streams,
        )  # fmt: skip
    conditional = (reason == Reason.NOTHING_RELIES) & (keep >= 0)
    reason[conditional] = Reason.LATER_COVERS
    keep[~conditional] = -1
    return Necessity(reason, keep, np.concatenate(credited))


def uses_after_clocks(
    credited: NDArray[np.int64], operations: Operations, uses: Uses, clocks: Clocks
) -> NDArray[np.bool_]:
    """Return which rows of `Necessity.credited` have a use before which the thread that waited read a clock, to compare
    what it says: moved to such a use, the wait would no longer be in the time that the program takes.

    All rows must be of `uses`. O((c + k) log k), with k clock reads.
    """
    use, relied = credited[:, 0], credited[:, 1]
    compared = np.flatnonzero(clocks.comparison != Comparison.NOT_COMPARED)
    after = np.zeros(len(credited), np.bool_)
    for thread in np.intersect1d(clocks.thread[compared], operations.thread[relied]):
        read = np.sort(clocks.time[compared[clocks.thread[compared] == thread]])
        rows = np.flatnonzero(operations.thread[relied] == thread)
        place = np.searchsorted(read, operations.end[relied[rows]])
        after[rows] = np.append(read, np.iinfo(np.int64).max)[place] < uses.time[use[rows]]
    return after


ASKED = (Role.TIMING, Role.ANSWER)
"""What the program asks the driver, which has no other answer before the work is over."""


def uses_after_questions(credited: NDArray[np.int64], uses: Uses) -> NDArray[np.bool_]:
    """Return which rows of `Necessity.credited` have a use before which the program asks for what the same wait is the
    first to wait for: moved to such a use, the wait would come after the question.
    """
    use, relied = credited[:, 0], credited[:, 1]
    asked = np.flatnonzero(is_one_of(uses.role[use], ASKED))
    first = np.full(int(relied.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, relied[asked], uses.time[use[asked]])
    return first[relied] < uses.time[use]


def _reasons_at_first(
    operations: Operations, unwatched_memory: bool, shows: NDArray[np.bool_] | None
) -> NDArray[np.uint8]:
    """Return a reason for each operation from what it is alone."""
    reason = np.where(operations.judged, Reason.NOTHING_RELIES, Reason.NOT_A_SYNCHRONIZATION).astype(np.uint8)
    if unwatched_memory:
        reason[operations.judged] = Reason.UNWATCHED_MEMORY
    reason[operations.judged & (operations.scope == Scope.PRIVATE)] = Reason.PRIVATE_CALL
    reason[operations.judged & (operations.scope == Scope.UNKNOWN)] = Reason.UNKNOWN_WAIT
    reason[operations.judged & (operations.scope == Scope.UNRECORDED)] = Reason.EVENT_NOT_RECORDED
    if shows is not None:
        _require(reason, np.flatnonzero(shows), Reason.PRINTED)
    return reason


def _require_for(reason: NDArray[np.uint8], needs: NDArray[np.int64], clocks: Clocks) -> None:
    """Give the waits of some needs their reasons; `state` has the columns."""
    need, on = needs[:, state.USE], needs[:, state.RELIED_ON]
    counted = np.isin(needs[:, state.RELIED_AT], clocks.time[clocks.counter])
    _require(reason, on[(need == state.NEED_TIMER) & counted], Reason.COUNTER_TIMER)
    for kind, why in _REASON_OF_NEED.items():
        _require(reason, on[need == kind], why)


def _require(reason: NDArray[np.uint8], rows: NDArray[np.int64], why: Reason) -> None:
    """Give rows a reason unless they have a stronger one or get no verdict."""
    weaker = is_one_of(reason[rows], (Reason.NOTHING_RELIES, Reason.LATER_COVERS))
    reason[rows[weaker]] = why
