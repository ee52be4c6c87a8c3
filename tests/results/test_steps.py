"""What a long analysis reports of its progress."""

from __future__ import annotations

from ffm.stages.analysis.results import analyse
from tests.results.loop_findings import loop_timeline
from tests.results.replayed_findings import measured


def test_each_fix_is_counted_and_the_path_is_told() -> None:
    told: list[str] = []
    analysis, _ = analyse(measured(loop_timeline()), tell=told.append)
    assert told[0] == "inferring when the GPU worked"
    assert "following the critical path" in told
    fixes = [step.split() for step in told if step.startswith("replaying fix ")]
    assert fixes and all(int(words[2]) <= int(words[4]) for words in fixes)
    assert analyse(measured(loop_timeline()))[0] == analysis
