"""Waits at the edges of a measured portion of a run get no verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.instrument.recording.reader import read_recordings
from ffm.instrument.session.portion import Calls
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.measure import Request, Watch, measure
from ffm.stages.tracing import traced_functions
from tests.planted.building import SECONDS, Programs
from tests.planted.labels import Case, planted_cases
from tests.planted.measuring import answers_for
from tests.planted.report import disagreements

CASES = planted_cases(Path(__file__).parent / "portions")
COUNTED = (Kind.TRANSFER, Kind.SET, Kind.LAUNCH, Kind.SYNCHRONIZATION, Kind.ALLOCATION, Kind.FREE)


def window_of(case: Case, programs: Programs, folder: ResultsFolder) -> Calls:
    """Return the calls between the two at which the program creates an event, from a whole run."""
    request = Request([str(programs.executable(case.source)), case.variant], folder, SECONDS)
    measure("tracing", request, on={}, functions=traced_functions())
    (recording,) = read_recordings(folder.recordings("tracing"))
    catalogue = load_catalogue()
    names = [catalogue[int(function)].name for function in recording.operations["function"]]
    counted = np.isin(recording.operations["function"], [one.index for one in catalogue.of_kind(*COUNTED)])
    first, end = (place for place, name in enumerate(names) if name == "cuEventCreate")
    return Calls(int(counted[:first].sum()), int(counted[:end].sum()))


MEASURED: list[tuple[Case, Watch]] = [(case, "pages") for case in CASES] + [(CASES[0], "trace")]


@pytest.mark.parametrize(("case", "watch"), MEASURED, ids=lambda value: getattr(value, "name", value))
def test_edges_are_not_judged(case: Case, watch: Watch, programs: Programs, tmp_path: Path) -> None:
    window = window_of(case, programs, ResultsFolder(tmp_path / "whole"))
    answers = answers_for(case, programs, tmp_path / "results", [watch], portion=window)
    assert disagreements(answers) == []
