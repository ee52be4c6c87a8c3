"""A watch that is given up: the wait counts as needed, and the screens say that this is not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.stored import open_results
from ffm.results.vocabulary import Because
from tests.conftest import Ffm
from tests.stage_commands import run_stages

PROGRAM = Path(__file__).parent / "programs" / "given_up.cu"
UNKNOWN = "could not be watched by page and counts as used"


@pytest.fixture(scope="module")
def program(build_program: Callable[[Path], Path]) -> Path:
    return build_program(PROGRAM)


@pytest.fixture(scope="module")
def results(ffm: Ffm, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given") / "results"
    run_stages(ffm, [program], folder, {"timeout": "60"})
    return folder


def analyse(ffm: Ffm, folder: Path) -> None:
    done = ffm("stage", "analysis", "--results", folder)
    assert done.code == 0, done.err


def the_wait(analysis: Analysis) -> tuple[int, str, Because]:
    """Its number, and its only verdict."""
    ((number, verdict),) = [
        (number, verdict)
        for number, site in enumerate(analysis.sites, 1)
        if site.call == "cudaDeviceSynchronize"
        for verdict in site.synchronization
    ]
    return number, verdict.kind, verdict.because


@pytest.mark.thorough
def test_a_watch_that_is_given_up_decides_nothing_and_says_so(ffm: Ffm, program: Path, results: Path) -> None:
    number, kind, because = the_wait(open_results(results).document)
    assert (kind, because) == ("required", Because.NOT_WATCHED)
    report = " ".join(ffm("report", "--results", results).out.split())
    assert UNKNOWN in report
    assert "ffm stage memory --watch trace" in report
    assert "--watch trace" in " ".join(ffm("site", number, "--results", results).out.split())

    done = ffm("stage", "memory", "--watch", "trace", "--results", results, "--timeout", 60, "--", program)
    assert done.code == 0, done.err
    done = ffm("stage", "sync-use", "--results", results, "--timeout", 60, "--", program)
    assert done.code == 0, done.err
    analyse(ffm, results)
    _, kind, _ = the_wait(open_results(results).document)
    assert kind == "unnecessary"
    assert UNKNOWN not in " ".join(ffm("report", "--results", results).out.split())
