"""What may be the address of ordinary memory ends the watch, and the report says so; it does not if the user rules that
out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.notes import OrdinaryMemory
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.analysis import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from tests.planted.building import KEPT, Programs
from tests.planted.labels import PROGRAMS


def analysed(folder: Path, ordinary_memory: bool) -> Analysis:
    program = Programs(folder / "programs", kept=KEPT).executable(PROGRAMS / "kernel_padding.cu")
    results = ResultsFolder(folder / "results")
    results.root.mkdir()
    request = Request([str(program), "heap"], results, 60.0, ordinary_memory=ordinary_memory)
    for stage in MEASURING_STAGES.values():
        stage(request)
    return run_analysis(results)


@pytest.mark.parametrize(("ordinary_memory", "kind"), [(True, "required"), (False, "unnecessary")])
def test_a_parameter_that_may_be_an_address(tmp_path: Path, ordinary_memory: bool, kind: str) -> None:
    analysis = analysed(tmp_path, ordinary_memory)
    (download,) = (site for site in analysis.sites if site.function.startswith("cuMemcpyDtoH"))
    assert [verdict.kind for verdict in download.synchronization] == [kind]
    assert (OrdinaryMemory() in analysis.notes) == ordinary_memory
