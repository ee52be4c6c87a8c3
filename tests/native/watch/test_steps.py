"""How long accesses beside watched memory are stepped over, and on which pages first no more."""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of

CLOCK = """
#include <stdint.h>
#include <time.h>

uint64_t test_time;

static int tell(clockid_t clock, struct timespec *time)
{
    (void)clock;
    time->tv_sec = (time_t)(test_time / 1000000000u);
    time->tv_nsec = (long)(test_time % 1000000000u);
    return 0;
}

int (*ffm_clock)(clockid_t, struct timespec *) = tell;
"""
PAGE, STEP, SECOND = 4096, 4000, 1_000_000_000
AT_FIRST = SECOND / 25
"""Nanoseconds that may be spent however short the run is."""

OVER, COSTLY, NEVER = range(3)


@pytest.fixture
def native(tmp_path: Path) -> ctypes.CDLL:
    """Loaded anew for each test: nothing is left of another one's steps."""
    clock, library = tmp_path / "clock.c", tmp_path / "libsteps.so"
    clock.write_text(CLOCK)
    subprocess.run(
        [
            "gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fsanitize=undefined",
            "-fno-sanitize-recover=all", *includes_of("watch/detection"), "-o", str(library),
            str(NATIVE / "watch/detection/steps.c"), str(clock),
        ],
        check=True,
    )  # fmt: skip
    loaded = ctypes.CDLL(str(library))
    loaded.ffm_steps_open(ctypes.c_uint64(STEP // 4))
    return loaded


def stepped(native: ctypes.CDLL, accesses: Iterable[tuple[int, int]]) -> tuple[Counter[int], set[int], float]:
    """Have the program work for some nanoseconds before each access to a page, until the page is given up. Return how
    often each page was stepped on, which were given up, and the share of the time that this took.
    """
    time = ctypes.c_uint64.in_dll(native, "test_time")
    began, spent = time.value, 0
    steps: Counter[int] = Counter()
    given_up: set[int] = set()
    for work, page in accesses:
        time.value += work
        if page in given_up:
            continue
        since = ctypes.c_uint64(time.value)
        if native.ffm_steps_next(ctypes.c_uint64(page * PAGE), since) == OVER:
            steps[page] += 1
        else:
            given_up.add(page)
        time.value += STEP // 2  # and as much on the way there and back
        native.ffm_steps_spend(since)
        spent += STEP
    return steps, given_up, spent / (time.value - began)


def test_what_costs_little_of_the_run_is_stepped_over(native: ctypes.CDLL) -> None:
    steps, given_up, _ = stepped(native, ((20 * STEP, turn % 50) for turn in range(200_000)))
    assert not given_up
    assert sum(steps.values()) == 200_000


def test_a_short_run_is_stepped_over(native: ctypes.CDLL) -> None:
    _, given_up, _ = stepped(native, ((0, turn % 7) for turn in range(4_000)))
    assert not given_up


def test_of_a_long_run_an_eighth_at_most_is_spent(native: ctypes.CDLL) -> None:
    accesses = ((STEP // 10, turn // 1_000) for turn in range(2_000_000))  # one page after the other
    _, given_up, share = stepped(native, accesses)
    time = ctypes.c_uint64.in_dll(native, "test_time").value
    assert time / 16 < share * time < AT_FIRST + time / 8
    assert len(given_up) > 1_000


def test_pages_that_are_used_most_are_given_up_first(native: ctypes.CDLL) -> None:
    chance = random.Random(3)
    pages = [*range(10)] * 100 + [*range(10, 210)]  # ten are used a hundred times as often
    steps, given_up, _ = stepped(native, ((4 * STEP, chance.choice(pages)) for _ in range(300_000)))
    assert given_up == set(range(10))
    assert min(steps[page] for page in range(10, 210)) > 100


def test_pages_are_stepped_on_again_when_the_run_goes_on(native: ctypes.CDLL) -> None:
    _, given_up, _ = stepped(native, ((0, turn % 3) for turn in range(80_000)))
    assert given_up == {0, 1, 2}
    _, given_up, _ = stepped(native, [(20 * SECOND, 0), *((STEP, turn % 3) for turn in range(1_000))])
    assert not given_up


def test_a_page_that_never_rests_is_given_up_in_any_run(native: ctypes.CDLL) -> None:
    _, given_up, _ = stepped(native, ((100 * STEP, 5) for _ in range(40_000)))
    assert given_up == {5}
    assert native.ffm_steps_next(ctypes.c_uint64(5 * PAGE), ctypes.c_uint64(0)) == NEVER
