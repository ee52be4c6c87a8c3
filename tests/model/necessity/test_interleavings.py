"""Whatever one execution of a program with threads shows, the waits said to be spare are spare in all executions."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, example, given, note, settings
from hypothesis import strategies as st

from ffm.model.necessity.reasons import REQUIRED
from ffm.model.necessity.rules import needed_synchronizations
from tests.examples import examples
from tests.model.interleavings import (
    FLAGS,
    STREAMS,
    Place,
    Program,
    Step,
    handovers_of_run,
    operations_of_run,
    places,
    run_of,
    sound,
    uses_of_run,
    wrong_reads,
)

steps = st.one_of(
    st.builds(Step, st.sampled_from(["copy", "wait", "wait"]), st.integers(0, STREAMS - 1)),
    st.just(Step("device")),
    st.builds(Step, st.sampled_from(["tell", "await"]), st.integers(0, FLAGS - 1)),
    st.builds(Step, st.sampled_from(["read", "launch"]), st.integers(0, 2)),
)
programs = st.lists(st.lists(steps, min_size=1, max_size=7), min_size=2, max_size=3).map(sound)

EARLY_BY_CHANCE: Program = [
    [Step("copy"), Step("tell", 1)],
    [Step("wait"), Step("await", 1), Step("wait"), Step("read")],
]
HANDED_OVER_BETWEEN_WAITS: Program = [
    [Step("copy"), Step("wait"), Step("tell", 1), Step("device")],
    [Step("await", 1), Step("read")],
]
TOLD_BY_EITHER: Program = [
    [Step("copy"), Step("tell", 0), Step("wait"), Step("tell", 1)],
    [Step("await", 0), Step("wait"), Step("tell", 1), Step("wait")],
    [Step("await", 1), Step("read")],
]
LAUNCHED_AFTER_CHANCE: Program = [
    [Step("copy"), Step("wait"), Step("tell", 1)],
    [Step("device"), Step("await", 1), Step("launch")],
]
"""The first thread's wait seems not to matter if the second one waits late."""
LAUNCHED_TWICE: Program = [
    [Step("copy"), Step("wait"), Step("tell", 1)],
    [Step("copy", 1), Step("device"), Step("launch", 1), Step("await", 1), Step("launch")],
]


def needed_in(
    program: Program, run: list[Place], seen: set[int], *, shared: bool = False, told: bool = False
) -> list[Place]:
    verdicts = needed_synchronizations(
        operations_of_run(program, run, shared=shared, told=told),
        uses_of_run(program, run),
        handovers=handovers_of_run(program, run, seen),
    )
    return [run[row] for row in np.flatnonzero(np.isin(verdicts.reason, list(REQUIRED))).tolist()]


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(programs, st.integers(0, 1000), st.sets(st.integers(0, FLAGS - 1)), st.booleans(), st.booleans())
@example(EARLY_BY_CHANCE, 0, set(), False, False)
@example(EARLY_BY_CHANCE, 1, {1}, False, False)
@example(HANDED_OVER_BETWEEN_WAITS, 0, set(), False, False)
@example(TOLD_BY_EITHER, 0, {0}, False, False)
@example(TOLD_BY_EITHER, 1, {0, 1}, False, False)
@example(LAUNCHED_AFTER_CHANCE, 1, set(), False, False)
@example(LAUNCHED_AFTER_CHANCE, 5, {1}, True, False)
@example(LAUNCHED_TWICE, 1, set(), False, False)
@example(LAUNCHED_TWICE, 1, {1}, False, True)
def test_what_is_spare_is_spare_however_threads_are_scheduled(
    program: Program, seed: int, seen: set[int], shared: bool, told: bool
) -> None:
    run = run_of(program, seed)
    assume(run is not None and places(program, "read", "launch"))
    assert run is not None
    needed = needed_in(program, run, seen, shared=shared, told=told)
    note(f"order {run}, needed {needed}")
    assert wrong_reads(program, needed) == []


RESULT = [Step("copy"), Step("device"), Step("read")]
asking = st.lists(steps, max_size=6).map(lambda more: [*RESULT, *(step for step in more if step.what != "await")])
reading = st.lists(st.sampled_from([Step("await", 0), Step("await", 1), Step("read", 0), Step("read", 1)]), max_size=5)


@settings(max_examples=examples(60), deadline=None)
@given(st.tuples(asking, reading).map(list).map(sound), st.integers(0, 1000), st.sets(st.integers(0, FLAGS - 1)))
def test_a_result_needs_one_wait_of_the_thread_that_asked_for_it(program: Program, seed: int, seen: set[int]) -> None:
    """If no thread waits for the work of another, one wait for each result is enough, whatever is unknown."""
    run = run_of(program, seed)
    assume(run is not None)
    assert run is not None
    read = {program[thread][number].which for thread, number in places(program, "read")}
    assert len(needed_in(program, run, seen)) <= len(read)
