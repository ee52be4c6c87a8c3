"""Codes in a stored table stand for something, or the table is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.results.columnar.columns import Column, ColumnError, Table


@given(st.sets(st.integers(-3, 200_000), min_size=1), st.lists(st.integers(-3, 200_000), min_size=1), st.booleans())
def test_codes_are_among_those_that_stand_for_something(known: set[int], held: list[int], strange: bool) -> None:
    table = Table({"code": Column(np.int32, among=lambda: known)})
    codes = np.array([*(code for code in held if strange or code in known), min(known)], np.int32)
    unknown = sorted(set(codes.tolist()) - known)
    if not unknown:
        table.check({"code": codes}, {})
        return
    with pytest.raises(ColumnError, match=f"its column code holds {unknown[0]}, which stands for nothing"):
        table.check({"code": codes}, {})


@pytest.mark.parametrize("code", [3, 200])
def test_codes_of_bytes_do_not_wrap_around(code: int) -> None:
    table = Table({"code": Column(np.uint8, among=lambda: [1, 250])})
    table.check({"code": np.array([250, 1], np.uint8)}, {})
    with pytest.raises(ColumnError, match=f"holds {code}"):
        table.check({"code": np.array([250, code, 1], np.uint8)}, {})
