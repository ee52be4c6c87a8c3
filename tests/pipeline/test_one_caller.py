"""A program that makes all its driver calls from one place: each function has a verdict and a correction of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import read_owned
from ffm.results.documents.site import Site
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "one_caller.cu"
TURNS = 12


@pytest.fixture(scope="module")
def measured(ffm: Ffm, build_program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("one_caller")
    done = ffm("run", "--results", results, build_program(PROGRAM, "-l:libcuda.so.1"), seconds=300)
    assert done.code == 0, done.err
    return results


@pytest.fixture(scope="module")
def sites(measured: Path) -> dict[str, list[Site]]:
    analysis, _ = read_owned(Analysis, measured / "analysis.json")
    found: dict[str, list[Site]] = {}
    for site in analysis.sites:
        found.setdefault(site.function, []).append(site)
    return found


def verdicts(site: Site) -> list[tuple[str, int]]:
    return [(verdict.kind, verdict.occurrences) for verdict in (*site.synchronization, *site.transfer)]


def test_each_function_is_a_site(sites: dict[str, list[Site]]) -> None:
    in_the_loop = ["cuMemcpyHtoD_v2", "cuMemsetD8Async", "cuMemcpyDtoDAsync_v2", "cuCtxSynchronize", "cuMemFree_v2"]
    for function in in_the_loop:
        assert [site.count for site in sites[function]] == [TURNS], function
    assert sum(site.count for site in sites["cuMemAlloc_v2"]) == TURNS + 2


def test_each_has_its_own_verdict(sites: dict[str, list[Site]]) -> None:
    (wait,), (upload,), (download,) = (
        sites[name] for name in ("cuCtxSynchronize", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2")
    )
    assert verdicts(wait) == [("unnecessary", TURNS)]
    assert ("no-op", TURNS - 1) in verdicts(upload)
    assert ("required", TURNS) in verdicts(download)


def test_only_the_unnecessary_function_is_left_out(ffm: Ffm, measured: Path) -> None:
    done = ffm("apply-remedy", "--skip-syncs", "--results", measured, seconds=300)
    assert done.code == 0, done.err
    assert f"Removed: {TURNS} synchronization operations" in done.out, done.out
    assert "ended like the original and wrote the same output" in done.out, done.out
