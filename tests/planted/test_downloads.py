"""How much of a download the CPU touched: the page watch reports pages, the trace watch bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.results.columnar.tables import read_table
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Memory
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.measure import Request, Watch
from ffm.stages.registry import MEASURING_STAGES
from tests.planted.building import SECONDS, Programs

FOLDER = Path(__file__).with_name("downloads")

BYTES = 256 * 1024
PART = BYTES // 4
PAGE = 4096

Found = list[tuple[int, int, int]]


def touched(
    programs: Programs, variant: str, watch: Watch, results: Path, source: str = "touched.cu", size: int = BYTES
) -> Found:
    """Return touched bytes, and their position, for each download that was followed to its end, in order of time."""
    folder = ResultsFolder(results)
    request = Request([str(programs.executable(FOLDER / source)), variant], folder, SECONDS, watch=watch)
    MEASURING_STAGES["baseline"](request)
    if watch == "trace":
        with programs.very_slow_gpu():
            MEASURING_STAGES["memory"](request)
    else:
        MEASURING_STAGES["memory"](request)
    table = read_table(folder.root / read_owned(Memory, folder.document("memory"))[0].downloads)
    assert set(table["bytes"].tolist()) <= {size}
    return list(zip(*(table[name].tolist() for name in ("touched", "first", "last")), strict=True))


def expected(part: int, end: int) -> Found:
    """In program order; a touch of the part counts as this many bytes, and one at an end as that many."""
    some = (part, PART, PART + part)
    return [
        (BYTES, 0, BYTES),
        some,
        (2 * end, 0, BYTES),
        (0, 0, 0),
        *(some, some, some),
        some,  # by a system call
        some,  # unmapped
        (BYTES // 2, BYTES // 2, BYTES),  # by the GPU
    ]


def test_the_page_watch_tells_pages(programs: Programs, tmp_path: Path) -> None:
    assert touched(programs, "told", "pages", tmp_path) == expected(PAGE, PAGE)


def test_the_trace_watch_tells_bytes(programs: Programs, tmp_path: Path) -> None:
    assert touched(programs, "told", "trace", tmp_path) == expected(4000, 4)


def test_what_is_moved_or_inherited_is_not_known(programs: Programs, tmp_path: Path) -> None:
    assert touched(programs, "lost", "pages", tmp_path) == []


@pytest.mark.parametrize("watch", ["pages", "trace"])
def test_what_a_freed_block_held_is_over(programs: Programs, tmp_path: Path, watch: Watch) -> None:
    size = 2560
    untouched, whole = (0, 0, 0), (size, 0, size)
    found = touched(programs, "told", watch, tmp_path, "heap.cu", size)
    assert found == [untouched, untouched, untouched, untouched, whole, whole, whole]
