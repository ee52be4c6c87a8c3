"""Which calls of a run the gate looks at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from ffm.gate.problems import problem_calls
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.stacks import Frame
from ffm.results.stored import Results
from tests.report.sample_analysis import sample_analysis

RUNTIME = Frame(module=0, offset=1, function="libcudart_static_3897a3ef")
EXIT = Frame(module=2, offset=2, function="__run_exit_handlers", file="./stdlib/exit.c", line=116)
START = Frame(module=0, offset=3, function="_start")
DESTRUCTOR = Frame(module=0, offset=4, function="Solver::~Solver()", file="/src/als.cu", line=12)
NAMELESS = Frame(module=0, offset=5)


def sites_looked_at(function: str, *frames: Frame) -> set[int]:
    """Return the sites whose calls the gate sees if the first one calls this function, with these frames."""
    document = sample_analysis()
    first = cast("Any", document.sites[0])
    sites = [msgspec.structs.replace(site, problem_thread=0) for site in document.sites]
    sites[0] = msgspec.structs.replace(sites[0], call=function, function=function)
    stacks = list(document.stacks)
    stacks[first.stack] = msgspec.structs.replace(stacks[first.stack], frames=list(frames))
    modules = [*document.modules, msgspec.structs.replace(document.modules[1], path="/lib/x86_64-linux-gnu/libc.so.6")]
    changed: Analysis = msgspec.structs.replace(document, sites=sites, stacks=stacks, modules=modules)
    return {calls.site.index for calls in problem_calls(cast("Results", SimpleNamespace(document=changed)))}


def test_what_the_runtime_unloads_at_the_end_is_no_problem_of_the_program() -> None:
    assert 0 not in sites_looked_at("cuLibraryUnload", RUNTIME, EXIT, START)


@pytest.mark.parametrize(
    ("function", "frames"),
    [
        ("cuLibraryUnload", (RUNTIME, DESTRUCTOR, EXIT, START)),
        ("cuModuleUnload", (DESTRUCTOR, EXIT, START)),
        ("cuLibraryUnload", (NAMELESS, EXIT, START)),
        ("cuMemFree_v2", (RUNTIME, EXIT, START)),
    ],
)
def test_what_the_program_may_do_at_the_end_is_looked_at(function: str, frames: tuple[Frame, ...]) -> None:
    assert 0 in sites_looked_at(function, *frames)
