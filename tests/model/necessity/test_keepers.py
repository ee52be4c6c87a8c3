"""Which synchronization must stay so that another one can go, against the definition on random tables."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.necessity import state
from ffm.model.necessity.sweep_kernels import keepers

STREAMS, THREADS, MOST = 2, 2, 6


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]], list[int], list[bool]]:
    """Needs, covers, and each synchronization's thread and whether it is required. They end one after the other, and
    something relies on those that are required.
    """
    count = draw(st.integers(1, 12))
    thread = draw(st.lists(st.integers(0, THREADS - 1), min_size=count, max_size=count))
    required = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    stream, work = st.integers(0, STREAMS - 1), st.integers(1, MOST)
    covers = [
        [row, one, draw(work)] for row in range(count) for one in draw(st.lists(stream, unique=True, max_size=STREAMS))
    ]
    stays = [row for row in range(count) if required[row]]
    needed = st.tuples(st.sampled_from(stays or [0]), stream, work)
    needs = [
        [on, thread[on], one, used] for on, one, used in sorted(draw(st.lists(needed, max_size=12)) if stays else [])
    ]
    return needs, covers, thread, required


@given(tables())
def test_one_stays_for_work_that_both_cover(
    drawn: tuple[list[list[int]], list[list[int]], list[int], list[bool]],
) -> None:
    needs, covers, thread, required = drawn
    need_table = np.zeros((len(needs), state.COLUMNS_OF_NEEDS), np.int64)
    for place, values in enumerate(needs):
        need_table[place, [state.RELIED_ON, state.WAITED_BY, state.USED_STREAM, state.USED]] = values
    cover_table = np.zeros((len(covers), state.COLUMNS_OF_COVERS), np.int64)
    for place, values in enumerate(covers):
        cover_table[place, [state.SYNCHRONIZATION, state.COVERED_STREAM, state.COVERED]] = values
    end = np.arange(len(thread))
    found = keepers(need_table, cover_table, end, np.array(thread), np.array(required), THREADS, STREAMS)
    for row in range(len(thread)):
        upto = {one: covered for of, one, covered in covers if of == row}
        stay = {on for on, by, one, used in needs if on >= row and by == thread[row] and used <= upto.get(one, 0)}
        expected = stay if not required[row] and stay else {-1}
        assert found[row] in expected
