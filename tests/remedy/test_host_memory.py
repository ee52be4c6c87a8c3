"""Where the pageable host memory of transfers is allocated and freed (dissertation 6.1.1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import read_owned
from tests.conftest import Ffm
from tests.stage_commands import run_stages

SOURCE = Path(__file__).parent / "programs" / "host_memory.cu"

ALLOCATES = {
    "malloc": "malloc",
    "vector": "operator new (std::vector)",
    "new": "operator new",
    "calloc": "calloc",
    "posix_memalign": "posix_memalign",
    "mmap": "mmap",
}
"""Mark of the allocation's line, and the call that is named there."""
FREES = {"malloc": "free", "vector": "free (std::vector)", "new": "free", "calloc": "realloc"}


def line_of(mark: str) -> int:
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f"/* {mark} */" in line)


@pytest.fixture(scope="module")
def analysis(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    results = tmp_path_factory.mktemp("host-memory") / "results"
    run_stages(ffm, [build_program(SOURCE)], results, {"timeout": "60"})
    content: dict[str, Any] = msgspec.to_builtins(read_owned(Analysis, results / "analysis.json")[0])
    return content


def test_every_origin_is_told_with_its_line(analysis: dict[str, Any]) -> None:
    sites = analysis["sites"]
    links = [link for link in analysis["allocations"] if link["memory"] == "pageable"]
    told = {
        # The C++ library's `operator new[]` may jump to `operator new`, which is then alone in the stack.
        (sites[link["allocation"]]["call"].replace("new[]", "new"), sites[link["allocation"]]["line"])
        for link in links
        if link["allocation"] is not None
    }
    expected = {(call, line_of(f"allocates: {mark}")) for mark, call in ALLOCATES.items()}
    assert told == expected | {("realloc", line_of("frees: calloc"))}
    released = {
        (sites[link["allocation"]]["line"], sites[link["release"]]["call"], sites[link["release"]]["line"])
        for link in links
        if link["release"] is not None
    }
    for mark, call in FREES.items():
        assert (line_of(f"allocates: {mark}"), call, line_of(f"frees: {mark}")) in released
    assert not any(line == line_of("allocates: mmap") for line, _, _ in released)


@pytest.mark.parametrize("call", ["upload(fixed)", "upload(both[turn])"], ids=["static", "static and pinned"])
def test_memory_of_no_allocator_has_no_allocation(call: str, analysis: dict[str, Any]) -> None:
    sites = analysis["sites"]
    number = next(number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if call in line)
    uploads = [
        site
        for site, content in enumerate(sites)
        if content["call"] == "cudaMemcpy"
        and any(
            frame["line"] == number and frame["file"].endswith("host_memory.cu")
            for frame in analysis["stacks"][content["stack"]]["frames"]
        )
    ]
    assert len(uploads) == 2
    links = [link for link in analysis["allocations"] if link["site"] in uploads and link["memory"] == "pageable"]
    assert [link["allocation"] for link in links] == [None] * 2


def test_sites_without_operations_stay_out_of_groups(analysis: dict[str, Any]) -> None:
    host = {site for site, content in enumerate(analysis["sites"]) if re.match("malloc|free|oper", content["call"])}
    assert host
    assert not host & {site for group in (*analysis["points"], *analysis["folds"]) for site in group["sites"]}
