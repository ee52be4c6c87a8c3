"""Builds the virtual driver in many shapes (`shapes/CMakeLists.txt`), as if they were other versions."""

from __future__ import annotations

import fcntl
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.driver.cuda_header import header_path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "shapes"
DRIVER = ROOT / "build" / "py3-none-linux_x86_64"
"""Where `make setup` compiled the driver (`build-dir` in pyproject.toml)."""


@cache
def shape(name: str) -> Path:
    """Build the shape `name`, one process at a time; return its driver library."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build(f"shape_{name}")
    return BUILD / name / "libcuda.so.1"


def _build(target: str) -> None:
    configure = ["cmake", "-S", str(Path(__file__).parent / "shapes"), "-B", str(BUILD), "-G", "Ninja"]
    for command in (
        [*configure, f"-DCUDA_INCLUDE_DIR={header_path().parent}", f"-DBUILT={DRIVER}"],
        ["cmake", "--build", str(BUILD), "--target", target],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}")


def symbol_at(library: Path, offset: int) -> str:
    """Return the name of a shape's function that starts at `offset`, without arguments and namespace."""
    for line in Path(f"{library}.symbols").read_text().splitlines():
        words = line.split(maxsplit=2)
        if len(words) == 3 and words[1] in "tT" and int(words[0], 16) == offset:
            return words[2].split("(")[0].removeprefix("vgpu::") or words[2]
    raise AssertionError(f"no function of {library} starts at {offset:#x}")
