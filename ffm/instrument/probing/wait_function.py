"""What is known about a driver's internal wait function.

Dissertation 4.1: every driver call that waits for the GPU ends in one internal function. Some builds may have several,
for example if the compiler inlined it into one of its callers; then each is found and hooked.
"""

from __future__ import annotations

import msgspec

FORMAT_VERSION = 2
"""Of what is remembered."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A function that was on the stacks of blocked calls."""

    offset: int
    names: tuple[str, ...]
    """Exported functions whose own code it is; empty for an internal function."""
    calls: tuple[str, ...]
    """Blocked calls with which it passed every check."""
    objection: str
    """Why it is not the wait function of the other calls; empty if it passed every check with all of them."""


class WaitFunction(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the wait function of one build of a driver."""

    version: int
    identity: str
    """The driver's build-id, or a hash of its file."""
    offset: int | None
    """Start of the function from the module's base; None if none was found. If there are several, that of most calls.
    """
    end: int | None
    """End of the function, exclusive."""
    others: tuple[int, ...]
    """Starts of further wait functions, for calls that do not enter the first one."""
    reason: str
    """Why none was found; empty if one was. Without it, only public calls can be timed."""
    occupied_by: str
    """How the GPU was kept busy: `kernel`, `host_function` or `stream_wait_value`."""
    waiting_calls: tuple[str, ...]
    """Public calls that waited and with which the function was checked; how the context waits is in parentheses."""
    calls_that_did_not_wait: tuple[str, ...]
    uncovered_calls: tuple[str, ...]
    """Calls that waited in none of the functions found; none of `ffm.driver.analysis.WAITING_CALLS`."""
    candidates: tuple[Candidate, ...]
    """What was checked: the functions of all blocked stacks, innermost first."""
    static_candidates: int
    """How many functions the waiting calls have in common according to the file alone."""
    among_static_candidates: bool
    """Whether the function is one of these; a call through a pointer hides it from the file's call graph."""
    seconds: float
    """Time that finding it took."""

    @property
    def offsets(self) -> tuple[int, ...]:
        """Starts of all functions to hook."""
        return () if self.offset is None else (self.offset, *self.others)

    @property
    def own_code(self) -> tuple[str, ...]:
        """Public functions that wait in their own code, which is then hooked as their wait function."""
        found = set(self.offsets)
        return tuple(name for item in self.candidates if item.offset in found for name in item.names)
