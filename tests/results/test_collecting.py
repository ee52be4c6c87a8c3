"""Python's search for reference cycles is restored after it was paused."""

from __future__ import annotations

import gc

import pytest

from ffm.results.memory.collecting import uncollected


@uncollected()
def searches(fails: bool) -> bool:
    if fails:
        raise ValueError
    return gc.isenabled()


def test_cycles_are_searched_for_again_even_after_an_error() -> None:
    assert gc.isenabled() and not searches(False) and gc.isenabled()
    with pytest.raises(ValueError):
        searches(True)
    assert gc.isenabled()


def test_a_search_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        assert not searches(False) and not gc.isenabled()
    finally:
        gc.enable()
