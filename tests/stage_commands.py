"""The stages of a measurement one after the other, as the workflow calls them; its start takes longer than most do."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ffm.workflow.settings import read_settings
from tests.conftest import Ffm


def run_stages(ffm: Ffm, command: Sequence[str | Path], results: Path, settings: Mapping[str, str]) -> None:
    """Measure a program with all stages, into an absolute folder, with further settings of the workflow."""
    read = read_settings({"app": shlex.join(map(str, command)), "results": str(results), **settings})
    options = {
        "baseline": [*read.limits, *read.lasting],
        "tracing": [*read.limits, *read.lasting, *read.portion_options],
        "memory": [*read.limits, *read.memory_options],
        "sync-use": read.limits,
    }
    for stage, given in options.items():
        done = ffm("stage", stage, "--results", results, *given, "--", *command)
        assert done.code == 0, done.err
    done = ffm("stage", "analysis", "--results", results, *read.analysis_options)
    assert done.code == 0, done.err
