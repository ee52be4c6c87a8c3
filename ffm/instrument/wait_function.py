"""The driver's internal wait function: found by a probe once per build, verified, and remembered.

Dissertation 4.1: every driver call that waits for the GPU ends in one internal function. Some builds may have several,
for example if the compiler inlined it into one of its callers; then each is found and hooked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ffm.cache import remember
from ffm.driver.analysis import cache_folder, identity_of
from ffm.driver.library import read_library

FORMAT_VERSION = 2
LIMIT = 60.0
"""Seconds that finding the function may take; merely starting a real GPU can take several."""


FAILURE_REMEMBERED = 600.0
"""Seconds. The cause of a failure may pass, but the stages of one measurement must not each repeat a failed search."""


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


def nobody(_: str) -> None:
    """Discard the progress of a search."""


def wait_function(driver: Path) -> WaitFunction:
    """Return the wait function of the driver at `driver`: remembered for this build, or found now.

    Raises `ffm.driver.library.DriverFileError` if the file is not a driver. Takes up to `LIMIT` seconds the first time.
    A failed search is remembered for `FAILURE_REMEMBERED` seconds. Do not use it in a Frida callback.
    """
    return known_wait_function(driver) or _recent_failure(driver) or find_and_remember(driver)


def known_wait_function(driver: Path) -> WaitFunction | None:
    """Return what is remembered about the driver's build, or None. Raises `DriverFileError` if it is not a driver."""
    identity, cache = identity_of(read_library(driver)), cache_folder()
    return None if cache is None else _read(cache / _memory(identity), identity)


def find_and_remember(driver: Path, tell: Callable[[str], None] = nobody) -> WaitFunction:
    """Find the wait function now, and remember the result. See `find_wait_function`."""
    found = find_wait_function(driver, tell=tell)
    memory = _memory if found.offset is not None else _memory_of_failure
    remember(cache_folder(), memory(found.identity), msgspec.json.encode(found))
    return found


def find_wait_function(driver: Path, limit: float = LIMIT, tell: Callable[[str], None] = nobody) -> WaitFunction:
    """Find the wait function of the driver at `driver` with a probe, within `limit` seconds.

    `tell` receives the progress, a few words at a time.

    Raises `ffm.driver.library.DriverFileError` if the file is not a driver.
    """
    from ffm.instrument.wait_search import search

    return search(driver, limit, tell)


def _recent_failure(driver: Path) -> WaitFunction | None:
    identity, cache = identity_of(read_library(driver)), cache_folder()
    if cache is None:
        return None
    path = cache / _memory_of_failure(identity)
    try:
        if not 0 <= time.time() - path.stat().st_mtime < FAILURE_REMEMBERED:
            return None
    except OSError:
        return None
    return _read(path, identity)


def _read(path: Path, identity: str) -> WaitFunction | None:
    try:
        known = msgspec.json.decode(path.read_bytes(), type=WaitFunction)
    except (OSError, msgspec.MsgspecError):
        return None
    return known if known.version == FORMAT_VERSION and known.identity == identity else None


def _memory(identity: str) -> str:
    return f"{identity}.wait.json"


def _memory_of_failure(identity: str) -> str:
    return f"{identity}.no-wait.json"
