"""An analysis has no huge pages, and what comes after it may have them."""

from __future__ import annotations

import ctypes
import subprocess
import sys

from ffm.results.memory.small_pages import ARE_HUGE_PAGES_OFF, SET_HUGE_PAGES_OFF, small_pages

ASKING = f"import ctypes; raise SystemExit(ctypes.CDLL(None).prctl({ARE_HUGE_PAGES_OFF}, 0, 0, 0, 0))"


def in_a_new_process() -> int:
    return subprocess.run([sys.executable, "-c", ASKING], check=False).returncode


def test_only_within_the_context_are_huge_pages_off() -> None:
    assert in_a_new_process() == 0
    with small_pages():
        assert in_a_new_process() == 1
        with small_pages():
            pass
        assert in_a_new_process() == 1
    assert in_a_new_process() == 0


def test_a_process_that_has_none_keeps_that() -> None:
    prctl = ctypes.CDLL(None).prctl
    prctl(SET_HUGE_PAGES_OFF, 1, 0, 0, 0)
    try:
        with small_pages():
            pass
        assert in_a_new_process() == 1
    finally:
        prctl(SET_HUGE_PAGES_OFF, 0, 0, 0, 0)
