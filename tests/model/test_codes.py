"""Columns of codes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.codes import is_one_of


@given(st.lists(st.integers(0, 255)), st.sets(st.integers(0, 255), max_size=5))
def test_rows_with_one_of_the_values_are_found(codes: list[int], values: set[int]) -> None:
    assert is_one_of(np.array(codes, np.uint8), values).tolist() == [code in values for code in codes]
