"""The watch finds the bytes that instructions with masks touch, on a CPU that has such instructions."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.native.layers import NATIVE

INSTRUCTIONS = NATIVE / "watch" / "instructions"
SOURCES = [str(INSTRUCTIONS / f"{name}.c") for name in ("masked", "decoding")]


def test_masks_say_which_bytes_are_touched(tmp_path: Path) -> None:
    program = tmp_path / "masked"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-mno-red-zone",
            "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{INSTRUCTIONS}", "-o", str(program),
            str(Path(__file__).with_name("masked.c")), *SOURCES,
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
