"""What the table of a traced run says, and what is left out of it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from ffm.report.portion import portion_sentence
from ffm.results.documents.run import Portion
from ffm.stages.analysis.timeline_kernels import fill_in_gaps
from ffm.stages.analysis.timelines import numbered_threads, portion_without_probes
from tests.model.timelines import Row, timeline
from tests.report.sample_analysis import sample_analysis

TRACED = timeline([Row(own=6, gap=2), Row(own=2), Row(own=1, thread=1)])
WITHOUT = timeline([Row(own=3, gap=1), Row(own=1), Row(own=1, thread=1)])


def test_a_portion_takes_as_much_less_as_the_probes_took_of_its_longest_thread() -> None:
    """Traced, a window takes 10.5 s, of which 5 are the probes'. So 4.5 of the bare program's 10 s are the rest."""
    portion = Portion(start_s=1.0, stretches=1, measured_s=10.5)
    bare = portion_without_probes(portion, TRACED, WITHOUT)
    assert bare.measured_s == pytest.approx(5.5)
    told = portion_sentence(msgspec.structs.replace(sample_analysis(), wall_s=10.0, portion=bare))
    assert "which took 5.50 s. The other 4.50 s are assumed to stay as they are" in told


@pytest.mark.parametrize("portion", [{"cut": True}, {"last_s": 3.0}])
def test_a_run_that_is_compared_with_nothing_keeps_its_time(portion: dict[str, object]) -> None:
    whole = Portion(stretches=1, measured_s=10.5, **portion)  # type: ignore[arg-type]
    assert portion_without_probes(whole, TRACED, WITHOUT) == whole


def test_threads_are_numbered_over_all_processes_and_gaps_lie_within_each() -> None:
    process, thread = np.array([0, 0, 0, 1, 1], np.int32), np.array([0, 0, 3, 3, 3], np.int32)
    start, duration = np.array([5, 20, 7, 50, 52]), np.array([10, 4, 2, 3, 1])
    number = numbered_threads({"process": process, "thread": thread})
    assert number.tolist() == [0, 0, 1, 2, 2]
    gap = np.empty(5, np.int64)
    fill_in_gaps(number, start, duration, gap)
    assert gap.tolist() == [5, 0, 0, 0, 0]
