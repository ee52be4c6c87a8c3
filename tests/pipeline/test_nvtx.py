"""Ranges that a program marks with NVTX delimit iterations, without NVIDIA's tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.conftest import Ffm, cuda_include

PROGRAM = Path(__file__).parent / "programs" / "ranges.cpp"

needs_nvtx = pytest.mark.skipif(
    not (cuda_include() / "nvtx3" / "nvToolsExt.h").exists(), reason="NVTX is not installed (package nvidia-nvtx)"
)


@pytest.fixture(scope="module")
def traced(ffm: Ffm, build_program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranges")
    done = ffm("run", "--quick", build_program(PROGRAM, "-ldl"), folder=folder)
    assert done.code == 0, done.err
    return folder


@needs_nvtx
@pytest.mark.parametrize(
    ("name", "thread", "waits"), [("pushed", 1, 2), ("inner", 1, 1), ("in domain", 1, 2), ("step [0-9]", 2, 1)]
)
def test_a_range_delimits_iterations(ffm: Ffm, traced: Path, name: str, thread: int, waits: int) -> None:
    done = ffm("check", "--iterations", name, "--format", "json", folder=traced)
    (found,) = orjson.loads(done.out)["iterations"]
    assert (found["thread"], found["iterations"], found["left_out"]) == (thread, 5, 1)
    assert found["waits"] == {"least": waits, "median": waits, "most": waits}


@needs_nvtx
def test_a_range_that_no_one_marked_is_told(ffm: Ffm, traced: Path) -> None:
    done = ffm("check", "--iterations", "outer", folder=traced)
    assert (done.code, done.out) == (2, "")
    assert "outer" in done.err


@needs_nvtx
def test_ranges_can_be_the_portion_that_is_measured(
    ffm: Ffm, build_program: Callable[..., Path], tmp_path: Path
) -> None:
    done = ffm("run", "--quick", "--ranges", "step *", build_program(PROGRAM, "-ldl"), folder=tmp_path)
    assert done.code == 0, done.err
    (file,) = tmp_path.glob("results/*/analysis.json")
    portion = orjson.loads(file.read_bytes())["portion"]
    assert (portion["iterations"], portion["ranges"]) == (6, "step *")
    assert 0 < portion["stretches"] <= 6
