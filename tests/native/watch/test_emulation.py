"""What the watch executes in place of the CPU does what the CPU does."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.native.layers import NATIVE

INSTRUCTIONS = NATIVE / "watch" / "instructions"
SOURCES = [str(INSTRUCTIONS / f"{name}.c") for name in ("decoding", "emulation", "emulated_vectors")]


def test_instructions_do_what_the_cpu_does(tmp_path: Path) -> None:
    program = tmp_path / "emulation"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-mno-red-zone",
            "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{INSTRUCTIONS}", "-o", str(program),
            str(Path(__file__).with_name("emulation.c")), *SOURCES,
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
