"""The fast way to capture the stack of an attached function, compared with the slow one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from tests.conftest import cuda_include
from tests.native.layers import includes_of, sources_of
from tests.native.test_native import HERE

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the collector's object files, compiled as CMake does."""
    folder = tmp_path_factory.mktemp("collector")
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    sources = [str(path) for path in sources_of("collector")]
    subprocess.run(
        [
            "gcc",
            *FLAGS,
            "-O2",
            f"-I{folder}",
            *includes_of("collector"),
            "-isystem",
            str(cuda_include()),
            "-c",
            *sources,
        ],
        cwd=folder,
        check=True,
    )
    return folder


@pytest.mark.parametrize("optimization", ["-O0", "-O2", "-O2 -fno-omit-frame-pointer"])
def test_both_ways_find_the_same_frames(collector: Path, tmp_path: Path, optimization: str) -> None:
    program = tmp_path / "entry_stack"
    subprocess.run(
        [
            "gcc", *FLAGS, "-g", *optimization.split(), "-fno-optimize-sibling-calls", f"-I{collector}",
            *includes_of("collector"),
            "-Wl,--wrap=_ULx86_64_init_local2", "-o", str(program), str(HERE / "entry_stack.c"),
            *map(str, collector.glob("*.o")), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program), str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
