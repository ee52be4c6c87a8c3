"""The wrapper of a wait function changes nothing that the function, its caller or an unwinder sees."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ffm.instrument.library import COLLECTOR, native_library


def test_registers_stack_and_way_out_are_as_without_it(tmp_path: Path) -> None:
    program = tmp_path / "wait_wrapper"
    source = Path(__file__).with_name("wait_wrapper.c")
    command = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-rdynamic"]
    subprocess.run([*command, "-o", str(program), str(source), "-ldl", "-lpthread"], check=True)
    run = subprocess.run([program, native_library(COLLECTOR)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
