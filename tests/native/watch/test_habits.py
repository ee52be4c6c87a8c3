"""Which results are watched, and what is missed by not watching the others."""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of

SITES = range(7, 12)
SITE, WAIT, OTHER = SITES[0], 90, 91
TURNS, FEW = 20_000, 16


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library: Path = tmp_path_factory.mktemp("habits") / "libhabits.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fsanitize=undefined",
            "-fno-sanitize-recover=all", *includes_of("watch/ranges"), "-o", str(library),
            str(NATIVE / "watch/ranges/habits.c"),
        ],
        check=True,
    )  # fmt: skip
    return library


@pytest.fixture
def native(library: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library))
    loaded.ffm_habit_spares.restype = loaded.ffm_habit_is.restype = ctypes.c_bool
    loaded.ffm_habit_page.restype = ctypes.c_uint64
    for site in SITES:
        loaded.ffm_habit_broken(site)  # what another test has left
    return loaded


def watched_of(native: ctypes.CDLL, used: Iterable[bool]) -> list[bool]:
    """Return which downloads were watched, by whether each is used after the wait."""
    return [seen for (seen,) in watched_together(native, ((one,) for one in used))]


def watched_together(native: ctypes.CDLL, used: Iterable[Sequence[bool]]) -> list[list[bool]]:
    """Return the same for several results of each wait, each of a site of its own."""
    watched = []
    for turn in used:
        sites = SITES[: len(turn)]
        watched.append([not native.ffm_habit_spares(site) for site in sites])
        native.ffm_habit_turn(WAIT)
        for site, one, seen in zip(sites, turn, watched[-1], strict=True):
            if seen:
                native.ffm_habit_kept(site, WAIT) if one else native.ffm_habit_broken(site)
    return watched


def missed_of(used: list[bool], watched: list[bool]) -> int:
    return sum(not one and not seen for one, seen in zip(used, watched, strict=True))


def test_what_is_always_used_is_watched_ever_less_often(native: ctypes.CDLL) -> None:
    watched = watched_of(native, [True] * TURNS)
    assert all(watched[:100])
    assert 400 < sum(watched) < 800
    assert native.ffm_habit_is(SITE, WAIT)
    assert not native.ffm_habit_is(SITE, OTHER)


def test_a_site_whose_uses_end_is_soon_watched_each_time(native: ctypes.CDLL) -> None:
    used = [True] * 5000 + [False] * 5000
    watched = watched_of(native, used)
    assert missed_of(used, watched) <= 2 * 5000 / 100
    assert all(watched[5000 + 100 :])


@pytest.mark.parametrize("period", [*range(1, 130), 500, 1000])
def test_whatever_the_period_few_that_are_not_used_are_missed(native: ctypes.CDLL, period: int) -> None:
    used = [turn % period != period - 1 for turn in range(TURNS)]
    missed = missed_of(used, watched_of(native, used))
    assert missed <= TURNS / 100
    assert missed == 0 or period > 100


@pytest.mark.parametrize("share", [0.001, 0.005, 0.01, 0.013, 0.02, 0.05, 0.5])
def test_of_those_that_are_not_used_at_random_few_are_missed(native: ctypes.CDLL, share: float) -> None:
    chance = random.Random(5)
    used = [chance.random() >= share for _ in range(10 * TURNS)]
    assert missed_of(used, watched_of(native, used)) <= 1.2 * 10 * TURNS / 100


@pytest.mark.parametrize("results", [2, 5])
@pytest.mark.parametrize("share", [0.002, 0.01, 0.02])
@pytest.mark.parametrize("others_vary", [False, True])
def test_of_waits_with_several_results_no_more_are_missed(
    native: ctypes.CDLL, results: int, share: float, others_vary: bool
) -> None:
    chance, used = random.Random(7), []
    for _ in range(10 * TURNS):
        needed = chance.random() >= share
        others = [needed and not (others_vary and chance.random() < 0.01) for _ in range(results - 1)]
        used.append([needed, *others])
    watched = watched_together(native, used)
    missed = sum(not any(turn) and not all(seen) for turn, seen in zip(used, watched, strict=True))
    assert missed <= 1.2 * 10 * TURNS / 100


def test_a_result_that_is_never_used_leaves_the_habit_of_another(native: ctypes.CDLL) -> None:
    watched = watched_together(native, [[True, False]] * TURNS)
    assert sum(first for first, _ in watched) < 800
    assert all(second for _, second in watched)


def test_a_site_that_gets_a_habit_late_is_not_watched_as_seldom_as_an_old_one(native: ctypes.CDLL) -> None:
    used = [[True, turn > TURNS / 2] for turn in range(TURNS)]
    watched = watched_together(native, used)
    begun = TURNS // 2 + 101
    assert sum(second for _, second in watched[begun : begun + 1000]) > 100


def test_another_wait_or_another_site_begins_anew(native: ctypes.CDLL) -> None:
    watched_of(native, [True] * 1000)
    native.ffm_habit_kept(SITE, OTHER)
    assert not native.ffm_habit_spares(SITE)
    assert not native.ffm_habit_is(SITE, WAIT)
    assert not native.ffm_habit_spares(SITE + 1)
    assert not native.ffm_habit_is(SITE + 1, WAIT)


def test_what_launches_of_a_site_write_to_two_blocks_has_habits_of_its_own(native: ctypes.CDLL) -> None:
    native.ffm_habit_of_block.restype = ctypes.c_uint32
    sources = {
        native.ffm_habit_of_block(site, ctypes.c_uint64(0x7F0000000000 + page * 4096))
        for site in (1, 2)
        for page in range(1000)
    }
    assert len(sources) == 2000


PAGE = 0x7F00_1234_5000


def uses_until_known(native: ctypes.CDLL, site: int, pages: Iterable[int]) -> int:
    """Return after how many uses, each first on a page, the page of the next one is known."""
    for uses, page in enumerate(pages):
        if native.ffm_habit_page(site, WAIT) != 0:
            return uses
        native.ffm_habit_kept(site, WAIT)
        native.ffm_habit_used_at(site, ctypes.c_uint64(page + uses))
    raise AssertionError("never known")


def test_the_page_that_is_used_first_each_time_becomes_known(native: ctypes.CDLL) -> None:
    site = 20
    assert uses_until_known(native, site, [PAGE] * 200) == FEW
    assert native.ffm_habit_page(site, WAIT) == PAGE
    assert native.ffm_habit_page(site, OTHER) == native.ffm_habit_page(SITE, WAIT) == 0


def test_a_page_among_others_is_not_known(native: ctypes.CDLL) -> None:
    others = [PAGE + (0x1000 if turn % FEW == 0 else 0) for turn in range(100)]
    assert uses_until_known(native, 21, [*others, *[PAGE + 0x2000] * 200]) == len(others) + FEW


def test_once_the_known_page_was_not_used_it_takes_a_habit(native: ctypes.CDLL) -> None:
    site = 22
    assert uses_until_known(native, site, [PAGE] * 200) == FEW
    native.ffm_habit_broken(site)
    assert uses_until_known(native, site, [PAGE] * 200) == 100


@pytest.mark.parametrize("period", [17, 101, 102, 115, 150, 400])
def test_of_the_waits_for_a_large_block_one_in_a_hundred_is_missed_at_most(native: ctypes.CDLL, period: int) -> None:
    site, missed = 1000 + period, 0
    for turn in range(TURNS):
        used = turn % period != period - 1
        spared, page = native.ffm_habit_spares(site), native.ffm_habit_page(site, WAIT)
        native.ffm_habit_turn(WAIT)
        if not used:
            missed += spared or page != 0
        if not spared and used:
            native.ffm_habit_kept(site, WAIT)
            native.ffm_habit_used_at(site, ctypes.c_uint64(PAGE))
        elif not spared:
            native.ffm_habit_broken(site)
    assert missed <= TURNS // 100
