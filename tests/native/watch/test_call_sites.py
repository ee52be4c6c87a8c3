"""Where jumps can take the place of code in front of system calls."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.native.layers import NATIVE, includes_of

KERNEL = "watch/programs/kernel"
BASE = [str(NATIVE / "base" / f"{name}.c") for name in ("guarded", "mappings", "traced")]


def test_code_that_a_jump_replaces_does_the_same_elsewhere(tmp_path: Path) -> None:
    program = tmp_path / "call_sites"
    found = NATIVE / KERNEL / "call_sites.c"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
            "-fsanitize=undefined", "-fno-sanitize-recover=all", *includes_of(KERNEL), "-o", str(program),
            str(Path(__file__).with_name("call_sites.c")), str(found), *BASE,
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
