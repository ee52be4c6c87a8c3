"""Wait functions by the driver's build: found by a probe once, and remembered."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ffm.cache import remember
from ffm.driver.analysis import cache_folder, identity_of
from ffm.driver.library import read_library
from ffm.instrument.probing.wait_function import FORMAT_VERSION, WaitFunction
from ffm.instrument.probing.wait_search import find_wait_function, nobody

FAILURE_REMEMBERED = 600.0
"""Seconds. The cause of a failure, or of an answer that leaves calls out, may pass, but the stages of one measurement
must not each repeat the search.
"""


SEARCHED_AGAIN = 10.0
"""Seconds. A search that failed, or left calls out, sooner is tried once more: on a busy machine the probe can be
disturbed.
"""


def wait_function(driver: Path) -> WaitFunction:
    """Return the wait function of the driver at `driver`: remembered for this build, or found now.

    Raises `ffm.driver.library.DriverFileError` if the file is not a driver. Takes up to
    `ffm.instrument.probing.wait_search.LIMIT` seconds the first time.
    A search that failed or left calls out is remembered for `FAILURE_REMEMBERED` seconds. Do not use it in a Frida
    callback.
    """
    return known_wait_function(driver) or _recent_failure(driver) or find_and_remember(driver)


def known_wait_function(driver: Path) -> WaitFunction | None:
    """Return what is remembered about the driver's build, or None. Raises `DriverFileError` if it is not a driver."""
    identity, cache = identity_of(read_library(driver)), cache_folder()
    known = None if cache is None else _read(cache / _memory(identity), identity)
    return known if known is not None and _is_complete(known) else None


def find_and_remember(driver: Path, tell: Callable[[str], None] = nobody) -> WaitFunction:
    """Find the wait function now, and remember the result. See `find_wait_function`."""
    found = find_wait_function(driver, tell=tell)
    if not _is_complete(found) and found.seconds < SEARCHED_AGAIN:
        again = find_wait_function(driver, tell=tell)
        found = min(found, again, key=lambda one: (one.offset is None, len(one.uncovered_calls)))
    memory = _memory if _is_complete(found) else _memory_of_failure
    remember(cache_folder(), memory(found.identity), msgspec.json.encode(found))
    return found


def _is_complete(found: WaitFunction) -> bool:
    """Return whether all calls that waited do so in what was found. If not, the functions found may be the wrong ones:
    they were chosen without the calls that were not seen.
    """
    return found.offset is not None and not found.uncovered_calls


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
