"""The pass over a run of one thread says what the pass over any run says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.estimators import replay_passes
from ffm.model.estimators.replay import Replay
from ffm.model.registers import registers
from tests.examples import examples
from tests.model.compiling import all_compiled
from tests.model.estimators.test_stretches import replay_of
from tests.model.simulator import Call, programs

RUNS = st.sampled_from([1, 2, 4]).flatmap(lambda streams: programs(streams=streams, misplaced=True).filter(bool))


def all_that_it_says(replay: Replay, rows: np.ndarray[Any, Any], probe: np.ndarray[Any, Any]) -> list[Any]:
    """Everything for which a run is replayed."""
    said: list[Any] = [replay.selected(rows), replay.without(rows)]
    without = replay.without_probes(probe)
    for column in (without.start, without.duration, without.wait, without.gap):
        said.append(column.tolist())
    fixed = replay.fixed().timeline
    said += [getattr(fixed, name).tolist() for name in ("start", "duration", "wait")]
    return said


def drawn(calls: list[Call], data: st.DataObject) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows to fix, and the nanoseconds of a probe before each row."""
    rows = np.array([data.draw(st.booleans()) for _ in calls], bool)
    return rows, np.array([data.draw(st.integers(0, 500)) for _ in calls], np.int64)


@given(RUNS, st.sampled_from([0, 3_000]), st.integers(0, 3), st.booleans(), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_one_thread_is_replayed_as_any_threads_are(
    calls: list[Call], usual: int, seed: int, jump: bool, data: st.DataObject
) -> None:
    rows, probe = drawn(calls, data)
    said = []
    for lone in (True, False):
        with pytest.MonkeyPatch.context() as patched:
            if not lone:
                patched.setattr(replay_passes, "is_of_one_thread", lambda trace, family: False)
            replay = replay_of(calls, usual, seed)
            replay._passes.jump &= jump
            said.append(all_that_it_says(replay, rows, probe))
    assert said[0] == said[1]


@given(RUNS, st.integers(0, 3), st.data())
@settings(max_examples=examples(40), deadline=None)
@pytest.mark.thorough
def test_numbers_in_registers_are_those_in_memory(calls: list[Call], seed: int, data: st.DataObject) -> None:
    rows, probe = drawn(calls, data)
    plain = all_that_it_says(replay_of(calls, 3_000, seed), rows, probe)
    with all_compiled():
        assert all_that_it_says(replay_of(calls, 3_000, seed), rows, probe) == plain


def test_registers_are_a_column() -> None:
    assert registers((3, True)).tolist() == [3, 1]
