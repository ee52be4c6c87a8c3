"""The list of ranges that a wait looks at, against a plain list."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.layers import NATIVE, includes_of

NONE = 2**32 - 1
PLACE = st.integers(0, 9)
STEP = st.one_of(
    st.tuples(st.just("add"), PLACE, PLACE),
    st.tuples(st.just("drop"), PLACE, PLACE),
    st.tuples(st.just("move"), PLACE, PLACE),
    st.tuples(st.sampled_from(["take", "end"]), PLACE, PLACE),
)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library: Path = tmp_path_factory.mktemp("unsettled") / "libunsettled.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fsanitize=undefined",
            "-fno-sanitize-recover=all", *includes_of("watch/ranges"), "-o", str(library),
            str(NATIVE / "watch/ranges/unsettled.c"),
        ],
        check=True,
    )  # fmt: skip
    loaded = ctypes.CDLL(str(library))
    loaded.ffm_unsettled_take.restype = loaded.ffm_unsettled_after.restype = ctypes.c_uint32
    return loaded


def listed(native: ctypes.CDLL) -> list[int]:
    places: list[int] = []
    place = native.ffm_unsettled_after(ctypes.c_uint32(NONE))
    while place != NONE:
        places.append(place)
        place = native.ffm_unsettled_after(ctypes.c_uint32(place))
    return places


@given(st.integers(0, 5), st.lists(STEP, max_size=60))
def test_it_is_as_a_plain_list(native: ctypes.CDLL, begin: int, steps: list[tuple[str, int, int]]) -> None:
    native.ffm_unsettled_reset(begin)
    waiting, taken = list(reversed(range(begin))), list[int]()
    for what, place, other in steps:
        of = waiting if place in waiting else taken
        if what == "add":
            native.ffm_unsettled_add(place)
            if place not in of:
                waiting.insert(0, place)
        elif what == "drop":
            native.ffm_unsettled_drop(place)
            if place in of:
                of.remove(place)
        elif what == "move" and other not in waiting + taken:
            native.ffm_unsettled_moved(place, other)
            if place in of:
                of[of.index(place)] = other
        elif what == "take":
            assert native.ffm_unsettled_take() == (waiting[0] if waiting else NONE)
            taken += waiting[:1]
            del waiting[:1]
        elif what == "end":
            native.ffm_unsettled_end()
            waiting, taken = waiting + taken, []
        assert listed(native) == waiting
