"""Which results stage 4 watches."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of

FEW, FIRST, SITE = 4, 32, 7
HOUR = 3_600_000_000_000
"""Nanoseconds: no test takes so long that a share of it would be left."""


@pytest.fixture
def native(tmp_path: Path) -> ctypes.CDLL:
    """A library of its own for each test: what it has noted stays."""
    library = tmp_path / "libbudget.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            "-fsanitize=undefined", "-fno-sanitize-recover=all", *includes_of("watch/ranges"), "-o", str(library),
            str(NATIVE / "watch/ranges/watch_budget.c"), str(NATIVE / "base/clock.c"),
        ],
        check=True,
    )  # fmt: skip
    loaded = ctypes.CDLL(str(library))
    loaded.ffm_watch_budget_allows.restype = loaded.ffm_watch_budget_is_open.restype = ctypes.c_bool
    loaded.ffm_watch_budget_open.argtypes = [ctypes.c_uint64]
    loaded.ffm_watch_budget_spend.argtypes = [ctypes.c_uint64, ctypes.c_bool]
    return loaded


def test_without_a_budget_all_is_watched(native: ctypes.CDLL) -> None:
    native.ffm_watch_budget_spend(0, True)
    assert not native.ffm_watch_budget_is_open()
    assert all(native.ffm_watch_budget_allows(SITE) for _ in range(10 * FIRST))


def test_once_it_is_used_up_a_few_of_each_source_are_watched_and_no_others(native: ctypes.CDLL) -> None:
    native.ffm_watch_budget_open(HOUR)
    native.ffm_watch_budget_spend(0, True)
    for site in (SITE, SITE + 1):
        assert [native.ffm_watch_budget_allows(site) for _ in range(FIRST)] == [True] * FEW + [False] * (FIRST - FEW)


def test_while_little_has_been_spent_the_first_of_each_source_are_watched(native: ctypes.CDLL) -> None:
    native.ffm_watch_budget_open(0)
    for site in (SITE, SITE + 1):
        assert all(native.ffm_watch_budget_allows(site) for _ in range(FIRST))


def test_while_it_is_not_used_up_more_than_the_first_are_watched(native: ctypes.CDLL) -> None:
    native.ffm_watch_budget_open(0)
    assert all(native.ffm_watch_budget_allows(SITE) for _ in range(3 * FIRST))
