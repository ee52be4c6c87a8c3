"""C++ exceptions find their handlers in a program that loads the library for that only later."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import orjson

from ffm.vgpu.paths import library_folder
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "throws.py"


def test_a_library_that_python_loads_catches_what_it_throws(
    ffm: Ffm, build_program: Callable[..., Path], tmp_path: Path
) -> None:
    library = build_program(PROGRAM.with_suffix(".cpp"), "-shared", "-fPIC")
    command = [sys.executable, PROGRAM, library_folder() / "libcudart.so.13", library]
    kept = ["--results", tmp_path, "--timeout", 60]
    for stage in (["baseline"], ["tracing"], ["memory", "--watch", "trace"], ["memory"], ["sync-use"]):
        done = ffm("stage", *stage, *kept, "--", *command)
        assert done.code == 0, done.err
        assert (tmp_path / f"{stage[0]}.log").read_text() == "5\n"
    assert ffm("stage", "analysis", "--results", tmp_path).code == 0
    done = ffm("apply-remedy", "--skip-syncs", "--runs", 1, "--json", *kept)
    assert done.code == 0, done.err
    assert orjson.loads(done.out)["differences"] == []
