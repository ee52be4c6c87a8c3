"""What is taken out of a traced run."""

from __future__ import annotations

import msgspec
import pytest
from sample_analysis import sample_analysis
from timelines import Row, timeline

from ffm.report.portion import portion_sentence
from ffm.results.documents.run import Portion
from ffm.stages.analysis.timelines import portion_without_probes

TRACED = timeline([Row(own=6, gap=2), Row(own=2), Row(own=1, thread=1)])
WITHOUT = timeline([Row(own=3, gap=1), Row(own=1), Row(own=1, thread=1)])


def test_a_portion_takes_as_much_less_as_the_probes_took_of_its_longest_thread() -> None:
    """Traced, a window takes 10.5 s, of which 5 are the probes'. So 4.5 of the bare program's 10 s are the rest."""
    portion = Portion(start_s=1.0, stretches=1, measured_s=10.5)
    bare = portion_without_probes(portion, TRACED, WITHOUT)
    assert bare.measured_s == pytest.approx(5.5)
    told = portion_sentence(msgspec.structs.replace(sample_analysis(), wall_s=10.0, portion=bare))
    assert "which took 5.50 s. The other 4.50 s are taken to stay as they are" in told


@pytest.mark.parametrize("portion", [{"cut": True}, {"last_s": 3.0}])
def test_a_run_that_is_compared_with_nothing_keeps_its_time(portion: dict[str, object]) -> None:
    whole = Portion(stretches=1, measured_s=10.5, **portion)  # type: ignore[arg-type]
    assert portion_without_probes(whole, TRACED, WITHOUT) == whole
