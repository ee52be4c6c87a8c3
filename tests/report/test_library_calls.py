"""Advice about calls that a library makes for the program."""

from __future__ import annotations

import msgspec
import pytest

from ffm.report.remedies.advice import identify_remedies
from ffm.report.remedies.library_calls import LibraryCall, library_call
from ffm.report.remedies.problem_sites import problem_sites
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.stacks import Frame, Module, Stack
from tests.report.sample_analysis import sample_analysis

PROGRAM, RUNTIME, SOLVER, BLAS = range(4)
MAIN = Frame(module=PROGRAM, offset=0x1200, function="main", file="/src/main.cpp", line=146)
START = Frame(module=4, offset=0x271, function="__libc_start_main", file="csu/libc-start.c", line=360)


def analysis_with(*frames: Frame) -> Analysis:
    """Return an analysis whose first site has this stack, innermost first."""
    analysis = sample_analysis()
    modules = [*analysis.modules, *(Module(path=path, build_id="") for path in LIBRARIES)]
    stacks = [Stack(key="0" * 32, frames=list(frames)), *analysis.stacks[1:]]
    return msgspec.structs.replace(analysis, modules=modules, stacks=stacks)


LIBRARIES = ("/opt/lib/libsolver.so.12", "/opt/lib/libblas.so.13", "/lib/x86_64-linux-gnu/libc.so.6")


def frame(module: int, function: str = "", line: int = 0) -> Frame:
    file = f"/src/{function}.cpp" if line else ""
    return Frame(module=module, offset=0x4000 + line, function=function, file=file, line=line)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([frame(BLAS), frame(BLAS, "destroyBlas"), frame(SOLVER, "destroySolver")], ("libblas.so.13", "destroySolver")),
        ([frame(RUNTIME, "cudaFree"), frame(BLAS), frame(BLAS)], ("libblas.so.13", "")),
        ([frame(RUNTIME, "cudaFree"), frame(BLAS, "release", line=7)], None),
        ([frame(RUNTIME, "cudaFree")], None),
        ([frame(PROGRAM), frame(PROGRAM, "cudaFree")], None),
    ],
    ids=["two libraries", "no names", "own library", "own call", "runtime linked statically"],
)
def test_a_library_makes_calls_where_only_lines_of_its_callers_are_known(
    frames: list[Frame], expected: tuple[str, str] | None
) -> None:
    analysis = analysis_with(*frames, MAIN, START)
    found = library_call(analysis, analysis.sites[0])
    assert found == (expected and LibraryCall(*expected))


def test_who_makes_a_call_is_unknown_where_no_line_is_the_programs_own() -> None:
    analysis = analysis_with(frame(BLAS, "destroyBlas"), frame(PROGRAM, "main"), START)
    assert library_call(analysis, analysis.sites[0]) is None


def test_what_uses_the_library_comes_first() -> None:
    analysis = analysis_with(frame(RUNTIME, "cudaFree"), frame(BLAS, "destroyBlas"), MAIN, START)
    remedies = identify_remedies(problem_sites(analysis, "carry"))
    steps = {remedy.site: remedy.steps for remedy in remedies}
    assert steps[0][0].startswith("libblas.so.13 makes the call, for destroyBlas. If you cannot change that library")
    assert "Allocate the buffer once" in steps[0][1]
    assert not any("makes the call" in step for site in (1, 2) for step in steps[site])
