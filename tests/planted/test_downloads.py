"""How much of a download the CPU touched: the page watch tells pages, the trace watch bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.stages.documents import Memory, read_document
from ffm.stages.folder import ResultsFolder
from ffm.stages.measure import Request, Watch
from ffm.stages.registry import MEASURING_STAGES
from ffm.stages.tables import read_table
from tests.planted.building import SECONDS, Programs

SOURCE = Path(__file__).with_name("downloads") / "touched.cu"

BYTES = 256 * 1024
PART = BYTES // 4
PAGE = 4096


def followed(programs: Programs, variant: str, watch: Watch, results: Path) -> list[tuple[int, int, int, int]]:
    """Bytes, touched bytes, and where those lie, of each download that was followed to its end."""
    folder = ResultsFolder(results)
    request = Request([str(programs.executable(SOURCE)), variant], folder, SECONDS, watch=watch)
    MEASURING_STAGES["baseline"](request)
    if watch == "trace":
        with programs.very_slow_gpu():
            MEASURING_STAGES["memory"](request)
    else:
        MEASURING_STAGES["memory"](request)
    table = read_table(folder.root / read_document(Memory, folder.document("memory")).downloads)
    return list(zip(*(table[name].tolist() for name in ("bytes", "touched", "first", "last")), strict=True))


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("whole", [(BYTES, BYTES, 0, BYTES)]),
        ("part", [(BYTES, PAGE, PART, PART + PAGE)]),
        ("never", [(BYTES, 0, 0, 0)]),
        ("loop", [(BYTES, PAGE, PART, PART + PAGE)] * 10),
        ("system_call", [(BYTES, PAGE, PART, PART + PAGE)]),
        ("unmapped", [(BYTES, PAGE, PART, PART + PAGE)]),
        ("gpu", [(BYTES, BYTES // 2, BYTES // 2, BYTES)]),
        ("forked", []),
        ("moved", []),
    ],
)
def test_pages(variant: str, expected: list[tuple[int, int, int, int]], programs: Programs, tmp_path: Path) -> None:
    assert followed(programs, variant, "pages", tmp_path) == expected


@pytest.mark.parametrize(
    ("variant", "expected"),
    [("part", [(BYTES, 4000, PART, PART + 4000)]), ("ends", [(BYTES, 8, 0, BYTES)])],
)
def test_trace(variant: str, expected: list[tuple[int, int, int, int]], programs: Programs, tmp_path: Path) -> None:
    assert followed(programs, variant, "trace", tmp_path) == expected
