"""Keeps the kernel from giving large columns huge pages, for which NumPy asks.

A column lives for one step. Before its first use, a huge page has to be found, for which the kernel may move other
pages, and cleared as a whole: on a 2-core VM that took 4 to 6 of the 18 seconds in which 10^7 operations were analysed,
and more when the machine was busy, while the steps themselves took as long with them as without.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

SET_HUGE_PAGES_OFF, ARE_HUGE_PAGES_OFF = 41, 42
"""`PR_SET_THP_DISABLE` and `PR_GET_THP_DISABLE` of `linux/prctl.h` (prctl(2)), since Linux 3.15."""


@contextmanager
def small_pages() -> Iterator[None]:
    """Let this process, and those that it starts meanwhile, have no huge pages until the context ends."""
    prctl = ctypes.CDLL(None).prctl
    if prctl(ARE_HUGE_PAGES_OFF, 0, 0, 0, 0) != 0:  # they are off already, or the kernel does not know
        yield
        return
    prctl(SET_HUGE_PAGES_OFF, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(SET_HUGE_PAGES_OFF, 0, 0, 0, 0)
