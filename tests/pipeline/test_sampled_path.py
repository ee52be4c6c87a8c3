"""The critical path names the program's own functions and lines between driver calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "working.cu"
POOL = Path(__file__).parent / "programs" / "pool.cu"


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if text in line)


def test_the_path_names_the_functions_in_which_the_cpu_worked(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    done = ffm("run", "--quick", build_program(PROGRAM), 0.1, folder=tmp_path)
    assert done.code == 0, done.err
    log = next(tmp_path.rglob("tracing.log")).read_text()
    assert "interrupted" not in log
    view: dict[str, Any] = orjson.loads(ffm("path", "--json", "--all", folder=tmp_path).out)
    regions = {
        row["name"].removeprefix("(anonymous namespace)::"): row for row in view["regions"] if row["kind"] == "CPU"
    }
    built, checked, rested = (regions[name] for name in ("build_matrix", "check_rows", "main (waiting)"))
    # Each sample is 4 ms: of 0.6 s, three standard errors are 0.15 s. On a busy machine, parts wait.
    assert built["path_s"] == pytest.approx(2 * checked["path_s"], rel=0.4)
    assert 0.4 < built["path_s"] < 0.8
    assert rested["path_s"] > 0.08
    assert sum(row["path_s"] for row in view["regions"]) == pytest.approx(view["length_s"])

    region: dict[str, Any] = orjson.loads(ffm("path", "build_matrix", "--json", folder=tmp_path).out)
    lines = {row["line"]: row["percent"] for row in region["lines"]}
    near = sum(lines.get(line_of("built here") - 1 + place, 0) for place in range(2))
    assert near > 90
    assert region["lines"][0]["file"] == "working.cu"

    change: dict[str, Any] = orjson.loads(ffm("path", "--if", "build_matrix=2x", "--json", folder=tmp_path).out)
    assert change["gain"]["seconds"] == pytest.approx(built["path_s"] / 2, rel=0.01)


@pytest.mark.thorough
def test_the_path_names_functions_of_threads_that_never_call_the_driver(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    done = ffm("run", "--quick", build_program(POOL), 0.2, folder=tmp_path)
    assert done.code == 0, done.err
    view: dict[str, Any] = orjson.loads(ffm("path", "--json", "--all", folder=tmp_path).out)
    regions = {
        row["name"].removeprefix("(anonymous namespace)::"): row for row in view["regions"] if row["kind"] == "CPU"
    }
    # Beside other programs, the workers wait for processors, and two do not work at the same time.
    assert 0.3 < regions["fill_rows"]["path_s"] < 0.6
    assert 0.3 < regions["sum_rows"]["path_s"] < 1.0
    assert sum(row["path_s"] for row in view["regions"]) == pytest.approx(view["length_s"])
