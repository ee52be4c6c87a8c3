"""What `ffm demo` says of the sample's corrected twin."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ffm.cli.demo import demo, outcome
from ffm.errors import FfmError


def test_a_twin_is_compared_with_what_was_estimated() -> None:
    assert outcome("als_fixed", 4.0, 3.0, 3, 1.5) == [
        "The corrected twin als_fixed takes 3.00 s instead of 4.00 s (medians of 3 runs, in turn): it saves 1.00 s "
        "(25.00 %).",
        "ffm estimated 1.50 s for all problems together, 150 % of that.",
    ]


def test_a_twin_that_took_longer_on_a_busy_machine_saves_nothing() -> None:
    said, estimated = outcome("als_fixed", 4.0, 20.0, 1, 1.5)
    assert "20.00 s instead of 4.00 s (one run of each), so it saved nothing this time" in said
    assert "saves -" not in said
    assert estimated == "ffm estimated 1.50 s for all problems together."


def test_a_sample_without_a_twin_and_no_rounds_are_refused_before_anything_is_measured() -> None:
    with pytest.raises(FfmError, match="the sample overlap has no twin overlap_fixed to compare it with"):
        demo.main(["--sample", "overlap"], standalone_mode=False)
    assert CliRunner().invoke(demo, ["--rounds", "0"]).exit_code == 2
