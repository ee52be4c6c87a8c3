"""The search for the driver's internal wait function, with a probe that blocks in each public call that waits.

The probe blocks in each call, in contexts that wait in different ways (spinning, yielding, blocking). The functions on
its stack are candidates. They are then hooked and all calls are made again. The wait function of a call is entered by
it, does not return while the GPU is busy, returns when the GPU is free, and is not entered by calls that only enqueue
work. The innermost one common to all calls is chosen; if there is none, the fewest functions that together serve all
calls.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.driver.analysis import WAITING_CALLS, DriverAnalysis, analyse_driver
from ffm.driver.library import read_library
from ffm.instrument.probing.blocked_stack import Stack
from ffm.instrument.probing.probe_session import Count, ProbeSession, ProbeSessionError
from ffm.instrument.probing.wait_function import FORMAT_VERSION, Candidate, WaitFunction

LIMIT = 60.0
"""Seconds that finding the function may take; merely starting a real GPU can take several."""

FEWEST_CALLS = 3
"""Calls that must have waited before what they have in common is trusted."""

MOST_FUNCTIONS = 4
"""More wait functions than this are no answer: then each call waits in its own way."""

MOST_HOOKS = 400
"""Most functions hooked at once, of those that not all calls have in common."""

SCHEDULING = {"spinning": 1, "yielding": 2, "blocking": 4}
"""How a context's threads wait: `CU_CTX_SCHED_…` of cuda.h. The default, 0, chooses one of them."""

_SAMPLES = 24
_ALIKE = 4
_PAUSE = 0.004
_HOLD = 0.04


@dataclass(frozen=True, slots=True)
class _Call:
    """A public call, made in a context of one kind."""

    name: str
    scheduling: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.scheduling})" if self.scheduling else self.name

    @property
    def essential(self) -> bool:
        """Whether the answer must serve it."""
        return not self.scheduling and self.name in WAITING_CALLS


@dataclass(slots=True)
class _Judged:
    """What the hooks revealed about one candidate."""

    passed: list[_Call] = field(default_factory=list)
    objection: str = ""
    depth: int = 0
    """Rank of its entry among all entries: the innermost function is entered last."""


def nobody(_: str) -> None:
    """Discard progress."""


def find_wait_function(driver: Path, limit: float = LIMIT, tell: Callable[[str], None] = nobody) -> WaitFunction:
    """Find the wait function of the driver at `driver` with a probe, within `limit` seconds.

    `tell` receives the progress, a few words at a time.

    Raises `ffm.driver.library.DriverFileError` if the file is not a driver.
    """
    steps = _Search(driver, tell)
    try:
        with ProbeSession(driver, limit) as session:
            steps.occupied_by = session.occupied_by
            steps.run(session)
    except ProbeSessionError as failure:
        steps.reason = failure.what
        steps.found = []
    return steps.result()


class _Search:
    """The steps of one search, and what they have found so far."""

    def __init__(self, driver: Path, tell: Callable[[str], None]) -> None:
        self._began = time.monotonic()
        self._tell = tell
        tell("reading the driver's file")
        self.library = read_library(driver)
        self.analysis: DriverAnalysis = analyse_driver(driver)
        self.reason = ""
        self.occupied_by = ""
        self.found: list[int] = []
        self._waiting: list[_Call] = []
        self._idle: list[_Call] = []
        self._uncovered: list[_Call] = []
        self._judged: dict[int, _Judged] = {}

    def run(self, session: ProbeSession) -> None:
        """Sample the blocked stacks, then check what they have in common. Raises `ProbeSessionError`."""
        stacks: dict[_Call, set[int]] = {}
        rounds = [("", 0), *(SCHEDULING.items() if session.contexts else ())]
        for scheduling, flags in rounds:
            if scheduling:
                session.enter_context(flags)
            stacks |= self._sample_calls(session, scheduling)
        if sum(call.essential for call in self._waiting) < FEWEST_CALLS:
            raise ProbeSessionError(
                f"only {_listed(self._waiting) or 'none'} of the calls {', '.join(WAITING_CALLS)} "
                "waited for the busy GPU"
            )
        session.attach()
        common = set.intersection(*stacks.values())
        self._check(session, rounds, common)
        if not self._choose():
            more = self._beyond(stacks, common)
            if more:
                self._check(session, rounds, more)
                self._choose()
        if not self.found:
            self._explain()

    def result(self) -> WaitFunction:
        """Return everything that was found."""
        first = self.found[0] if self.found else None
        end = None if first is None else self.analysis.ends[self.analysis.starts.index(first)]
        return WaitFunction(
            version=FORMAT_VERSION,
            identity=self.analysis.identity,
            offset=first,
            end=end,
            others=tuple(self.found[1:]),
            reason=self.reason,
            occupied_by=self.occupied_by,
            waiting_calls=tuple(map(str, self._waiting)),
            calls_that_did_not_wait=tuple(map(str, self._idle)),
            uncovered_calls=tuple(map(str, self._uncovered)),
            candidates=tuple(self._candidates()),
            static_candidates=len(self.analysis.candidates),
            among_static_candidates=first in self.analysis.candidates,
            seconds=round(time.monotonic() - self._began, 3),
        )

    def _sample_calls(self, session: ProbeSession, scheduling: str) -> dict[_Call, set[int]]:
        """Return, for each public call that waits, the functions that stay on its stack once it is at rest."""
        stacks: dict[_Call, set[int]] = {}
        for name in session.calls if not scheduling else WAITING_CALLS:
            call = _Call(name, scheduling)
            self._tell(f"reading the stack of a blocked {call}")
            thread = session.block(name)
            taken: list[set[int]] = []
            # The first samples may show the call still on its way in; a polling driver yields ever different ones.
            while len(taken) < _SAMPLES and not _alike(taken[-_ALIKE:]):
                time.sleep(_PAUSE)
                stack = session.stack(thread)
                if stack is None:
                    break
                taken.append(self._functions(stack))
            if session.release() and taken:
                stacks[call] = set.intersection(*taken[len(taken) // 2 :])
                self._waiting.append(call)
            else:
                self._idle.append(call)
        return stacks

    def _functions(self, stack: Stack) -> set[int]:
        """Return the functions that seem to be on `stack`: all active ones, and stale entries of others."""
        addresses = np.unique(stack.words)
        returns = addresses[follows_call(self.library.image, addresses)]
        # A return address is after the call, which may be the last instruction of a function.
        places = [stack.program_counter, *(returns - 1).tolist()]
        starts = [self.analysis.function_start(place) for place in places]
        return {start for start in starts if start is not None}

    def _beyond(self, stacks: dict[_Call, set[int]], common: set[int]) -> set[int]:
        """Return functions on the stacks of single calls; if there are too many, those of most calls first."""
        counts: dict[int, int] = defaultdict(int)
        for functions in stacks.values():
            for function in functions - common:
                counts[function] += 1
        return set(sorted(counts, key=lambda function: -counts[function])[:MOST_HOOKS])

    def _check(self, session: ProbeSession, rounds: Iterable[tuple[str, int]], offsets: set[int]) -> None:
        """Make all calls with the functions at `offsets` hooked, and judge each function."""
        ordered = sorted(offsets)
        refusals = dict(zip(ordered, session.hook(ordered), strict=True))
        judged = {offset: _Judged() for offset in ordered}
        usable = [offset for offset in ordered if refusals[offset] is None]
        for offset, refusal in refusals.items():
            if refusal is not None:
                judged[offset].objection = f"cannot be hooked: {refusal}"
        self._judged |= judged
        if not usable:
            return
        launched: set[int] = set()
        for scheduling, flags in rounds:
            if scheduling or session.contexts:
                session.enter_context(flags)
            for call in self._waiting:
                if call.scheduling == scheduling:
                    self._check_call(session, call, usable)
            for offset, count in zip(usable, session.counts(session.launch(), usable), strict=True):
                if count.entered:
                    launched.add(offset)
        for offset in launched:
            judged[offset].passed.clear()
            judged[offset].objection = "entered by calls that only enqueue work"

    def _check_call(self, session: ProbeSession, call: _Call, usable: list[int]) -> None:
        self._tell(f"checking {len(usable)} candidates with {call}")
        thread = session.block(call.name)
        during = self._settled(session, thread, usable)
        session.release()
        after = session.counts(thread, usable)
        for offset, blocked, ended in zip(usable, during, after, strict=True):
            judged = self._judged[offset]
            objection = _objection(call, blocked, ended)
            if objection:
                judged.objection = judged.objection or objection
            else:
                judged.passed.append(call)
                judged.depth = judged.depth or ended.order

    def _settled(self, session: ProbeSession, thread: int, offsets: list[int]) -> list[tuple[Count, Count]]:
        """Return two readings of a blocked call, some time apart, the first once it is at rest."""
        first = session.counts(thread, offsets)
        for _ in range(_SAMPLES):
            time.sleep(_PAUSE)
            again = session.counts(thread, offsets)
            resting = again == first and any(count.entered for count in first)
            first = again
            if resting:
                break
        time.sleep(_HOLD)
        return list(zip(first, session.counts(thread, offsets), strict=True))

    def _choose(self) -> bool:
        """Choose the fewest functions that serve all calls; return whether they serve all calls that waited.

        Functions that more calls enter come first and, among these, the innermost. An export cannot be chosen: it is
        replaced when the program is traced, and cannot be attached to as well.
        """
        self.found = []
        exports = set(self.library.exports.values())
        eligible = [offset for offset in self._judged if offset not in exports]
        open_calls = list(self._waiting)
        while open_calls and len(self.found) < MOST_FUNCTIONS:
            best = max(
                eligible,
                key=lambda offset: (
                    sum(call in self._judged[offset].passed for call in open_calls),
                    self._judged[offset].depth,
                ),
                default=None,
            )
            if best is None or not any(call in self._judged[best].passed for call in open_calls):
                break
            self.found.append(best)
            open_calls = [call for call in open_calls if call not in self._judged[best].passed]
        self._uncovered = open_calls
        shared = any(self._shared(offset) for offset in self.found)
        if any(call.essential for call in open_calls) or not shared:
            self.found = []
        return bool(self.found) and not open_calls

    def _shared(self, offset: int) -> bool:
        """Return whether several public calls wait in the function; otherwise it is just that one call's own code."""
        return len({call.name for call in self._judged[offset].passed}) > 1

    def _candidates(self) -> list[Candidate]:
        return [
            Candidate(
                offset=offset,
                names=self.analysis.names_at(offset),
                calls=tuple(map(str, judged.passed)),
                objection=judged.objection,
            )
            for offset, judged in sorted(self._judged.items(), key=lambda item: -item[1].depth)
        ]

    def _explain(self) -> None:
        calls = _listed(self._waiting)
        if not self._judged:
            self.reason = f"the stacks of the blocked calls {calls} have no driver function in common"
        elif any(judged.passed for judged in self._judged.values()) and not any(map(self._shared, self._judged)):
            self.reason = f"each of the blocked calls {calls} waits in its own way"
        else:
            self.reason = f"no function passed the checks with {_listed(self._uncovered)} ({self._objections()})"

    def _objections(self) -> str:
        judged = [item for item in self._candidates() if item.objection]
        return "; ".join(f"{item.offset:#x}: {item.objection}" for item in judged[:MOST_FUNCTIONS])


def _listed(calls: Iterable[_Call]) -> str:
    return ", ".join(map(str, calls))


def _alike(samples: list[set[int]]) -> bool:
    return len(samples) == _ALIKE and all(sample == samples[0] for sample in samples)


def _objection(call: _Call, blocked: tuple[Count, Count], ended: Count) -> str:
    """Return why a function with these counts is not the wait function of a call, or an empty text."""
    early, late = blocked
    if late.entered == 0:
        return f"not entered by {call}"
    if late.entered == late.left or late.left != early.left:
        return f"returns while {call} still waits"
    if ended.entered != ended.left:
        return f"does not return with {call}"
    return ""


# Lengths of an indirect call: ff /2 with a register or memory operand, with or without a prefix, an index byte, and a
# displacement of one or four bytes. Source: Intel SDM volume 2, CALL.
_INDIRECT_CALL_LENGTHS = (2, 3, 4, 6, 7, 8)


def follows_call(image: NDArray[np.uint8], addresses: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of `addresses` in `image` directly follow what can be a call; same shape."""
    inside = (addresses >= 8) & (addresses < len(image))
    safe = np.where(inside, addresses, 8)
    found: NDArray[np.bool_] = image[safe - 5] == 0xE8
    for length in _INDIRECT_CALL_LENGTHS:
        for prefix in (0, 1):
            place = safe - length + prefix
            if prefix < length - 1:
                found |= (image[place] == 0xFF) & (image[place + 1] & 0x38 == 0x10)
    return np.logical_and(found, inside)
