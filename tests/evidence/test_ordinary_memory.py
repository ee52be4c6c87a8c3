"""A value that may be an address of ordinary memory ends the watch, and the report says so, unless the user rules that
out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.notes import OrdinaryMemory
from ffm.results.vocabulary import OrdinaryCause
from tests.evidence.stale_members import (
    COUNT,
    MACHINE_CODE_CASES,
    POINTER,
    PTX_CASES,
    STORE,
    UNSET,
    accept_machine_code,
    analysed,
    loading,
    registering,
)
from tests.native.cubins import EXIT, FIRST_PARAMETER, calculate, container, cubin, load, store
from tests.planted.building import KEPT, Programs
from tests.planted.labels import PROGRAMS


def notes_of(analysis: Analysis) -> list[OrdinaryMemory]:
    return [note for note in analysis.notes if isinstance(note, OrdinaryMemory)]


def verdicts_of_download(analysis: Analysis) -> list[str]:
    (download,) = (site for site in analysis.sites if site.function.startswith("cuMemcpyDtoH"))
    return [verdict.kind for verdict in download.synchronization]


@pytest.mark.parametrize(("ordinary_memory", "kind"), [(True, "required"), (False, "unnecessary")])
def test_a_parameter_that_may_be_an_address(tmp_path: Path, ordinary_memory: bool, kind: str) -> None:
    program = Programs(tmp_path / "programs", kept=KEPT).executable(PROGRAMS / "kernel_padding.cu")
    analysis = analysed(tmp_path, [str(program), "heap"], ordinary_memory)
    assert verdicts_of_download(analysis) == [kind]
    named = OrdinaryMemory(kernel="twice", offset=8, cause=OrdinaryCause.NO_CODE)
    assert notes_of(analysis) == ([named] if ordinary_memory else [])


@pytest.mark.parametrize(
    ("kernel", "body", "kind"),
    [*PTX_CASES, ("_Z6halvesPi5Given", "ld.param.v2.u32 {%r1, %r2}, [given];", "required")],
)
def test_a_member_that_no_code_of_the_kernel_reads(
    build_program: Callable[..., Path], tmp_path: Path, kernel: str, body: str, kind: str
) -> None:
    program = build_program(registering(tmp_path, kernel, body), "-l:libcuda.so.1")
    analysis = analysed(tmp_path, [str(program)])
    assert verdicts_of_download(analysis) == [kind]
    assert bool(notes_of(analysis)) == (kind == "required")


PICKED = load(FIRST_PARAMETER, 8, index=4, to=6)
MULTIPLY_HIGH, SHIFT = 0x027, 0x019


@pytest.mark.parametrize("compression", [None, "", "lz4_raw", "zstd"])
@pytest.mark.parametrize(
    ("kernel", "body", "kind"),
    [
        *MACHINE_CODE_CASES,
        ("stores_it", [POINTER, UNSET, COUNT, STORE, store(2, 7), EXIT], "required"),
        ("multiplies", [POINTER, UNSET, COUNT, calculate(MULTIPLY_HIGH, 5, 5, 7, 5), STORE, EXIT], "unnecessary"),
        ("shifts", [POINTER, UNSET, COUNT, calculate(SHIFT, 5, 5, 7, 5), STORE, EXIT], "unnecessary"),
        ("somewhere", [POINTER, COUNT, PICKED, store(6, 5), EXIT], "required"),
        ("factor", [POINTER, COUNT, PICKED, calculate(MULTIPLY_HIGH, 5, 5, 7, 5), STORE, EXIT], "unnecessary"),
    ],
)
def test_a_member_that_machine_code_does_not_use_as_an_address(
    build_program: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kernel: str,
    body: list[tuple[int, int]],
    kind: str,
    compression: str | None,
) -> None:
    """As code that is compiled while a program runs, or of a library without PTX: nothing in the program's file
    describes it.
    """
    accept_machine_code(tmp_path, monkeypatch)
    image = cubin(kernel, [(0, 8), (8, 16)], body)
    if compression is not None:
        image = container([(90, image, compression)])
    source = loading(tmp_path, kernel, image)
    analysis = analysed(tmp_path, [str(build_program(source, "-l:libcuda.so.1"))])
    assert verdicts_of_download(analysis) == [kind]
    named = OrdinaryMemory(kernel=kernel, offset=8, cause=OrdinaryCause.USES)
    assert notes_of(analysis) == ([named] if kind == "required" else [])
