"""The driver's internal wait function: found for each build by a probe, checked, and remembered.

Dissertation 4.1: every driver call that waits for the GPU ends in one internal function. A probe blocks in
each public call that is known to wait; functions that lie on the stack of all of them are candidates. These
are then hooked and all calls made again. The wait function is the deepest candidate that is entered by each
call, does not return while the GPU is busy, returns when it is not, and is not entered by calls that only
enqueue work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.driver.analysis import (
    WAITING_CALLS,
    DriverAnalysis,
    analyse_driver,
    cache_folder,
    identity_of,
    write_atomically,
)
from ffm.driver.library import read_library
from ffm.instrument.blocked_stack import Stack
from ffm.instrument.probe_session import Count, ProbeSession, ProbeSessionError

FORMAT_VERSION = 1
LIMIT = 30.0
"""Seconds that finding the function may take."""

FEWEST_CALLS = 3
"""Calls that must have waited before what they have in common is believed."""
_SAMPLES = 24
_ALIKE = 4
_PAUSE = 0.004
_HOLD = 0.06


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A function that was on the stack of every blocked call."""

    offset: int
    names: tuple[str, ...]
    """Exported functions whose own code it is; empty for an internal function."""
    objection: str
    """Why it is not the wait function; empty when it passed every check."""


class WaitFunction(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the wait function of one build of a driver."""

    version: int
    identity: str
    """The driver's build-id, or a hash of its file."""
    offset: int | None
    """Start of the function from the module's base; None where none was found."""
    end: int | None
    """End of the function, exclusive."""
    reason: str
    """Why none was found; empty when one was. Without it, only public calls can be timed."""
    occupied_by: str
    """How the GPU was kept busy: `host_function` or `stream_wait_value`."""
    waiting_calls: tuple[str, ...]
    """Public calls that waited, and that the function was checked with."""
    calls_that_did_not_wait: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    """All functions common to the blocked stacks, innermost first."""
    static_candidates: int
    """How many functions the waiting calls have in common by the file alone."""
    among_static_candidates: bool
    """Whether the function is one of these; a call through a pointer hides it from the file's call graph."""
    seconds: float
    """Time that finding it took."""


def _nobody(_: str) -> None:
    """Hear the progress of a search that nobody follows."""


def wait_function(driver: Path) -> WaitFunction:
    """Return the wait function of the driver at `driver`: remembered for this build, or found now.

    Raises `ffm.driver.library.DriverFileError` when the file is no driver. Takes up to `LIMIT` seconds the
    first time. What was not found is not remembered, since the cause may pass. Not for use in a Frida
    callback.
    """
    return known_wait_function(driver) or find_and_remember(driver)


def known_wait_function(driver: Path) -> WaitFunction | None:
    """Return what is remembered of the driver's build, or None. Raises `DriverFileError` when it is no driver."""
    identity = identity_of(read_library(driver))
    try:
        known = msgspec.json.decode(_memory(identity).read_bytes(), type=WaitFunction)
    except (OSError, msgspec.MsgspecError):
        return None
    return known if known.version == FORMAT_VERSION and known.identity == identity else None


def find_and_remember(driver: Path, tell: Callable[[str], None] = _nobody) -> WaitFunction:
    """Find the wait function now, and remember it; a failure is not remembered. As `find_wait_function`."""
    found = find_wait_function(driver, tell=tell)
    if found.offset is not None:
        write_atomically(_memory(found.identity), msgspec.json.encode(found))
    return found


def _memory(identity: str) -> Path:
    return cache_folder() / f"{identity}.wait.json"


def find_wait_function(driver: Path, limit: float = LIMIT, tell: Callable[[str], None] = _nobody) -> WaitFunction:
    """Find the wait function of the driver at `driver` with a probe, within `limit` seconds.

    `tell` hears what is being done, a few words at a time.

    Raises `ffm.driver.library.DriverFileError` when the file is no driver.
    """
    search = _Search(driver, tell)
    try:
        with ProbeSession(driver, limit) as session:
            search.occupied_by = session.occupied_by
            search.run(session)
    except ProbeSessionError as failure:
        search.reason = str(failure)
    return search.result()


class _Search:
    """The steps of one search, and what they found so far."""

    def __init__(self, driver: Path, tell: Callable[[str], None]) -> None:
        self._began = time.monotonic()
        self._tell = tell
        tell("reading the driver's file")
        self.library = read_library(driver)
        self.analysis: DriverAnalysis = analyse_driver(driver)
        self.reason = ""
        self.occupied_by = ""
        self._waiting: list[str] = []
        self._idle: list[str] = []
        self._candidates: list[Candidate] = []
        self._found: int | None = None

    def run(self, session: ProbeSession) -> None:
        """Sample the blocked stacks, then check what they have in common. Raises `ProbeSessionError`."""
        common = self._common(self._sample_calls(session))
        session.attach()
        self._check(session, common, session.hook(common))
        if self._found is None:
            self._explain()

    def result(self) -> WaitFunction:
        """Return everything that was found."""
        end = None
        if self._found is not None:
            end = self.analysis.ends[self.analysis.starts.index(self._found)]
        return WaitFunction(
            version=FORMAT_VERSION,
            identity=self.analysis.identity,
            offset=self._found,
            end=end,
            reason=self.reason,
            occupied_by=self.occupied_by,
            waiting_calls=tuple(self._waiting),
            calls_that_did_not_wait=tuple(self._idle),
            candidates=tuple(self._candidates),
            static_candidates=len(self.analysis.candidates),
            among_static_candidates=self._found in self.analysis.candidates,
            seconds=round(time.monotonic() - self._began, 3),
        )

    def _sample_calls(self, session: ProbeSession) -> list[list[set[int]]]:
        """Return, for each public call that waits, the functions on samples of its stack."""
        samples: list[list[set[int]]] = []
        for call in WAITING_CALLS:
            self._tell(f"looking at the stack of a blocked {call}")
            thread = session.block(call)
            taken: list[set[int]] = []
            # The first samples may show the call on its way in; a polling driver gives ever other ones.
            while len(taken) < _SAMPLES and not _alike(taken[-_ALIKE:]):
                time.sleep(_PAUSE)
                stack = session.stack(thread)
                if stack is None:
                    break
                taken.append(self._functions(stack))
            if session.release():
                samples.append(taken)
                self._waiting.append(call)
            else:
                self._idle.append(call)
        if len(samples) < FEWEST_CALLS:
            raise ProbeSessionError(
                f"only {', '.join(self._waiting) or 'none'} of the calls {', '.join(WAITING_CALLS)} "
                "waited for the busy GPU"
            )
        return samples

    def _functions(self, stack: Stack) -> set[int]:
        """Return the functions that `stack` seems to hold: all that are active, and left-overs of others."""
        addresses = np.unique(stack.words)
        returns = addresses[follows_call(self.library.image, addresses)]
        # A return address lies behind the call, which may be the last instruction of a function.
        places = [stack.program_counter, *(returns - 1).tolist()]
        starts = [self.analysis.function_start(place) for place in places]
        return {start for start in starts if start is not None}

    def _common(self, samples: list[list[set[int]]]) -> list[int]:
        """Return the functions that stay on the sampled stacks of every call, once it has come to rest."""
        resting = [functions for taken in samples for functions in taken[len(taken) // 2 :]]
        return sorted(set.intersection(*resting)) if resting else []

    def _check(self, session: ProbeSession, common: list[int], refusals: list[str | None]) -> None:
        """Make all calls with `common` hooked, and judge each of these functions."""
        hooked = dict(zip(common, refusals, strict=True))
        usable = [offset for offset in common if hooked[offset] is None]
        objections = {offset: f"cannot be hooked: {hooked[offset]}" for offset in common if hooked[offset]}
        order: dict[int, int] = {}
        if usable:
            for call in self._waiting:
                self._tell(f"checking {len(usable)} candidates with {call}")
                thread = session.block(call)
                during = self._settled(session, thread, usable)
                session.release()
                after = session.counts(thread, usable)
                for offset, blocked, ended in zip(usable, during, after, strict=True):
                    order.setdefault(offset, ended.order)
                    objection = _objection(call, blocked, ended)
                    if objection:
                        objections.setdefault(offset, objection)
            launched = session.counts(session.launch(), usable)
            for offset, count in zip(usable, launched, strict=True):
                if count.entered:
                    objections.setdefault(offset, "entered by calls that only enqueue work")
        # The innermost function is the one that a blocked call entered last.
        self._candidates = [
            Candidate(
                offset=offset,
                names=self.analysis.names_at(offset),
                objection=objections.get(offset, ""),
            )
            for offset in sorted(common, key=lambda offset: -order.get(offset, 0))
        ]
        self._found = next((item.offset for item in self._candidates if not item.objection), None)

    def _settled(self, session: ProbeSession, thread: int, offsets: list[int]) -> list[tuple[Count, Count]]:
        """Return two readings of a blocked call, some time apart, the first when it has come to rest."""
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

    def _explain(self) -> None:
        calls = ", ".join(self._waiting)
        if not self._candidates:
            self.reason = f"the stacks of the blocked calls {calls} have no driver function in common"
        else:
            judged = "; ".join(f"{item.offset:#x}: {item.objection}" for item in self._candidates)
            self.reason = f"no function common to the blocked calls {calls} passed the checks ({judged})"


def _alike(samples: list[set[int]]) -> bool:
    return len(samples) == _ALIKE and all(sample == samples[0] for sample in samples)


def _objection(call: str, blocked: tuple[Count, Count], ended: Count) -> str:
    """Return why a function with these counts is not the wait function, or an empty text."""
    early, late = blocked
    if late.entered == 0:
        return f"not entered by {call}"
    if late.entered == late.left or late.left != early.left:
        return f"returns while {call} still waits"
    if ended.entered != ended.left:
        return f"does not return with {call}"
    return ""


# Lengths of an indirect call: ff /2 with a register or memory operand, with and without a prefix, an index
# byte, and a distance of one or four bytes. Source: Intel SDM volume 2, CALL.
_INDIRECT_CALL_LENGTHS = (2, 3, 4, 6, 7, 8)


def follows_call(image: NDArray[np.uint8], addresses: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of `addresses` in `image` come directly after what can be a call; same shape."""
    inside = (addresses >= 8) & (addresses < len(image))
    safe = np.where(inside, addresses, 8)
    found: NDArray[np.bool_] = image[safe - 5] == 0xE8
    for length in _INDIRECT_CALL_LENGTHS:
        for prefix in (0, 1):
            place = safe - length + prefix
            if prefix < length - 1:
                found |= (image[place] == 0xFF) & (image[place + 1] & 0x38 == 0x10)
    return np.logical_and(found, inside)
